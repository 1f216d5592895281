"""Traces of JAX's profiler, short enough to be kept in memory: `solve --profile`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import equinox as eqx
import jax
from jaxtyping import Array

from pinnlab.programs import Programs, Stage
from pinnlab.residual import LeastSquares


SPAN = 1.0
"""Seconds of a trace. Half a gigabyte of events a second of training is usual."""


class Profiler:
    """Traces the beginning of a run, and the steps of each stage once compiled.

    Each trace is a folder of its own, named by the time, in `folder/plugins/profile`.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.open = threading.Lock()
        self.timer = threading.Timer(0.0, self._stop)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Traces inside the block only."""
        self.trace()
        try:
            yield
        finally:
            self.end()

    def trace(self) -> None:
        """Begins a trace of `SPAN` seconds; one that still goes on is ended."""
        self.end()
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # every call of Python would be an event
        self.open.acquire()
        jax.profiler.start_trace(str(self.folder), profiler_options=options)
        self.timer = threading.Timer(SPAN, self._stop)
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        """Ends and writes the trace that goes on, if one does."""
        self.timer.cancel()
        if self.timer.is_alive():
            self.timer.join()
        if self.open.locked():
            self._stop()

    def _stop(self) -> None:
        jax.profiler.stop_trace()
        self.open.release()

    def inspect(self, stage: Stage, programs: Programs) -> Programs:
        """The programs, of which the second call begins a trace."""
        return eqx.tree_at(
            lambda p: p.advance, programs, self._advancing(programs.advance)
        )

    def _advancing(self, advance: Callable) -> Callable:
        calls = 0

        def traced(objective: LeastSquares, carry: tuple, count: Array) -> tuple:
            nonlocal calls
            calls += 1
            if calls == 2:
                self.trace()
            return advance(objective, carry, count)

        return traced
