"""The search for the features: which frequencies and how many.

Least-squares solves are cheap, so boxes of frequencies are tried and the held-out
residual decides: the box is widened along the coordinate that helps most, then refitted
and grown.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pinnlab.linear.bands import bands
from pinnlab.linear.features import FULL, TOGETHER
from pinnlab.linear.forms import linear_form
from pinnlab.linear.solver import Form, Sheet, Solved, sheet, solve_features
from pinnlab.linear.space import find_space
from pinnlab.system.system import System


START = 2.0
RESOLVED = 0.05
GAIN = 1.3
COARSE, FINE = 900, 1.5
"""Boxes are doubled while that needs few features, then widened by less."""
ROWS_SEARCH, ROWS_FINAL = 2, 4


@dataclass(frozen=True)
class Found:
    """The best features, the box they came from, and how the search went."""

    solved: Solved
    box: np.ndarray
    tried: int


Tell = Callable[[str, int, float, float], bool]
"""Told the phase, the tries so far, the seconds and the best residual; True stops."""


class Search:
    """A search over boxes of frequencies for one linear system."""

    def __init__(
        self,
        system: System,
        seconds: float,
        seed: int,
        tell: Tell,
        form_of: Form = linear_form,
    ):
        self.system = system
        self.form_of = form_of
        self.lower = np.array([a.lower for a in system.problem.axes])
        self.upper = np.array([a.upper for a in system.problem.axes])
        names = system.coordinates
        self.periodic = tuple(names.index(p) for p in system.problem.periodic)
        self.seconds = seconds
        self.seed = seed
        self.tell = tell
        self.began = time.perf_counter()
        self.tried = 0
        self.stopped = False
        self.best: Found | None = None
        self.sheets: dict[int, Sheet] = {}
        self.space = find_space(system)
        self.test = sheet(self.space, 800, seed + 90_001, False, form_of)
        self.cost, self.largest = 1e-9, 400

    @property
    def capacity(self) -> int:
        """The most features that one solve can afford."""
        fields = len(self.system.fields)
        by_memory = int(4000 / fields)
        left = self.seconds - (time.perf_counter() - self.began)
        # A solve with N unknowns takes about cost * N^2.6 seconds.
        by_time = int((max(left, 0.1) / 1.5 / self.cost) ** (1 / 2.6) / fields)
        return max(40, min(by_memory, by_time))

    def size(self, box: np.ndarray) -> int:
        """The number of features that a box needs: it must follow the volume."""
        if len(box) > FULL:
            pairs = itertools.combinations(box, TOGETHER)
            return int(sum(1.2 * np.prod(0.64 * np.array(p) + 4.0) for p in pairs)) + 10
        extra = 10.0 if len(box) <= 2 else 6.0
        return int(1.2 * np.prod(0.64 * box + extra)) + 10

    def attempt(self, phase: str, box: np.ndarray, count: int, ratio: int) -> Solved:
        """One solve; keeps it if it is the best so far."""
        fields = len(self.system.fields)
        rows = ratio * count * fields
        if rows not in self.sheets:
            self.sheets[rows] = sheet(self.space, rows, self.seed, form_of=self.form_of)
        rng = np.random.default_rng((self.seed, self.tried))
        features = self.space.draw(count, box, rng)
        began = time.perf_counter()
        solved = solve_features(self.system, features, self.sheets[rows], self.test)
        spent = time.perf_counter() - began
        # The largest solve tells best what a larger one will take.
        if count * fields >= self.largest:
            self.largest = count * fields
            self.cost = spent / self.largest**2.6 * (2 / ratio)
        self.tried += 1
        if self.best is None or solved.worst < self.best.solved.worst:
            self.best = Found(solved, box, self.tried)
        elapsed = time.perf_counter() - self.began
        self.stopped = self.tell(phase, self.tried, elapsed, self.best.solved.worst)
        self.stopped |= elapsed > self.seconds
        return solved

    def run(self, goal: float) -> Found:
        """Search until the held-out residual is below the goal or time is up."""
        self._climb(goal)
        assert self.best is not None
        if not self._enough(goal):
            box = self.best.box
            count = max(self.best.solved.features.count, self.size(box))
            self.attempt("refit", box, min(count, self.capacity), ROWS_FINAL)
        while not self._enough(goal) and self._grow(goal):
            pass
        return self.best

    def _enough(self, goal: float) -> bool:
        assert self.best is not None
        return self.stopped or self.best.solved.worst < goal

    def _climb(self, goal: float) -> None:
        """Widen the box from small, each time along the coordinate that helps most.

        Where no single coordinate helps (nothing is resolved yet) all are widened.
        """
        # A periodic coordinate needs at least the first harmonic.
        box = np.full(len(self.lower), START)
        box[list(self.periodic)] = 2 * START
        score = self.attempt("search", box, self.size(box), ROWS_SEARCH).worst
        banded = np.maximum(box, bands(self.system, self.seed))
        if self.size(box) < self.size(banded) <= self.capacity:
            solved = self.attempt("search", banded, self.size(banded), ROWS_SEARCH)
            if solved.worst < score:
                box, score = banded, solved.worst
        while not self._enough(goal):
            factor = 2.0 if self.size(2 * box) < COARSE else FINE
            moves = [m for m in _widened(box, factor) if self.size(m) <= self.capacity]
            if not moves:
                return
            scored: list[tuple[float, int]] = []
            for i, move in enumerate(moves):
                solved = self.attempt("search", move, self.size(move), ROWS_SEARCH)
                scored.append((solved.worst, i))
                if self._enough(goal):
                    return
            best, which = min(scored)
            if best > score / GAIN and score < RESOLVED:
                return
            box = moves[-1] if best > score / GAIN else moves[which]
            score = min(score, best)

    def _grow(self, goal: float) -> bool:
        """Try larger variants of the best; False when none helps any more."""
        assert self.best is not None
        before, box = self.best.solved.worst, self.best.box
        count = self.best.solved.features.count
        variants = [(box, int(1.6 * count)), (box * 1.4, 0)]
        variants += [(wider, 0) for wider in _widened(box, 2.0)]
        for new, n in variants:
            if self._enough(goal):
                return False
            n = min(n or max(count, self.size(new)), self.capacity)
            if n < 0.8 * count:
                continue
            self.attempt("grow", new, n, ROWS_FINAL)
            if self.best.solved.worst * 10 < before:
                return True
        return self.best.solved.worst * GAIN < before


def _widened(box: np.ndarray, factor: float) -> list[np.ndarray]:
    """The box with each coordinate widened, and with all (last)."""
    axes = np.arange(len(box))
    moves = [np.where(axes == i, factor * box, box) for i in axes]
    if len(box) > FULL:
        return [factor * box]
    return moves if len(box) == 1 else [*moves, factor * box]
