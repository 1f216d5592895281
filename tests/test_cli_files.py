"""The command line around files: lookup, options, `show`, `plot`, tables of points."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from synthetic import PROBLEM, make_result
from typer.testing import CliRunner

from pinnlab.cli import training
from pinnlab.cli.gallery import find_problem, gallery
from pinnlab.cli.main import app
from pinnlab.cli.options import seconds, setting
from pinnlab.cli.points import read_points
from pinnlab.cli.progress import TrainingProgress, clock
from pinnlab.data.arrays import real_columns
from pinnlab.errors import ProblemError
from pinnlab.export.table import csv_text
from pinnlab.hdf5 import write_result
from pinnlab.record import Observation
from pinnlab.result import Result


RUNNER = CliRunner()
DOMAIN = {"t": (0.0, 1.0), "x": (-1.0, 1.0)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    axes = {"t": np.linspace(0, 1, 5), "x": np.linspace(-1, 1, 6)}
    return write_result(tmp_path / "run.h5", make_result(axes))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_help_imports_nothing_slow():
    code = (
        "import sys\n"
        "from pinnlab.cli.main import app\n"
        "try: app(['solve', '--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'jax', 'numpy', 'matplotlib', 'h5py', 'equinox'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


def test_no_command_prints_help():
    found = RUNNER.invoke(app, [])
    assert "solve" in found.output and "predict" in found.output


def test_show_prints_the_verdict_and_the_evidence(run: Path):
    found = RUNNER.invoke(app, ["show", str(run)])
    assert found.exit_code == 0
    for words in ("PASS", "momentum", "initial", "penalty (a kink)", "3.33e-06"):
        assert words in found.stdout


def test_show_json_is_one_object(run: Path):
    found = json.loads(RUNNER.invoke(app, ["show", str(run), "--json"]).stdout)
    assert found["verdict"] == "pass"
    assert found["fields"]["u"]["rel_l2"] == 1 / 3e5
    assert found["equations"]["momentum"]["heldout"] == 3.1e-5
    assert [c["on"] for c in found["conditions"]] == ["t = 0", "x = 1"]
    assert found["seconds"]["train"] == 41.25
    assert found["parameters"] == {}
    assert found["dims"] == {"t": 5, "x": 6}


def test_show_problem_gives_the_file_back(run: Path):
    assert RUNNER.invoke(app, ["show", str(run), "--problem"]).stdout == PROBLEM


def test_plot_writes_a_picture_named_like_the_run(run: Path, tmp_path: Path):
    assert RUNNER.invoke(app, ["plot", str(run), "--dpi", "30"]).exit_code == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    more = ["plot", str(run), "-o", "a.pdf", "--dpi", "30"]
    assert RUNNER.invoke(app, more).exit_code == 0
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    "command",
    [
        ["show", "missing.h5"],
        ["plot", "missing.h5"],
        ["plot", "{run}", "-o", "no/folder.png"],
        ["plot", "{run}", "-o", "fig.docx"],
        ["show", "{text}"],
        ["solve", "no_such_problem"],
        ["solve", "missing/file.toml"],
        ["solve", "burgers", "--budget", "soon"],
        ["solve", "burgers", "--target", "-1"],
        ["solve", "burgers", "--seed", "x"],
        ["check", "{folder}"],
    ],
    ids=lambda c: " ".join(c),
)
def test_wrong_input_is_status_2_a_message_and_no_file(
    command: list[str], run: Path, tmp_path: Path
):
    (tmp_path / "text.h5").write_text("hello")
    names = {"run": run, "text": tmp_path / "text.h5", "folder": tmp_path}
    before = set(tmp_path.rglob("*"))
    found = RUNNER.invoke(app, [part.format(**names) for part in command])
    assert found.exit_code == 2
    assert found.stdout == "" and found.stderr and "Traceback" not in found.stderr
    assert set(tmp_path.rglob("*")) == before


def test_a_damaged_file_is_status_2(run: Path):
    with h5py.File(run, "r+") as file:
        del file["history"]
    found = RUNNER.invoke(app, ["show", str(run)])
    assert found.exit_code == 2 and "damaged" in found.stderr


def test_the_gallery_is_listed_and_printed():
    found = RUNNER.invoke(app, ["problems"])
    assert found.exit_code == 0
    assert all(entry.name in found.stdout for entry in gallery())
    text = RUNNER.invoke(app, ["problems", "burgers"]).stdout
    assert text == find_problem("burgers").read_text()


def test_a_path_wins_over_a_gallery_name(tmp_path: Path):
    assert find_problem("burgers").name == "burgers.toml"
    (tmp_path / "burgers").write_text(PROBLEM)
    assert find_problem("burgers") == Path("burgers")


def test_a_misspelled_gallery_name_gets_the_nearest():
    with pytest.raises(ProblemError, match="did you mean 'burgers'"):
        find_problem("burgrs")


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("60s", 60), ("2m", 120), ("1.5h", 5400), (" 10 S ", 10), (".5", 0.5)],
)
def test_budgets(text: str, value: float):
    assert seconds(text) == value


@pytest.mark.parametrize(
    "text", ["", "s", "-1", "0", "1d", "1.2.3", "nan", "inf", "1e999"]
)
def test_bad_budgets(text: str):
    with pytest.raises(ProblemError, match="expected a time"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=0.1", 0.1),
        ("a.b=3", 3),
        ("a.b=true", True),
        ('a.b="3"', "3"),
        ("a.b=0.01/pi", "0.01/pi"),
        ("a.b=[0, 1]", [0, 1]),
        ("a.b=tanh", "tanh"),
        ("a.b=x = 1", "x = 1"),
        ("a.b=1\nc = 2", "1\nc = 2"),
    ],
)
def test_settings_are_toml_first_else_text(text: str, value: object):
    assert setting(text) == (("a", "b"), value)


@pytest.mark.parametrize("text", ["nu", "=1", "a..b=1"])
def test_settings_that_are_none(text: str):
    with pytest.raises(ProblemError, match="--set"):
        setting(text)


def test_points_come_in_any_order_with_other_columns(tmp_path: Path):
    path = tmp_path / "points.csv"
    path.write_text("\ufeffx, name ,t\n0.5,a,0.25\n\n-1,b,1e0\n", encoding="utf-8")
    np.testing.assert_array_equal(read_points(path, DOMAIN), [[0.25, 0.5], [1, -1]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 't'"),
        ("t\n0\n", "no column 'x'"),
        ("t,x\n", "no points"),
        ("t,x,x\n0,0,0\n", "two columns 'x'"),
        ("t,x\n0,0\n0,hot\n", "line 3: x is 'hot', expected a number"),
        ("t,x\n0,0\n\n0\n", "line 4: x is nothing"),
        ("t,x\n0,0\n1.5,0\n", r"line 3: t = 1.5 is outside the domain \[0, 1\]"),
        ("t,x\nnan,0\n", "line 2: t = nan is outside"),
        ('t,x\n"0,0\n', "not a CSV file"),
    ],
)
def test_wrong_points_are_named_by_line(text: str, message: str, tmp_path: Path):
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(ProblemError, match=message):
        read_points(path, DOMAIN)


def test_a_point_on_the_boundary_but_for_rounding_is_inside(tmp_path: Path):
    path = tmp_path / "points.csv"
    path.write_text("t,x\n1.0000000000000002,-1.0000000000000002\n")
    assert read_points(path, DOMAIN).shape == (1, 2)


def test_tables_keep_every_bit(tmp_path: Path):
    path = tmp_path / "points.csv"
    random = np.random.default_rng(0)
    columns = {"t": random.random(50), "x": random.uniform(-1, 1, 50)}
    path.write_text(csv_text(columns))
    read = read_points(path, DOMAIN)
    assert read.tobytes() == np.stack(list(columns.values()), axis=1).tobytes()


def test_complex_columns_become_two():
    found = real_columns({"h": np.array([1 + 2j]), "u": np.array([3.0])})
    assert {k: v.tolist() for k, v in found.items()} == {
        "h_real": [1.0],
        "h_imag": [2.0],
        "u": [3.0],
    }


def test_a_pipe_gets_a_line_a_stage_and_then_every_period(
    capsys: pytest.CaptureFixture[str],
):
    with TrainingProgress(period=1e9) as progress:
        for i in range(50):
            progress.update(Observation("adam", i, i / 10, 0.5, 1e-2, None), 60.0)
        progress.update(Observation("ssbroyden", 50, 5.0, 1e-8, 1e-4, 2e-5), 60.0)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == "" and len(lines) == 2
    assert "adam" in lines[0] and "error" not in lines[0]
    assert "iteration 50" in lines[1] and "error 2.0e-05" in lines[1]


@pytest.mark.parametrize(
    ("value", "text"), [(0.2, "0 s"), (59.4, "59 s"), (185, "3:05"), (7200, "2:00:00")]
)
def test_clock(value: float, text: str):
    assert clock(value) == text


class Solved:
    """Stands for a `Solution`."""

    def __init__(self, result: Result):
        self.result, self.report = result, result.report

    def save(self, path: Path, *, force: bool) -> None:
        write_result(path, self.result, force=force)


@pytest.mark.parametrize(
    ("verdict", "stop", "status"),
    [
        ("pass", "the target was met", 0),
        ("pass (estimated)", "the target was met", 0),
        ("unverified", "the budget was used up", 1),
        ("fail", "the budget was used up", 1),
        ("fail", "it was interrupted", 130),
        ("fail", "the loss stayed non-finite after several restarts", 3),
    ],
)
def test_solve_leaves_a_file_a_picture_and_the_verdict_as_status(
    verdict: str,
    stop: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    result = make_result({"t": np.linspace(0, 1, 5)}, verdict=verdict)
    result.attributes["stop"] = stop
    monkeypatch.setattr(training, "load", lambda *_: None)
    monkeypatch.setattr(training, "preflight", lambda *_: ())
    monkeypatch.setattr(training, "_solved", lambda *_: Solved(result))
    found = RUNNER.invoke(app, ["solve", "dir/wave.toml", "--json"])
    assert found.exit_code == status
    assert json.loads(found.stdout)["verdict"] == verdict
    assert "momentum" in found.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"wave.h5", "wave.png"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProblemError("no", key="fields"), 2),
        (FloatingPointError("no finite loss"), 3),
        (KeyboardInterrupt(), 130),
        (MemoryError(), 3),
        (ZeroDivisionError("a defect"), 3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_run_without_a_solution_leaves_nothing(
    error: BaseException,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(training, "load", lambda *_: None)
    monkeypatch.setattr(training, "preflight", lambda *_: ())
    monkeypatch.setattr(training, "_solved", fails)
    found = RUNNER.invoke(app, ["solve", "wave.toml"])
    assert found.exit_code == status and found.stdout == ""
    assert not list(tmp_path.iterdir())


def test_a_closed_pipe_is_no_traceback(run: Path):
    root = Path(__file__).parents[1]
    code = "from pinnlab.cli.main import main; main()"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        found = subprocess.run(
            [sys.executable, "-c", code, "problems"],
            cwd=root,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert "Traceback" not in found.stderr
