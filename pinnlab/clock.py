"""Time that is charged against a budget: compilation is not."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds since its start, those of compilation apart."""

    def __init__(self):
        self._began = time.perf_counter()
        self.compiling = 0.0

    @property
    def spent(self) -> float:
        """Seconds of all but compilation."""
        return time.perf_counter() - self._began - self.compiling

    @contextmanager
    def compilation(self) -> Iterator[None]:
        """What is done inside counts as compilation."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.compiling += time.perf_counter() - began
