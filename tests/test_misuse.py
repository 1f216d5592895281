"""Found by attacking the command line: each of these once crashed, hung or lied."""

import json
import os

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from pinnlab import Solution, load_problem, loads_problem, solve
from pinnlab.atomic import check_writable
from pinnlab.cli.main import app
from pinnlab.equation.calculus import expand
from pinnlab.equation.expression import walk
from pinnlab.equation.parser import parse_expression
from pinnlab.equation.scope import Scope
from pinnlab.errors import ProblemError
from pinnlab.verify.preflight import check


RUNNER = CliRunner()
HEAD = 'coordinates = { t = [0, 1], x = [-1, 1] }\nfields = ["u"]\n'
HEAT = '[equations]\nm = "dt(u) = dxx(u)"\n'
INITIAL = '[conditions]\ni = { on = "t = 0", equation = "u = 0" }\n'
WALLS = 'w = { on = ["x = -1", "x = 1"], equation = "u = 0" }\n'
GOOD = HEAD + HEAT + INITIAL + WALLS


def findings(text):
    """What refuses the file: at reading or in preflight."""
    try:
        return "\n".join(check(loads_problem(text, "case")).errors)
    except ProblemError as error:
        return str(error)


def test_the_good_file_is_good():
    assert findings(GOOD) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dxx(u)", "dxx(u)/(1 - 1)", "division by zero"),
        ("dxx(u)", "u/0", "division by zero"),
        ('"u = 0"', '"u = log(x)"', "conditions.i: log(x) has no finite value at"),
        ("dxx(u)", "dxx(u) + sqrt(x - 0.5)", "equations.m: sqrt(x - 0.5) has no"),
        ("[-1, 1]", "[-1e308, 1e308]", "too wide"),
        ("[0, 1]", "[0, 5e-324]", "too narrow"),
        ("[equations]", '[reference]\nmethod = "b"\n[equations]', "unknown method"),
        ("[equations]", '[outputs]\nresidual_m = "x"\n[equations]', "residual_"),
        ("[equations]", '[outputs]\nu_exact = "x"\n[equations]', "u_exact"),
        ("[equations]", '[exact]\nu = "log(-1 - x^2)"\n[equations]', "not finite"),
        ("coord", 'title = "a\\u001b[31m"\ncoord', "control characters"),
        ("coord", 'periodic = ["x", "x"]\ncoord', "twice"),
        ("[equations]", "[solver]\nnetwork.width = 1000000000\n[equations]", "memory"),
    ],
)
def test_what_cannot_be_solved_is_refused_before_training(old, new, message):
    assert message in findings(GOOD.replace(old, new, 1))


def test_repeated_derivatives_of_nested_functions_do_not_explode():
    inner = "x"
    for _ in range(3):
        inner = f"exp(sin(x*{inner}))"
    expression = expand(
        parse_expression(f"dxxxxxxxx({inner})", Scope(axes={"x": (0.0, 1.0)})), ("x",)
    )
    assert len(set(walk(expression))) < 2000


def test_a_derivative_that_explodes_is_refused():
    inner = "x"
    for _ in range(8):
        inner = f"exp(sin(x*{inner}))"
    assert "operations" in findings(
        GOOD.replace("dxx(u)", f"{'d' + 9 * 'x'}({inner})*u")
    )


def test_only_regular_files_are_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ProblemError, match="not a regular file"):
        check_writable(pipe)
    with pytest.raises(ProblemError, match="not a regular file"):
        check_writable("/dev/null")
    with pytest.raises(ProblemError):
        check_writable(tmp_path / ("y" * 300 + ".h5"))


@pytest.mark.parametrize("output", [".", "", "/dev/null"])
def test_outputs_that_are_no_files_are_wrong_input(output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["solve", "oscillator", "-o", output])
    assert found.exit_code == 2


def test_json_is_one_object_even_for_a_failure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = RUNNER.invoke(app, ["check", "no_such_problem", "--json"])
    assert found.exit_code == 2
    assert json.loads(found.stdout)["verdict"] == "failed"


def test_a_seed_out_of_range_is_wrong_input():
    found = RUNNER.invoke(app, ["solve", "oscillator", "--seed", "9" * 23])
    assert found.exit_code == 2


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    text = GOOD.replace('"u = 0"', '"u = 1 - x^2"', 1)
    text += '[solver]\nstrategy = "linear"\n'
    solution = solve(loads_problem(text, "rod"), budget=2, reference=False)
    return solution, solution.save(folder / "rod.h5")


WEIGHT = "model/network/network/networks/0/layers/0/weight"


def test_a_changed_number_in_the_model_is_noticed(saved):
    _, path = saved
    with h5py.File(path, "r+") as file:
        # The data disagree at a corner: the network has pieces.
        weight = file[WEIGHT]
        assert isinstance(weight, h5py.Dataset)
        kept = weight[0, 0, 0]
        weight[0, 0, 0] = kept + 1e-9
    with pytest.raises(ProblemError, match="damaged"):
        Solution.load(path)
    with h5py.File(path, "r+") as file:
        file[WEIGHT][0, 0, 0] = kept  # pyright: ignore
    Solution.load(path)


def test_points_outside_the_domain_are_refused(saved):
    solution, _ = saved
    with pytest.raises(ValueError, match="x = 2 is outside"):
        solution(t=0.5, x=2.0)
    with pytest.raises(ValueError, match="outside"):
        solution.values(np.array([[0.5, np.nan]]))


def test_an_interrupt_before_the_first_measurement_is_no_failure(tmp_path):
    class Interrupting:
        def update(self, row, budget):
            raise KeyboardInterrupt

    path = tmp_path / "problem.toml"
    path.write_text(GOOD.replace("dxx(u)", "dxx(u) + u^2").replace("u = 0", "u = 1", 1))
    tiny = {"solver.points": 32, "solver.network.width": 5}
    solution = solve(load_problem(path, tiny), progress=Interrupting(), reference=False)
    assert solution.result.attributes["stop"] == "it was interrupted"
    solution.save(tmp_path / "partial.h5")


def test_an_interrupt_during_verification_keeps_the_model(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pinnlab.verify.verified.gather", interrupted)
    solution = solve(loads_problem(GOOD, "rod"), reference=False)
    assert solution.report.verdict == "fail"
    assert "before it was verified" in solution.report.reason
    assert np.isfinite(solution.values(np.zeros((1, 2)))["u"]).all()
