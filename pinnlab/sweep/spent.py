"""The seconds that all attempts at a run have taken, which may be limited."""

import contextlib
import time
from pathlib import Path

from pinnlab.errors import ProblemError
from pinnlab.sweep.folder import read_json, write_json


PERIOD = 10.0
"""Seconds after which the file is written again: so much is forgotten by a crash."""


class Spent:
    """The time of one attempt, and of those before it.

    **Arguments:**

    - `path`: where it is kept for the next attempt.
    - `limit`: seconds for all attempts; 0 for no limit, and no file.
    """

    def __init__(self, path: Path, limit: float):
        self._path = path
        self._limit = limit
        self._began = self._kept = time.monotonic()
        self._earlier = 0.0
        if limit:
            with contextlib.suppress(ProblemError, KeyError, TypeError, ValueError):
                self._earlier = float(read_json(path)["seconds"])

    @property
    def over(self) -> bool:
        """Whether the limit is reached. Keeps what was spent from time to time."""
        if self._limit and time.monotonic() - self._kept > PERIOD:
            self.keep()
        return 0 < self._limit < self._seconds

    def keep(self) -> None:
        """Write down what was spent up to now."""
        self._kept = time.monotonic()
        if self._limit:
            # What cannot be written is no reason to end the run.
            with contextlib.suppress(OSError, ProblemError):
                write_json(self._path, {"seconds": self._seconds})

    @property
    def _seconds(self) -> float:
        return self._earlier + time.monotonic() - self._began
