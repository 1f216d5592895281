"""The engine: each run once, failures recorded, nothing left running or half done."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_sweep_experiment import planned

from pinnlab.solution import Solution
from pinnlab.sweep import child, supervise
from pinnlab.sweep.alike import Runs
from pinnlab.sweep.drive import Ending, Tally, cancel, drive
from pinnlab.sweep.folder import (
    State,
    files,
    read_error,
    read_json,
    save_plan,
    state,
    write_json,
)
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.pools import local_pool
from pinnlab.sweep.supervise import Job
from pinnlab.sweep.table import collect


ROOT = Path(__file__).parents[1]

# Stands for a run: notes that it ran, takes a moment, leaves a file.
QUICK = """
import sys, time
stem = sys.argv[1] + "/runs/" + sys.argv[2]
open(stem + ".log", "a").write("ran\\n")
time.sleep(0.3)
open(stem + ".h5", "w").close()
"""
ENDLESS = """
import os, sys
open(sys.argv[1] + "/started", "w").write(str(os.getpid()))
sys.stdin.read()
"""
LONG = '[solver]\nstrategy = "nonlinear"\noptimizer = "adam"'
"""With `UNREACHED` a run lasts for its whole budget: it does not end before a test."""
UNREACHED = "target = [1e-14]"
KILLED = "import os, sys; print('once', flush=True); os.kill(os.getpid(), 9)"


class Silent:
    """Nobody watches."""

    def update(self, tally: Tally, submitted: Collection[Runs]) -> None:
        """Nothing."""


def standing_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Start something else than the solver."""

    def command(job: Job) -> list[str]:
        return [sys.executable, "-c", code, job.folder, job.run, *job.along]

    monkeypatch.setattr(supervise, "command", command)


def saved(folder: Path, axes: str, more: str = "") -> Plan:
    plan = planned(folder, f"reference = false\n[axes]\n{axes}\n{more}")
    save_plan(folder / "out", plan)
    return plan


def driven(folder: Path, plan: Plan, size: int = 2) -> Ending:
    with local_pool(plan.resources, size) as pool:
        return drive(folder, plan, pool, Silent())


def eventually(holds: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_sweep_leaves_a_result_for_each_run_and_the_reason_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan, folder = saved(tmp_path, "parameters.r = [1, 2]"), tmp_path / "out"
    spec = files(folder, plan.runs[1].id).spec
    good = read_json(spec)
    write_json(spec, good | {"problem": good["problem"].replace("u*(1", "w*(1")})
    assert driven(folder, plan) == Ending(done=1, failed=1, stopped=False)
    first, second = collect(folder, plan)
    assert first.passed and first.rel_l2 < 1e-8
    assert second.state == "failed" and "unknown name 'w'" in second.error
    kept = files(folder, first.id).result
    assert Solution.load(kept).result.attributes["seed"] == 0

    # The same again does only what is missing or failed.
    standing_in(monkeypatch, QUICK)
    before = kept.stat().st_mtime_ns
    assert driven(folder, plan) == Ending(done=2, failed=0, stopped=False)
    assert kept.stat().st_mtime_ns == before
    assert not files(folder, second.id).error.exists()


def test_two_drivers_of_one_folder_do_each_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, QUICK)
    monkeypatch.setattr("pinnlab.sweep.drive.PATIENCE", 0.1)
    plan, folder = saved(tmp_path, "seed = [0, 1, 2, 3, 4, 5]"), tmp_path / "out"
    with ThreadPoolExecutor(2) as both:
        endings = list(both.map(lambda _: driven(folder, plan), range(2)))
    assert endings == [Ending(6, 0, False)] * 2
    logs = [files(folder, r.id).log.read_text() for r in plan.runs]
    assert logs == ["ran\n"] * 6
    assert not list((folder / "leases").iterdir())
    assert not list((folder / "drivers").iterdir())


def test_a_run_that_is_killed_is_tried_again_and_then_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, KILLED)
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    assert driven(folder, plan) == Ending(0, 1, False)
    own = files(folder, plan.runs[0].id)
    assert own.log.read_text() == "once\n" * supervise.ATTEMPTS
    assert "killed by signal 9" in read_error(folder, plan.runs[0].id)


def test_a_run_that_takes_too_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, ENDLESS)
    plan = saved(tmp_path, "seed = [0]", "[resources]\ntime = 0.5")
    folder = tmp_path / "out"
    assert driven(folder, plan) == Ending(0, 1, False)
    assert "stopped after 0.5 s" in read_error(folder, plan.runs[0].id)
    assert not running(int((folder / "started").read_text()))


