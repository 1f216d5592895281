"""The driver of a sweep: hands out runs until none is missing."""

import contextlib
import math
import os
import secrets
import socket
import time
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pinnlab.atomic import remove_strays
from pinnlab.errors import Preempted
from pinnlab.sweep.beacon import lit
from pinnlab.sweep.folder import State, drivers, record_error, state
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.pools import Pool
from pinnlab.sweep.resources import Resources
from pinnlab.sweep.supervise import LOOK, POLL, Job, Outcome
from pinnlab.sweep.table import Row, read_row


PATIENCE = 3.0
"""Seconds until a run that another driver works on is asked for again."""


@dataclass(frozen=True)
class Tally:
    """How far a sweep is, in numbers of runs.

    - `best`: the smallest error of the runs of this driver, infinity before one.
    """

    left: int
    done: int
    failed: int
    pruned: int
    best: float


class Watcher(Protocol):
    """Something that shows how a sweep goes on."""

    def update(self, tally: Tally, submitted: Collection[Run]) -> None:
        """Called about every second; `submitted` are runs that work or wait."""
        ...


class Work(Protocol):
    """The runs that a driver hands out: a plan, or what a search asks for.

    `again`: the command that goes on with it.
    """

    again: str

    @property
    def total(self) -> int:
        """The number of runs that there will have been at the end."""
        ...

    @property
    def waiting(self) -> int:
        """The number of runs that `more` has not given yet."""
        ...

    def more(self, busy: int, size: int) -> list[Run]:
        """Runs to be submitted now, beside `busy` ones to a pool of this size."""
        ...

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Called once for each run that is done, has failed or was pruned."""
        ...

    def look(self) -> None:
        """Called about every second."""
        ...


class Missing:
    """All runs of a plan that have no result yet."""

    def __init__(self, folder: Path, plan: Plan):
        ended = State.DONE, State.PRUNED
        self.again = f"pinnlab sweep resume {folder}"
        self.total = len(plan.runs)
        self._runs = [r for r in plan.runs if state(folder, r.id) not in ended]

    @property
    def waiting(self) -> int:
        """None are left after the first call of `more`."""
        return len(self._runs)

    def more(self, busy: int, size: int) -> list[Run]:
        """All of them at once."""
        found, self._runs = self._runs, []
        return found

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Nothing depends on it."""

    def look(self) -> None:
        """Nothing to see."""


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
    return drive_work(folder, plan.resources, Missing(folder, plan), pool, watcher)


def drive_work(
    folder: Path, resources: Resources, work: Work, pool: Pool, watcher: Watcher
) -> Ending:
    """Do what there is to do, until nothing is left."""
    remove_strays(folder / "runs")
    with _driver(folder) as beacon:
        round_ = _Round(folder, resources, pool, beacon, watcher)
        try:
            tally = round_.all_of(work)
        except (KeyboardInterrupt, Preempted):
            # Without its driver's beacon every run stops, wherever it is.
            beacon.unlink(missing_ok=True)
            tally = round_.tally
        stopped = not beacon.exists() and tally.left > 0
    return Ending(tally.done, tally.failed, stopped)


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


class _Round:
    """One driver at work; `tally`: how far it is."""

    def __init__(
        self,
        folder: Path,
        resources: Resources,
        pool: Pool,
        beacon: Path,
        watcher: Watcher,
    ):
        self.folder = folder
        self.resources = resources
        self.pool = pool
        self.beacon = beacon
        self.watcher = watcher
        self.tally = Tally(0, 0, 0, 0, math.inf)

    def all_of(self, work: Work) -> Tally:
        """Submit runs until each is done, has failed or was pruned."""
        self._count(work, 0)
        running: dict[Future[Outcome], Run] = {}
        later: list[tuple[float, Run]] = []
        try:
            while self.beacon.exists():
                for run in work.more(len(running) + len(later), self.pool.size):
                    running[self._submit(run)] = run
                if not running and not later:
                    self._count(work, 0)
                    break
                for run, outcome in self._finished(running):
                    if outcome in (Outcome.BUSY, Outcome.STOPPED):
                        later.append((time.monotonic() + PATIENCE, run))
                    else:
                        self._ended(work, run, outcome)
                due = [run for when, run in later if when <= time.monotonic()]
                later = [(when, run) for when, run in later if run not in due]
                waiting = [run for _, run in later]
                for run in due:
                    # The other driver may have found that it fails.
                    if state(self.folder, run.id) is State.FAILED:
                        self._ended(work, run, Outcome.FAILED)
                    else:
                        running[self._submit(run)] = run
                work.look()
                self._count(work, len(running) + len(later))
                self.watcher.update(self.tally, [*running.values(), *waiting])
        finally:
            for future in running:
                future.cancel()
        return self.tally

    def _ended(self, work: Work, run: Run, outcome: Outcome) -> None:
        found = self.tally
        best = found.best
        if outcome is Outcome.DONE:
            best = min(best, _error(read_row(self.folder, run)))
        self.tally = replace(
            found,
            failed=found.failed + (outcome is Outcome.FAILED),
            pruned=found.pruned + (outcome is Outcome.PRUNED),
            best=best,
        )
        work.ended(run, outcome)

    def _count(self, work: Work, busy: int) -> None:
        left = work.waiting + busy
        done = work.total - left - self.tally.failed - self.tally.pruned
        self.tally = replace(self.tally, left=left, done=done)

    def _finished(
        self, running: dict[Future[Outcome], Run]
    ) -> list[tuple[Run, Outcome]]:
        """Waits for about a second; what has ended leaves `running`."""
        if not running:
            time.sleep(POLL)
        found, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        return [(run, self._outcome(f, run)) for f in found if (run := running.pop(f))]

    def _submit(self, run: Run) -> Future[Outcome]:
        job = Job(
            str(self.folder.resolve()),
            run.id,
            self.beacon.name,
            self.resources.cpus,
            self.resources.time,
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
