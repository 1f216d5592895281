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
from pinnlab.sweep.alike import Runs, batched
from pinnlab.sweep.beacon import lit
from pinnlab.sweep.folder import State, drivers, record_error, state
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.pools import Pool
from pinnlab.sweep.resources import Resources
from pinnlab.sweep.supervise import LOOK, OUTCOMES, POLL, Job, Outcome
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

    def update(self, tally: Tally, submitted: Collection[Runs]) -> None:
        """Called about every second; `submitted` are batches that work or wait."""
        ...


class Work(Protocol):
    """The runs that a driver hands out: a plan, or what a search asks for.

    They come in batches, each for one process, which is that of its first run.

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

    def more(self, busy: int, size: int) -> list[Runs]:
        """Batches to be submitted now, beside `busy` ones to a pool of this size."""
        ...

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Called once for each run that is done, has failed or was pruned."""
        ...

    def look(self) -> None:
        """Called about every second."""
        ...


class Missing:
    """All runs of a plan that have no result yet.

    **Arguments:**

    - `seconds`: that a process should take at most.
    """

    def __init__(self, folder: Path, plan: Plan, seconds: float = math.inf):
        ended = State.DONE, State.PRUNED
        self.again = f"pinnlab sweep resume {folder}"
        self.total = len(plan.runs)
        self._plan, self._seconds = plan, seconds
        self._runs = [r for r in plan.runs if state(folder, r.id) not in ended]

    @property
    def waiting(self) -> int:
        """None are left after the first call of `more`."""
        return len(self._runs)

    def more(self, busy: int, size: int) -> list[Runs]:
        """All of them at once."""
        found, self._runs = self._runs, []
        return batched(found, self._plan, size, self._seconds)

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
        """Submit batches until each run is done, has failed or was pruned."""
        self._count(work, [])
        running: dict[Future[Outcome], Runs] = {}
        later: list[tuple[float, Runs]] = []
        try:
            while self.beacon.exists():
                for batch in work.more(len(running) + len(later), self.pool.size):
                    running[self._submit(batch)] = batch
                if not running and not later:
                    self._count(work, [])
                    break
                for batch, outcome in self._finished(running):
                    again = time.monotonic() + PATIENCE
                    later += [(again, b) for b in self._left(work, batch, outcome)]
                due = [batch for when, batch in later if when <= time.monotonic()]
                later = [(when, batch) for when, batch in later if batch not in due]
                for batch in due:
                    if left := self._missing(work, batch):
                        running[self._submit(left)] = left
                work.look()
                open_ones = [*running.values(), *(batch for _, batch in later)]
                self._count(work, open_ones)
                self.watcher.update(self.tally, open_ones)
        finally:
            for future in running:
                future.cancel()
        return self.tally

    def _left(self, work: Work, batch: Runs, outcome: Outcome) -> list[Runs]:
        """What is to be asked for later when the process of a batch has ended."""
        first, *others = batch
        if outcome is Outcome.STOPPED:
            return [batch]
        if outcome is Outcome.BUSY:
            return [b for b in ((first,), tuple(others)) if b]
        self._ended(work, first, outcome)
        # Those that the process did not get to are done alone: it may have died of all.
        return [(run,) for run in self._missing(work, tuple(others))]

    def _missing(self, work: Work, runs: Runs) -> Runs:
        """Those that have not ended. Another driver may have found that one fails."""
        states = [state(self.folder, run.id) for run in runs]
        for run, found in zip(runs, states, strict=True):
            if found in OUTCOMES:
                self._ended(work, run, OUTCOMES[found])
        return tuple(r for r, s in zip(runs, states, strict=True) if s not in OUTCOMES)

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

    def _count(self, work: Work, open_ones: Collection[Runs]) -> None:
        left = work.waiting + sum(map(len, open_ones))
        done = work.total - left - self.tally.failed - self.tally.pruned
        self.tally = replace(self.tally, left=left, done=done)

    def _finished(
        self, running: dict[Future[Outcome], Runs]
    ) -> list[tuple[Runs, Outcome]]:
        """Waits for about a second; what has ended leaves `running`."""
        if not running:
            time.sleep(POLL)
        found, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        ended = [(running.pop(future), future) for future in found]
        return [(batch, self._outcome(f, batch[0])) for batch, f in ended]

    def _submit(self, batch: Runs) -> Future[Outcome]:
        first, *others = batch
        job = Job(
            str(self.folder.resolve()),
            first.id,
            self.beacon.name,
            self.resources.cpus,
            self.resources.time,
            tuple(run.id for run in others),
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
