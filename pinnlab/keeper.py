"""When checkpoints are written and read, and what is said about it."""

import contextlib
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from pinnlab.checkpoint import (
    Identity,
    made_with,
    previous,
    read_checkpoint,
    write_checkpoint,
)
from pinnlab.errors import Preempted, ProblemError
from pinnlab.snapshot import Snapshot
from pinnlab.team import ALONE, Team


PERIOD = 30.0
"""Seconds between two checkpoints."""
SHARE = 20.0
"""A checkpoint is not written before this many times its own seconds have passed."""


class Signals(Protocol):
    """What asks a run to stop."""

    @property
    def received(self) -> int | None:
        """The signal that waits to be obeyed."""
        ...

    def deferred(self) -> AbstractContextManager[None]:
        """Inside, a signal waits; outside it acts at once."""
        ...


class Keeper:
    """Keeps the checkpoints of one run.

    **Arguments:**

    - `path`: of the newest checkpoint.
    - `resume`: whether to go on from a checkpoint that is there.
    - `say`: told what users should know.
    - `signals`: what asks the run to stop; None: only exceptions do.
    - `team`: the processes of the run, which all call its methods. The first decides
        when a checkpoint is due and writes it; a signal to any of them counts for all.
    """

    def __init__(
        self,
        path: Path,
        *,
        resume: bool = False,
        say: Callable[[str], None] = lambda message: None,
        signals: Signals | None = None,
        team: Team = ALONE,
    ):
        self.path = path
        self.resume = resume
        self.say = say
        self.signals = signals
        self.team = team
        self.identity: Identity | None = None
        self.problems: set[str] = set()
        self.last, self.cost = time.monotonic(), 0.0
        self.owned = False
        self.parts: list[Keeper] = []

    def part(self, index: int) -> "Keeper":
        """The keeper of one of several trainings of the run, one after another.

        The first is this one; the others have checkpoints `NAME.1.ckpt`, ...
        """
        if index == 0:
            return self
        name = f"{self.path.stem}.{index}{self.path.suffix}"
        made = Keeper(
            self.path.with_name(name),
            resume=self.resume,
            say=self.say,
            signals=self.signals,
            team=self.team,
        )
        self.parts.append(made)
        return made

    def deferring(self) -> AbstractContextManager[None]:
        """Inside, a signal waits for the next `pause`."""
        return self.signals.deferred() if self.signals else nullcontext()

    def start(self, identity: Identity) -> Snapshot | None:
        """What the run goes on from; None where it starts anew.

        Raises `ProblemError` for the checkpoint of another run, or where the processes
        do not read the same.
        """
        found = self._found(identity)
        own = -1.0 if found is None else float(found.record.iterations)
        if len({tuple(seen) for seen in self.team.gathered([own])}) > 1:
            raise ProblemError(
                f"{self.path}: not all processes find the same checkpoint",
                hint="start all in one folder that they share, as over NFS",
            )
        return found

    def _found(self, identity: Identity) -> Snapshot | None:
        self.identity = identity
        self.last = time.monotonic()
        there = [p for p in (self.path, previous(self.path)) if p.exists()]
        if not self.resume:
            if there:
                self.say(f"{there[0]} will be replaced: --resume would go on from it")
            return None
        for path in there:
            try:
                found = read_checkpoint(path, identity)
            except (OSError, ValueError) as error:
                if isinstance(error, ProblemError):
                    raise
                self.say(f"warning: {path} is not used: {error}")
                continue
            self.owned = True
            self.say(
                f"going on from {path}, iteration {found.snapshot.record.iterations}"
            )
            if found.made_with != made_with():
                was = f"{found.made_with}; this is {made_with()}"
                self.say(f"warning: it was written by {was}: the last bits may differ")
            return found.snapshot
        self.say(f"there is no checkpoint {self.path} to go on from: starting anew")
        return None

    def pause(self, take: Callable[[], Snapshot]) -> bool:
        """Write a checkpoint if one is due or a signal came; whether to stop.

        Raises `Preempted` where the run is to be continued later.
        """
        own = self.signals.received if self.signals else None
        waited = time.monotonic() - self.last
        seen = self.team.gathered([waited > max(PERIOD, SHARE * self.cost), own or 0])
        due, signum = bool(seen[0][0]), max(int(s) for _, s in seen) or None
        failure = self._write(take()) if due or signum is not None else None
        if signum is None or signum == signal.SIGINT:
            return signum is not None
        name = signal.Signals(signum).name
        if failure is not None and not self.path.exists():
            raise OSError(f"stopped by {name}, and {failure}")
        raise Preempted(f"stopped by {name}: --resume goes on from {self.path}")

    def _write(self, snapshot: Snapshot) -> str | None:
        """What went wrong, if anything: it must not end the run."""
        if not self.team.leads:
            return None
        assert self.identity is not None
        began = time.monotonic()
        failure = None
        try:
            write_checkpoint(self.path, snapshot, self.identity)
            self.owned = True
        except (OSError, ProblemError, MemoryError) as error:
            failure = f"no checkpoint could be written: {error}"
            if failure not in self.problems:
                self.problems.add(failure)
                self.say(f"warning: {failure}")
                snapshot.record.events.append(failure)
        self.last = time.monotonic()
        self.cost = self.last - began
        return failure

    def finish(self) -> None:
        """The result is written: checkpoints of this run are removed."""
        for path in (self.path, previous(self.path)) if self.owned else ():
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        for part in self.parts:
            part.finish()
