"""Results and processes under faults: nothing is lost, the message says why."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import typer
from disk import folder_gone, full_disk, no_space
from synthetic import make_result
from test_train import DECAY
from typer.testing import CliRunner

from pinnlab import loads_problem, routes
from pinnlab.claim import claimed
from pinnlab.cli import outcome
from pinnlab.cli.main import app
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result, write_result
from pinnlab.outcome import Job, chosen
from pinnlab.record import Stop
from pinnlab.settings import Settings


ROOT = Path(__file__).parents[2]
AXES = {"t": np.linspace(0, 1, 30), "x": np.linspace(-1, 1, 40)}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ------------------------------------------------------------------ the result file


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (full_disk, "File too large"),
        (no_space, "No space left on device"),
        (folder_gone, "does not exist"),
    ],
)
def test_a_result_that_cannot_be_written_is_kept_elsewhere(
    fault, words, tmp_path, monkeypatch, capsys, tmp_path_factory
):
    rescue = tmp_path_factory.mktemp("rescue")
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))
    result, path = make_result(AXES), tmp_path / "run.h5"
    path.write_bytes(b"before")

    def save(place, *, force=False):
        if place != path:
            return write_result(place, result)
        with fault():
            return write_result(place, result, force=force)

    solution: object = types.SimpleNamespace(save=save)
    with pytest.raises(typer.Exit) as ended:
        outcome.save(solution, path, False, False)  # pyright: ignore[reportArgumentType]
    assert ended.value.exit_code == 3
    said = capsys.readouterr().err
    (saved,) = rescue.rglob("run.h5")
    assert words in said and str(saved) in said
    assert read_result(saved).report == result.report
    assert path.read_bytes() == b"before"
    assert not list(tmp_path.glob(".pinnlab-*"))


HOLDER = """
import sys, h5py
file = h5py.File(sys.argv[1], "r+")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_result_that_another_process_has_locked_is_moved_aside(tmp_path):
    path = write_result(tmp_path / "run.h5", make_result(AXES))
    words = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(ProblemError, match="another process is writing to it"):
            read_result(path)
        write_result(path, make_result(AXES, ("u", "v")))
        assert "v" in read_result(path).variables
        holder.stdin.close()
        assert holder.wait() == 0
    assert "v" not in read_result(tmp_path / "run.1.h5").variables


def test_a_deleted_result_does_no_harm(tmp_path):
    path = write_result(tmp_path / "run.h5", make_result(AXES))
    path.unlink()
    write_result(path, make_result(AXES))
    assert [p.name for p in tmp_path.glob("*.h5")] == ["run.h5"]


TORN = """
import os, signal, sys
from pathlib import Path
from pinnlab.atomic import replacing
with replacing(Path(sys.argv[1]), force=True) as draft:
    draft.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_killed_while_writing_leaves_the_file_whole(tmp_path):
    path = tmp_path / "run.h5"
    path.write_bytes(b"before")
    found = subprocess.run([sys.executable, "-c", TORN, str(path)], cwd=ROOT)
    assert found.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"before"


def test_what_a_killed_process_left_is_removed_by_a_later_run(tmp_path):
    path = tmp_path / "run.h5"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", TORN, str(path)], cwd=ROOT)
    old, young = tmp_path.glob(".pinnlab-*.tmp")
    other = tmp_path / "other.tmp"
    other.touch()
    for file in (old, other):
        os.utime(file, (0, 0))
    with claimed(path):
        assert not old.exists() and young.exists() and other.exists()


def test_budgets_and_waits_read_a_clock_that_nobody_sets():
    """`time.time` and dates jump when a clock is set; ages of files have no other."""
    sources = (ROOT / "pinnlab").rglob("*.py")
    found = {p.name for p in sources if re.search(r"\btime\.time\(", p.read_text())}
    assert found == {"beacon.py"}


# ------------------------------------------------------------------ two at a time

CLAIMING = """
import os, signal, sys
from pathlib import Path
from pinnlab.claim import claimed
from pinnlab.cli import outcome
with claimed(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_two_runs_with_one_name_are_refused():
    with claimed(Path("oscillator.h5")):
        found = CliRunner().invoke(app, ["solve", "oscillator", "--no-plot"])
    assert found.exit_code == 2
    assert f"another run (process {os.getpid()} on " in found.stderr
    assert not list(Path.cwd().glob("oscillator*"))


def test_a_claim_ends_with_its_process(tmp_path):
    path = tmp_path / "run.h5"
    words = [sys.executable, "-c", CLAIMING, str(path)]
    assert subprocess.run(words, cwd=ROOT).returncode == -signal.SIGKILL
    assert (tmp_path / "run.h5.lock").exists()
    with claimed(path), pytest.raises(ProblemError), claimed(path):
        raise AssertionError("claimed twice")
    assert not list(tmp_path.glob("run*"))


# ------------------------------------------------------------------ early interrupts

IMPORTING = """
import sys
wanted = sys.argv.pop(1)
class Interrupting:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == wanted:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting)
from pinnlab.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "jax"])
def test_ctrl_c_during_imports_is_no_traceback(module, tmp_path):
    words = [sys.executable, "-c", IMPORTING, module, "solve", "oscillator"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 130
    assert found.stderr == "interrupted; nothing was written\n"


# ------------------------------------------------------------------ other routes


def interrupting(monkeypatch, call):
    """Ctrl-C in the given call of the separable route."""
    solve, calls = routes.newton.solve_separable, []

    def watched(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return solve(*arguments)

    monkeypatch.setattr(routes.newton, "solve_separable", watched)
    job = Job(1e-9, 60.0, 0, lambda row: None)
    return chosen(routes.try_routes(loads_problem(DECAY), Settings(), job))


def test_an_interrupted_march_leaves_the_coarser_solution(monkeypatch):
    found = interrupting(monkeypatch, 2)
    assert found.stop is Stop.INTERRUPTED
    value = found.model.network(jnp.array([1.0]))[0]
    np.testing.assert_allclose(value, 0.5, rtol=1e-8)


def test_an_interrupt_before_any_solution_is_passed_on(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        interrupting(monkeypatch, 1)
