"""A run that was cut off goes on from its checkpoint, in the hands of one process."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import pytest
from test_sweep_engine import driven, eventually, resumed, saved, standing_in
from test_sweep_experiment import planned

from pinnlab.sweep import supervise
from pinnlab.sweep.drive import Ending, cancel
from pinnlab.sweep.folder import State, drivers, files, save_plan, state


SEEDS = "[axes]\nseed = [0, 1, 2]\n"
FAULTS = Path(__file__).parent / "faults"
TRAINED = """
strategy = "nonlinear"
optimizer = "adam"
iterations = 60
adam = 0
points = 16
network.width = 4
network.depth = 1
"""
# The solver, ended by a signal at iteration 20, in the next attempt at 40, ...
CUT_OFF = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(FAULTS)!r})
from run import signalling
from pinnlab import keeper
from pinnlab.sweep.child import main
folder = Path(sys.argv[1])
keeper.PERIOD = keeper.SHARE = 0.0
with (folder / "attempts").open("a+") as attempts:
    attempts.write("x")
    attempts.flush()
    count = attempts.tell()
names = SIGNALS
if count <= len(names):
    signalling(names[count - 1], 20 * count)
main(folder, sys.argv[2], tuple(sys.argv[3:]))
"""
# Asks to be queued again at first.
AGAIN = """
import os, sys
stem = sys.argv[1] + "/runs/" + sys.argv[2]
if not os.path.exists(stem + ".log.once"):
    open(stem + ".log.once", "w").close()
    sys.exit(75)
open(stem + ".h5", "w").close()
"""
# Does nothing, and says whether it was asked to leave a checkpoint.
PATIENT = """
import signal, sys
folder = sys.argv[1]
def asked(*_):
    open(folder + "/asked", "w").close()
    sys.exit(75)
signal.signal(signal.SIGTERM, asked)
open(folder + "/started", "w").close()
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "signals", [["kill"], pytest.param(["term", "kill"], marks=pytest.mark.slow)]
)
def test_a_run_that_was_cut_off_goes_on_from_its_checkpoint(
    signals: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, CUT_OFF.replace("SIGNALS", repr(signals)))
    monkeypatch.setattr("pinnlab.sweep.drive.PATIENCE", 0.1)
    plan = saved(tmp_path, "seed = [0]", f"[solver]\n{TRAINED}")
    folder = tmp_path / "out"
    with ThreadPoolExecutor(2) as both:  # Two drivers: one works, the other waits.
        endings = list(both.map(lambda _: driven(folder, plan), range(2)))
    assert endings == [Ending(1, 0, False)] * 2
    own = files(folder, plan.runs[0].id)
    log = own.log.read_text()
    starts = [line for line in log.splitlines() if line.startswith("going on from")]
    at = [int(line.rpartition(" ")[2]) for line in starts]
    assert len((folder / "attempts").read_text()) == len(signals) + 1, log
    assert len(at) == len(signals) and at == sorted(at) and 0 < at[0] <= 20
    assert not list(own.checkpoint.parent.glob("*.ckpt*"))
    with h5py.File(own.result) as file:
        steps = file["history/step"]
        assert isinstance(steps, h5py.Dataset) and steps[-1] == 60


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("kill", 1), ("term", 3)])
def test_a_batch_that_was_cut_off_goes_on_from_its_checkpoint(
    name: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, CUT_OFF.replace("SIGNALS", repr([name])))
    monkeypatch.setattr("pinnlab.sweep.drive.PATIENCE", 0.1)
    text = f"batch = true\nreference = false\n{SEEDS}[solver]\n{TRAINED}"
    plan, folder = planned(tmp_path, text), tmp_path / "out"
    save_plan(folder, plan)
    one, *others = (run.id for run in plan.runs)
    first = files(folder, one)
    if name == "term":
        (drivers(folder) / "driver-a").write_text(json.dumps({"machine": ""}))
        job = supervise.Job(str(folder), one, "driver-a", 1, 0.0, (*others,))
        assert supervise.supervise(job) is supervise.Outcome.STOPPED
        assert first.batch.exists() and first.checkpoint.exists()
    assert driven(folder, plan, size) == Ending(3, 0, False)
    log = first.log.read_text()
    assert "going on from" in log
    assert len((folder / "attempts").read_text()) == 2, log
    assert not list((folder / "runs").glob("*.ckpt*")) and not first.batch.exists()
    for run in plan.runs:
        with h5py.File(files(folder, run.id).result) as file:
            steps = file["history/step"]
            assert isinstance(steps, h5py.Dataset) and steps[-1] == 60
            assert file.attrs["seed"] == run.seed


def test_a_run_that_asks_for_it_is_queued_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, AGAIN)
    monkeypatch.setattr("pinnlab.sweep.drive.PATIENCE", 0.1)
    plan = saved(tmp_path, "seed = [0, 1]")
    assert driven(tmp_path / "out", plan) == Ending(2, 0, False)


def test_cancel_asks_for_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    standing_in(monkeypatch, PATIENT)
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(driven, folder, plan)
        assert eventually((folder / "started").exists)
        cancel(folder)
        assert ending.result(30) == Ending(0, 0, stopped=True)
    assert (folder / "asked").exists()


def test_who_lost_a_run_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, PATIENT)
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    run = plan.runs[0].id
    (drivers(folder) / "driver-a").write_text(json.dumps({"machine": ""}))
    job = supervise.Job(str(folder), run, "driver-a", 1, 0.0)
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(supervise.supervise, job)
        assert eventually((folder / "started").exists)
        (folder / "leases" / f"{run}.2").write_text(json.dumps({"machine": ""}))
        assert outcome.result(30) is supervise.Outcome.STOPPED
    assert not (folder / "asked").exists()


@pytest.mark.slow
def test_a_driver_that_is_told_to_stop_asks_to_be_started_again(tmp_path: Path):
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    driver = resumed(folder)
    run = plan.runs[0].id
    assert eventually(lambda: state(folder, run) is State.RUNNING)
    driver.terminate()
    said = driver.communicate(timeout=60)[1]
    assert driver.returncode == 75, said
    assert "go on with: pinnlab sweep resume" in said
    assert state(folder, run) is State.MISSING


@pytest.mark.slow
def test_a_failure_is_not_gone_on_from(tmp_path: Path):
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    own = files(folder, plan.runs[0].id)
    own.checkpoint.write_bytes(b"of an older version")
    own.spec.write_text(own.spec.read_text().replace("u*(1", "w*(1"))
    assert driven(folder, plan) == Ending(0, 1, False)
    assert state(folder, plan.runs[0].id) is State.FAILED
    assert not own.checkpoint.exists()
