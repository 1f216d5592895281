"""How a run goes on while it trains, told from its process to the others."""

import contextlib
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from pinnlab.errors import ProblemError
from pinnlab.record import Observation
from pinnlab.sweep.folder import files, read_json, write_json


PERIOD = 1.0
"""Seconds between two reports of a run."""


@dataclass(frozen=True)
class Going:
    """How far a run is.

    - `elapsed`, `budget`: seconds of training.
    - `heldout`: the smallest held-out residual up to now; NaN before the first.
    """

    stage: str
    iteration: int
    elapsed: float
    budget: float
    heldout: float

    @property
    def share(self) -> float:
        """How much of the budget is used, 0 to 1."""
        return min(self.elapsed / self.budget, 1.0)


class Reporter:
    """Writes how a run goes on into its folder, about every second."""

    def __init__(self, path: Path):
        self._path = path
        self._best = math.inf
        self._last = -math.inf

    def update(self, row: Observation, budget: float) -> None:
        """What a solver calls after every piece of training."""
        if row.heldout < self._best:
            self._best = row.heldout
        if time.monotonic() - self._last < PERIOD:
            return
        self._last = time.monotonic()
        heldout = self._best if self._best < math.inf else math.nan
        found = Going(row.stage, row.iteration, row.elapsed, budget, heldout)
        # A report that cannot be written is no reason to end the run.
        with contextlib.suppress(OSError, ProblemError):
            write_json(self._path, asdict(found))


def going(folder: Path, run: str) -> Going | None:
    """How far a run is; None where it does not train."""
    with contextlib.suppress(ProblemError, TypeError):
        return Going(**read_json(files(folder, run).going))
    return None


def training(folder: Path, runs: Iterable[str]) -> dict[str, Going]:
    """Those of the runs that train now."""
    end = ".going.json"
    names = {p.name.removesuffix(end) for p in (folder / "runs").glob(f"*{end}")}
    found = {run: going(folder, run) for run in runs if run in names}
    return {run: g for run, g in found.items() if g is not None}