def test_the_time_of_a_run_is_that_of_all_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, "import sys, time; time.sleep(0.5); sys.exit(75)")
    monkeypatch.setattr("pinnlab.sweep.drive.PATIENCE", 0.1)
    monkeypatch.setattr("pinnlab.sweep.supervise.LOOK", 0.1)
    monkeypatch.setattr("pinnlab.sweep.supervise.POLL", 0.05)
    plan = saved(tmp_path, "seed = [0]", "[resources]\ntime = 1.2")
    folder = tmp_path / "out"
    assert driven(folder, plan) == Ending(0, 1, False)
    assert "stopped after 1.2 s" in read_error(folder, plan.runs[0].id)
    # Who asks again gives it that time anew.
    assert not files(folder, plan.runs[0].id).spent.exists()


def test_cancel_stops_the_driver_and_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, ENDLESS)
    plan, folder = saved(tmp_path, "seed = [0, 1, 2]"), tmp_path / "out"
    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(driven, folder, plan, 1)
        assert eventually(lambda: bool((folder / "started").exists()))
        assert state(folder, plan.runs[0].id) is State.RUNNING
        assert cancel(folder) == 1
        assert ending.result(30) == Ending(0, 0, stopped=True)
    assert not running(int((folder / "started").read_text()))
    assert {state(folder, r.id) for r in plan.runs} == {State.MISSING}


def test_a_run_has_the_threads_and_the_devices_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code = (
        "import os, sys, time\n"
        "stem = sys.argv[1] + '/runs/' + sys.argv[2]\n"
        "print(os.environ['NPROC'], os.environ['OMP_NUM_THREADS'],\n"
        "      os.environ['CUDA_VISIBLE_DEVICES'])\n"
        "time.sleep(0.3)\n"
        "open(stem + '.h5', 'w').close()\n"
    )
    standing_in(monkeypatch, code)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7,8")
    text = "[resources]\ncpus = 3\ngpus = 2"
    plan, folder = saved(tmp_path, "seed = [0, 1, 2, 3]", text), tmp_path / "out"
    assert driven(folder, plan, size=9).done == 4
    logs = [files(folder, r.id).log.read_text() for r in plan.runs]
    assert set(logs) == {"3 3 4,5\n", "3 3 6,7\n"}


def test_a_killed_driver_leaves_no_process_and_its_runs_are_free(tmp_path: Path):
    plan, folder = saved(tmp_path, f"seed = [0]\n{UNREACHED}", LONG), tmp_path / "out"
    driver = resumed(folder)
    run = plan.runs[0].id
    assert eventually(lambda: state(folder, run) is State.RUNNING)
    assert eventually(lambda: bool(children(driver.pid)))
    (child,) = children(driver.pid)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert state(folder, run) is State.MISSING
    assert eventually(lambda: not running(child))
    assert not files(folder, run).result.exists()


def test_an_interrupted_driver_stops_its_runs_and_says_how_to_go_on(tmp_path: Path):
    plan, folder = (
        saved(tmp_path, f"seed = [0, 1]\n{UNREACHED}", LONG),
        tmp_path / "out",
    )
    driver = resumed(folder)
    run = plan.runs[0].id
    assert eventually(lambda: state(folder, run) is State.RUNNING)
    driver.send_signal(signal.SIGINT)
    said = driver.communicate(timeout=60)[1]
    assert driver.returncode == 130, said
    assert "go on with: pinnlab sweep resume" in said
    assert {state(folder, r.id) for r in plan.runs} == {State.MISSING}
    assert not list((folder / "leases").iterdir())


def test_a_stop_that_other_code_turns_into_an_error_is_no_failure(
    tmp_path, monkeypatch
):
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    run = plan.runs[0].id

    def cut_off(folder, run, signals, along):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        except BaseException as error:
            raise RuntimeError("a callback was cut off") from error

    monkeypatch.setattr(child, "solve_spec", cut_off)
    monkeypatch.setattr(child, "_end_with_the_input", lambda: None)
    with pytest.raises(SystemExit) as ended:
        child.main(folder, run)
    assert ended.value.code == child.STOPPED
    assert state(folder, run) is State.MISSING
    assert read_error(folder, run) == ""


def resumed(folder: Path) -> subprocess.Popen:
    code = "from pinnlab.cli.main import main; main()"
    command = [sys.executable, "-c", code, "sweep", "resume", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
