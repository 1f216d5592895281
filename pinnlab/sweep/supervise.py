"""One run in a process of its own, watched: stopped, retried, and never done twice."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from pinnlab.sweep.batches import unwanted, waits
from pinnlab.sweep.beacon import claimed, gone, lost
from pinnlab.sweep.child import STOPPED
from pinnlab.sweep.folder import (
    Files,
    State,
    drivers,
    files,
    forget_checkpoints,
    record_error,
)
from pinnlab.sweep.spent import Spent


POLL = 0.2
LOOK = 1.0
"""Seconds between two looks at the process, and at the files that may stop it."""

GRACE = 10.0
"""Seconds that a run has to end when it is told to."""

ATTEMPTS = 3
"""Times that a run is started when it was killed from outside."""


class Outcome(Enum):
    """How an attempt at a run ended.

    `STOPPED`: it can go on later; `BUSY`: somebody else works on it; `PRUNED`: a search
    did not want to see its end.
    """

    DONE = "done"
    FAILED = "failed"
    PRUNED = "pruned"
    STOPPED = "stopped"
    BUSY = "busy"


OUTCOMES = {
    State.DONE: Outcome.DONE,
    State.FAILED: Outcome.FAILED,
    State.PRUNED: Outcome.PRUNED,
}
"""How runs of these states ended."""


@dataclass(frozen=True)
class Job:
    """A run to be done in a folder; plain data, so that it travels to any computer.

    - `driver`: the name of the driver's beacon; without it the run stops.
    - `cpus`: cores that it may use; `seconds`: the most that all attempts at it may
      take until it is done or fails, 0 for no limit.
    - `along`: the other runs of its batch.
    """

    folder: str
    run: str
    driver: str
    cpus: int
    seconds: float
    along: tuple[str, ...] = ()


def supervise(
    job: Job,
    devices: str | None = None,
    leaving: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Do a run, unless it is done already.

    The run is a process of its own, so that it can really be stopped, its threads can
    be limited, and its memory returns. It ends when this process does.

    **Arguments:**

    - `devices`: the GPUs that it may see, None for all.
    - `leaving`: whether this worker is about to end, so that the run must.
    """
    own = files(Path(job.folder), job.run)
    if not own.result.exists() and waits(Path(job.folder), job.run):
        return Outcome.BUSY
    with claimed(own.lease) as lease:
        # Asked again under the lease: another may just have finished.
        if own.result.exists():
            return Outcome.DONE
        if own.pruned.exists():
            return Outcome.PRUNED
        if lease is None:
            return Outcome.BUSY
        if gone(_driver(job)):
            return Outcome.STOPPED
        for name in (job.run, *job.along):
            files(Path(job.folder), name).error.unlink(missing_ok=True)
        outcome = _attempts(job, own, lease, devices, leaving)
        if outcome is Outcome.PRUNED:
            forget_checkpoints(Path(job.folder), job.run)
        if outcome is not Outcome.STOPPED:
            own.spent.unlink(missing_ok=True)
        return outcome


def command(job: Job) -> list[str]:
    """What is started for a run."""
    this = sys.executable, "-m", "pinnlab.sweep.child"
    return [*this, job.folder, job.run, *job.along]


def _driver(job: Job) -> Path:
    return drivers(Path(job.folder)) / job.driver


def _attempts(
    job: Job,
    own: Files,
    lease: Path,
    devices: str | None,
    leaving: Callable[[], bool],
) -> Outcome:
    """Start a run until it ends by itself, or is told to stop."""
    code: int | None = 0
    for attempt in range(ATTEMPTS):
        if job.along and attempt == ATTEMPTS - 1:
            # All together may have been too much for the memory.
            forget_checkpoints(Path(job.folder), job.run)
            job = replace(job, along=())
        code = _attempt(job, own, lease, devices, leaving)
        for name in (job.run, *job.along):
            files(Path(job.folder), name).going.unlink(missing_ok=True)
        if own.result.exists():
            return Outcome.DONE
        if own.pruned.exists():
            return Outcome.PRUNED
        if own.error.exists():
            return Outcome.FAILED
        if code is None or code == STOPPED:
            return Outcome.STOPPED
    record_error(Path(job.folder), job.run, "killed", _how_it_ended(code or 0))
    return Outcome.FAILED


def _attempt(
    job: Job,
    own: Files,
    lease: Path,
    devices: str | None,
    leaving: Callable[[], bool],
) -> int | None:
    """The exit status of one process; None where it was told to stop."""
    spent = Spent(own.spent, job.seconds)
    with own.log.open("ab") as log:
        # A terminal's Ctrl-C is for the driver: the group of the child is its own.
        process = subprocess.Popen(
            command(job),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment(job.cpus, devices),
            start_new_session=True,
        )
        try:
            looked = time.monotonic()
            while process.poll() is None:
                time.sleep(POLL)
                if time.monotonic() - looked < LOOK:
                    continue
                looked = time.monotonic()
                if lost(lease) or unwanted(Path(job.folder), job.run):
                    return None
                if leaving() or gone(_driver(job)):
                    _ask_to_stop(process)
                    return None
                if spent.over:
                    message = f"stopped after {job.seconds:g} s ([resources] time)"
                    record_error(Path(job.folder), job.run, "time", message)
                    _ask_to_stop(process)
                    break
        finally:
            _end(process)
            spent.keep()
    return process.returncode


def _ask_to_stop(process: subprocess.Popen) -> None:
    """Give a process the time to leave a checkpoint."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def _end(process: subprocess.Popen) -> None:
    """End a process: its input closes, which it takes as the order to end at once."""
    with contextlib.suppress(BrokenPipeError):
        if process.stdin:
            process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment(cpus: int, devices: str | None) -> Mapping[str, str]:
    """The environment of a run: its number of threads, and the GPUs it may see."""
    count = str(cpus)
    found = dict(os.environ)
    # NPROC sizes the pools of XLA, the others those of NumPy and SciPy.
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        found[name] = count
    if devices is not None:
        found["CUDA_VISIBLE_DEVICES"] = devices
    return found


def _how_it_ended(code: int) -> str:
    if code < 0:
        return (
            f"the process was killed by signal {-code}, {ATTEMPTS} times; signal 9 "
            "may mean that there was too little memory ([resources] memory)"
        )
    return f"the process ended with status {code}, {ATTEMPTS} times; see its log"
