"""Faults of disks and processes: nothing is lost, the message says what happened."""

import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import types
from contextlib import contextmanager
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import typer
from synthetic import make_result
from test_resume import RUN, small_snapshot
from test_train import DECAY
from typer.testing import CliRunner

import pinnlab.atomic
from pinnlab import loads_problem, routes
from pinnlab.checkpoint import read_checkpoint
from pinnlab.claim import claimed
from pinnlab.cli.main import app
from pinnlab.cli.signals import listening
from pinnlab.cli.training import _save
from pinnlab.errors import Preempted, ProblemError
from pinnlab.hdf5 import read_result, write_result
from pinnlab.keeper import Keeper
from pinnlab.record import Stop
from pinnlab.settings import Settings
from pinnlab.snapshot import Position


ROOT = Path(__file__).parents[2]
AXES = {"t": np.linspace(0, 1, 30), "x": np.linspace(-1, 1, 40)}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rescued").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "rescued"))
    monkeypatch.setattr("pinnlab.keeper.PERIOD", 0.0)
    monkeypatch.setattr("pinnlab.keeper.SHARE", 0.0)


@contextmanager
def full_disk():
    """No file grows beyond 4 kB: the same refusals by the system as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_space():
    """Everything is accepted, and lost when it should reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _raising(errno.ENOSPC))
        yield


@contextmanager
def read_only():
    """The file system does not let anything be created."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pinnlab.atomic.os, "open", _raising(errno.EROFS))
        yield


def _raising(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@contextmanager
def folder_gone():
    """The folder of the output has another name for a while."""
    folder = Path.cwd()
    hidden = folder.rename(folder.with_name("hidden"))
    try:
        yield
    finally:
        hidden.rename(folder)


DISK = [full_disk, no_space, read_only]


def keeper(**options):
    said = []
    found = Keeper(Path.cwd() / "run.ckpt", say=said.append, **options)
    found.start(RUN)
    return found, said


def position(path):
    return read_checkpoint(path, RUN).snapshot.position


def at(done):
    return small_snapshot(position=Position(1, done))


@pytest.mark.parametrize("fault", [*DISK, folder_gone])
def test_a_checkpoint_that_cannot_be_written_is_a_warning(fault, tmp_path):
    found, said = keeper()
    assert not found.pause(lambda: at(1))
    lost = at(2)
    with fault():
        assert not found.pause(lambda: lost)
        assert not found.pause(lambda: lost)
    assert len(said) == 1 and "no checkpoint could be written" in said[0]
    assert lost.record.events[-1] == said[0].removeprefix("warning: ")
    assert position(tmp_path / "run.ckpt") == Position(1, 1)
    assert not list(tmp_path.glob(".pinnlab-*"))
    assert not found.pause(lambda: at(3))
    assert position(tmp_path / "run.ckpt") == Position(1, 3)


def test_the_last_two_checkpoints_are_kept(tmp_path):
    found, _ = keeper()
    for done in range(4):
        found.pause(lambda done=done: at(done))
    assert {p.name for p in tmp_path.glob("run*")} == {"run.ckpt", "run.ckpt.1"}
    assert position(tmp_path / "run.ckpt.1").done == 2
    found.finish()
    assert not list(tmp_path.glob("run*"))


def test_a_run_that_wrote_no_checkpoint_removes_none(tmp_path):
    keeper()[0].pause(lambda: at(1))
    keeper()[0].finish()
    assert (tmp_path / "run.ckpt").exists()


def test_a_checkpoint_of_other_versions_is_used_with_a_warning(monkeypatch):
    keeper()[0].pause(lambda: at(1))
    monkeypatch.setattr("pinnlab.keeper.made_with", lambda: "jax 99")
    _, said = keeper(resume=True)
    assert "this is jax 99: the last bits may differ" in said[-1]


def test_a_damaged_checkpoint_gives_way_to_the_previous_one(tmp_path):
    found, _ = keeper()
    for done in range(2):
        found.pause(lambda done=done: at(done))
    newest = tmp_path / "run.ckpt"
    newest.write_bytes(newest.read_bytes()[:-100])
    again, said = keeper(resume=True)
    start = again.start(RUN)
    assert start is not None and start.position.done == 0
    assert any("is not used: its checksum is wrong" in s for s in said)
    assert said[-1].endswith("run.ckpt.1, iteration 30")


def test_without_a_checkpoint_resume_says_so(tmp_path):
    _, said = keeper(resume=True)
    assert len(said) == 1 and "starting anew" in said[0]


def test_a_new_run_says_what_it_will_replace(tmp_path):
    keeper()[0].pause(lambda: at(1))
    _, said = keeper()
    assert len(said) == 1 and "--resume would go on from it" in said[0]


def test_a_deleted_checkpoint_is_written_again(tmp_path):
    found, said = keeper()
    found.pause(lambda: at(1))
    (tmp_path / "run.ckpt").unlink()
    found.pause(lambda: at(2))
    assert position(tmp_path / "run.ckpt").done == 2
    assert not said


@pytest.mark.parametrize(
    ("sent", "ending"), [(signal.SIGTERM, Preempted), (signal.SIGUSR1, Preempted)]
)
def test_a_warning_of_the_system_leaves_a_checkpoint(sent, ending, tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring():
            os.kill(os.getpid(), sent)
            with pytest.raises(ending, match=f"{sent.name}: --resume goes on"):
                found.pause(lambda: at(5))
        with pytest.raises(ending, match=sent.name):
            os.kill(os.getpid(), sent)
    assert position(tmp_path / "run.ckpt").done == 5


def test_ctrl_c_leaves_a_checkpoint_and_a_second_one_does_not_wait(tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            assert found.pause(lambda: at(5))
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    assert position(tmp_path / "run.ckpt").done == 5


def test_stopped_with_nowhere_to_write_is_a_failure(tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring(), read_only():
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(OSError, match="SIGTERM, and no checkpoint could be"):
                found.pause(lambda: at(5))


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
        _save(solution, path, False, False)  # pyright: ignore[reportArgumentType]
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


# ------------------------------------------------------------------ two at a time

CLAIMING = """
import os, signal, sys
from pathlib import Path
from pinnlab.claim import claimed
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
    job = routes.Job(1e-9, 60.0, 0, lambda row: None)
    return routes.try_routes(loads_problem(DECAY), Settings(), job)


def test_an_interrupted_march_leaves_the_coarser_solution(monkeypatch):
    found = interrupting(monkeypatch, 2)
    assert found.stop is Stop.INTERRUPTED
    value = found.model.network(jnp.array([1.0]))[0]
    np.testing.assert_allclose(value, 0.5, rtol=1e-8)


def test_an_interrupt_before_any_solution_is_passed_on(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        interrupting(monkeypatch, 1)
