"""The driver of a sweep: hands out runs until none is missing."""

import contextlib
import math
import os
import secrets
import socket
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pinnlab.errors import Preempted
from pinnlab.sweep.beacon import lit
from pinnlab.sweep.folder import State, drivers, record_error, state
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.pools import Pool
from pinnlab.sweep.supervise import LOOK, POLL, Job, Outcome
from pinnlab.sweep.table import Row, read_row


PATIENCE = 3.0
"""Seconds until a run that another driver works on is asked for again."""


class Watcher(Protocol):
    """Something that shows how a sweep goes on."""

    def update(self, left: int, done: int, failed: int, best: float) -> None:
        """Called about every second, with numbers of runs.

        - `best`: the smallest error of the runs of this driver, infinity before one.
        """
        ...


@dataclass(frozen=True)
class Ending:
    """How a sweep ended; `stopped`: by `cancel` or a signal before all was done."""

    done: int
    failed: int
    stopped: bool


def drive(folder: Path, plan: Plan, pool: Pool, watcher: Watcher) -> Ending:
    """Do all runs of a plan that have no result yet.

    Several drivers may share a folder. One that is killed leaves nothing that a new
    one would have to clean up.
    """
    with _driver(folder) as beacon:
        missing = [r for r in plan.runs if state(folder, r.id) is not State.DONE]
        round_ = _Round(folder, plan, pool, beacon, watcher)
        try:
            failed = round_.all_of(missing)
        except (KeyboardInterrupt, Preempted):
            # Without its driver's beacon every run stops, wherever it is.
            beacon.unlink(missing_ok=True)
            failed = 0
        stopped = not beacon.exists()
    done = sum(state(folder, r.id) is State.DONE for r in plan.runs)
    return Ending(done, failed, stopped and done + failed < len(plan.runs))


def cancel(folder: Path) -> int:
    """Stop all drivers of a sweep and what they run; the number of drivers."""
    found = list(drivers(folder).glob("driver-*"))
    for beacon in found:
        beacon.unlink(missing_ok=True)
    return len(found)


@contextmanager
def _driver(folder: Path) -> Iterator[Path]:
    name = f"driver-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    beacon = drivers(folder) / name
    with lit(beacon):
        yield beacon


@dataclass(frozen=True)
class _Round:
    """One driver at work."""

    folder: Path
    plan: Plan
    pool: Pool
    beacon: Path
    watcher: Watcher

    def all_of(self, missing: list[Run]) -> int:
        """Submit runs until each is done or has failed; the number that failed."""
        total = len(self.plan.runs)
        running = {self._submit(run): run for run in missing}
        later: list[tuple[float, Run]] = []
        failed, best = 0, math.inf
        try:
            while (running or later) and self.beacon.exists():
                for run, outcome in self._finished(running):
                    failed += outcome is Outcome.FAILED
                    if outcome is Outcome.DONE:
                        best = min(best, _error(read_row(self.folder, run)))
                    if outcome in (Outcome.BUSY, Outcome.STOPPED):
                        later.append((time.monotonic() + PATIENCE, run))
                due = [run for when, run in later if when <= time.monotonic()]
                later = [(when, run) for when, run in later if run not in due]
                for run in due:
                    # The other driver may have found that it fails.
                    if state(self.folder, run.id) is State.FAILED:
                        failed += 1
                    else:
                        running[self._submit(run)] = run
                left = len(running) + len(later)
                self.watcher.update(left, total - left - failed, failed, best)
        finally:
            for future in running:
                future.cancel()
        return failed

    def _finished(
        self, running: dict[Future[Outcome], Run]
    ) -> list[tuple[Run, Outcome]]:
        """Waits for about a second; what has ended leaves `running`."""
        if not running:
            time.sleep(POLL)
        found, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        return [(run, self._outcome(f, run)) for f in found if (run := running.pop(f))]

    def _submit(self, run: Run) -> Future[Outcome]:
        resources = self.plan.resources
        job = Job(
            str(self.folder.resolve()),
            run.id,
            self.beacon.name,
            resources.cpus,
            resources.time,
        )
        return self.pool.submit(job)

    def _outcome(self, future: Future[Outcome], run: Run) -> Outcome:
        try:
            return future.result()
        except Exception as error:
            # A worker that could not even start the run: recorded, and on to the next.
            with contextlib.suppress(OSError):
                record_error(self.folder, run.id, type(error).__name__, str(error))
            return Outcome.FAILED


def _error(row: Row) -> float:
    """The error of a run, or its estimate; infinity where neither is known."""
    return min((e for e in (row.rel_l2, row.estimate) if e >= 0), default=math.inf)
