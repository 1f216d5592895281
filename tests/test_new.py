"""`pinnlab new`: every kind gives a file that loads, passes `check` and is right."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinnlab import load_problem, solve
from pinnlab.cli import new as command
from pinnlab.cli.main import app
from pinnlab.cli.starters import KINDS, Names, derivative, starter
from pinnlab.problem.file import loads_problem
from pinnlab.verify.preflight import check


RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_passes_check_without_a_warning(kind: str):
    found = RUNNER.invoke(app, ["new", kind])
    assert found.exit_code == 0 and found.stdout == ""
    problem = load_problem(f"{kind}.toml")
    checked = check(problem)
    assert not checked.errors and not checked.warnings
    # The declared solution was examined: a wrong one is an error of `check`.
    assert bool(problem.exact) == (kind != "reaction")


@pytest.mark.parametrize(
    ("kind", "coordinates", "fields"),
    [
        ("ode", "s", "a,b"),
        ("oscillator", "angle", "q"),
        ("heat", "t,x,y", "T"),
        ("heat", "t,radius", "T"),
        ("wave", "x,t,y", "w"),
        ("advection", "t,i,n", "c1,c2"),
        ("poisson", "x,y,z", "phi"),
        ("poisson", "x", "phi"),
    ],
)
def test_other_names_pass_check_too(kind: str, coordinates: str, fields: str):
    names = Names(tuple(coordinates.split(",")), tuple(fields.split(",")))
    problem = loads_problem(starter(kind, names), kind)
    assert tuple(a.name for a in problem.axes) == names.coordinates
    assert tuple(f.name for f in problem.fields) == names.fields
    assert not check(problem).errors


def test_a_wrong_exact_solution_would_be_seen():
    text = starter("heat", Names(("t", "x", "y"), ("u",))).replace("-2*pi", "-3*pi")
    assert check(loads_problem(text, "heat")).errors


def test_derivatives_by_any_name():
    assert derivative("u", "x", "x") == "dxx(u)"
    assert derivative("u", "n") == "d(u, n)"
    assert derivative("u", "r1", "r1") == "d(u, r1, r1)"


def test_an_existing_file_is_left_alone(tmp_path: Path):
    (tmp_path / "heat.toml").write_text("mine")
    found = RUNNER.invoke(app, ["new", "heat"])
    assert found.exit_code == 2 and "not overwritten" in found.stderr
    assert (tmp_path / "heat.toml").read_text() == "mine"
    assert RUNNER.invoke(app, ["new", "heat", "-o", "rod.toml"]).exit_code == 0
    assert load_problem("rod.toml").title == KINDS["heat"].about


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which kind"),
        (["heap"], "did you mean 'heat'"),
        (["heat", "--fields", "sin"], "sin"),
        (["heat", "--fields", "t"], "t"),
        (["heat", "--coordinates", "x,y"], "needs 't' and one or more"),
        (["heat", "--coordinates", "t"], "needs 't' and one or more"),
        (["poisson", "--coordinates", "t,x"], "needs one or more"),
        (["ode", "--coordinates", "t,x"], "one coordinate; found t, x"),
        (["heat", "-o", "no/folder.toml"], "does not exist"),
    ],
)
def test_wrong_input_writes_nothing(arguments: list[str], message: str, tmp_path: Path):
    found = RUNNER.invoke(app, ["new", *arguments])
    assert found.exit_code == 2 and message in found.stderr
    assert not list(tmp_path.iterdir())


def test_a_person_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    answers = iter(["wave", "t,x,y", "w", "drum.toml"])
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(command.typer, "prompt", lambda *_, **__: next(answers))
    command.new()
    problem = load_problem(tmp_path / "drum.toml")
    assert [a.name for a in problem.axes] == ["t", "x", "y"]
    assert [f.name for f in problem.fields] == ["w"]
    assert KINDS["wave"].about == problem.title


@pytest.mark.slow
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "reaction"])
def test_a_new_file_is_solved_and_believed(kind: str):
    names = Names(KINDS[kind].coordinates, ("u",))
    solution = solve(loads_problem(starter(kind, names), kind), budget=30)
    assert solution.report.verdict == "pass"
    assert solution.report.rel_l2 is not None and solution.report.rel_l2 < 1e-5
