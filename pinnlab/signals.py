"""Signals that ask a run to stop: Ctrl-C, and what Slurm sends before it ends a job."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pinnlab.errors import Preempted


ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Listener:
    """Hears signals, from `listening`.

    A signal raises `KeyboardInterrupt` (SIGINT) or `Preempted` (the others) at once, or
    where it is deferred waits in `received`. A second one does not wait.
    """

    def __init__(self):
        self.received: int | None = None
        self._deferring = 0

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, a first signal waits in `received`."""
        self._deferring += 1
        try:
            yield
        finally:
            self._deferring -= 1

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """What Python calls when a signal arrives."""
        first, self.received = self.received is None, signum
        if self._deferring and first:
            return
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        name = signal.Signals(signum).name
        raise Preempted(f"stopped by {name}: --resume goes on, or starts anew")


@contextmanager
def listening() -> Iterator[Listener]:
    """Hears signals inside the block; what was in force before comes back after it."""
    listener = Listener()
    before = [(s, signal.signal(s, listener.handle)) for s in ASKED]
    try:
        yield listener
    finally:
        for signum, handler in before:
            signal.signal(signum, handler)
