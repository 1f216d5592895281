"""The search for the features: which frequencies and how many.

Least-squares solves are cheap, so boxes of frequencies are tried and the held-out
residual decides: the box is widened along the coordinate that helps most, then refitted
and grown.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pinnlab.clock import Clock
from pinnlab.linear.bands import bands, centers
from pinnlab.linear.box import FULL, Box
from pinnlab.linear.solver import Sheet, Solved, folded, sheet, solve_features
from pinnlab.linear.space import find_space
from pinnlab.system.forms import Form, linear_form
from pinnlab.system.system import System


START = 2.0
RESOLVED = 0.05
GAIN, MUCH = 1.3, 10.0
DENSER = 1.5
PATIENCE = 3
"""Widenings that may not help where there are singular functions."""
COARSE, FINE = 900, 1.5
"""Boxes are doubled while that needs few features, then widened by less."""
ROWS_SEARCH, ROWS_FINAL = 2, 4
ROUNDED = 512
"""Rows are a multiple, so that the terms at few numbers of points are needed."""


@dataclass(frozen=True)
class Found:
    """The best features, the box they came from, and how the search went."""

    solved: Solved
    box: Box
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
        clock: Clock | None = None,
    ):
        self.clock = clock or Clock()
        self.began = self.clock.spent
        self.system = system
        self.form_of = form_of
        self.lower = np.array([a.lower for a in system.problem.axes])
        self.upper = np.array([a.upper for a in system.problem.axes])
        names = system.coordinates
        self.periodic = tuple(names.index(p) for p in system.problem.periodic)
        self.seconds = seconds
        self.seed = seed
        self.tell = tell
        self.tried = 0
        self.stopped = False
        self.best: Found | None = None
        self.sheets: dict[int, Sheet] = {}
        self.space = find_space(system, symmetric=form_of is linear_form)
        self.test = sheet(self.space, 800, seed + 90_001, False, form_of)
        self.cost, self.largest = 1e-9, 400

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self.clock.spent - self.began

    @property
    def capacity(self) -> int:
        """The most features that one solve can afford."""
        fields = len(self.system.fields)
        by_memory = int(4000 / fields)
        left = self.seconds - self.spent
        # A solve with N unknowns takes about cost * N^2.6 seconds.
        by_time = int((max(left, 0.1) / 1.5 / self.cost) ** (1 / 2.6) / fields)
        return max(40, min(by_memory, by_time - self.space.extra))

    def attempt(self, phase: str, box: Box, count: int, ratio: int) -> Solved:
        """One solve; keeps it if it is the best so far."""
        fields = len(self.system.fields)
        turns = 2 ** len(self.space.mirrors)
        unknowns = (count + self.space.extra) * fields
        rows = ROUNDED * -(-ratio * unknowns // (turns * ROUNDED))
        if rows not in self.sheets:
            self.sheets[rows] = (
                folded(self.space, rows, self.seed)
                if self.space.mirrors
                else sheet(self.space, rows, self.seed, form_of=self.form_of)
            )
        rng = np.random.default_rng((self.seed, self.tried))
        features = self.space.draw(count, box, rng)
        began = self.clock.spent
        solved = solve_features(self.system, features, self.sheets[rows], self.test)
        spent = self.clock.spent - began
        # The largest solve tells best what a larger one will take.
        if unknowns >= self.largest:
            self.largest = unknowns
            self.cost = spent / self.largest**2.6 * (2 / ratio)
        self.tried += 1
        if self.best is None or solved.worst < self.best.solved.worst:
            self.best = Found(solved, box, self.tried)
        elapsed = self.spent
        self.stopped = self.tell(phase, self.tried, elapsed, self.best.solved.worst)
        self.stopped |= elapsed > self.seconds
        return solved

    def run(self, goal: float, start: Box | None = None) -> Found:
        """Search until the held-out residual is below the goal or time is up.

        `start`: a box that served a similar system; else the search begins small.
        """
        if start is None or start.size > self.capacity:
            self._climb(goal)
        else:
            self._widen(start, self._tried(start), goal)
        assert self.best is not None
        if not self._enough(goal):
            box = self.best.box
            count = max(self.best.solved.features.count, box.size)
            self.attempt("refit", box, min(count, self.capacity), ROWS_FINAL)
        while not self._enough(goal) and self._grow(goal):
            pass
        return self.best

    def _enough(self, goal: float) -> bool:
        assert self.best is not None
        return self.stopped or self.best.solved.worst < goal

    def _climb(self, goal: float) -> None:
        """Widen the box from small, each time along the coordinate that helps most.

        It begins with the frequencies of the data, those of a narrow band alone first:
        nothing else is needed where the solution has them too. Of many coordinates
        features of two are tried first, and of all where these say little.
        """
        count = len(self.lower)
        # A periodic coordinate needs at least the first harmonic.
        width = np.full(count, START)
        width[list(self.periodic)] = 2 * START
        start = Box(np.zeros(count), width, self.periodic)
        score = self._tried(start)
        if count > FULL and score > RESOLVED and not self._enough(goal):
            found = self._tried(start.mixed())
            if found < score:
                self._widen(start.mixed(), found, goal)
                return
        narrow = Box(centers(self.system, self.seed), width, self.periodic)
        if narrow.center.any() and narrow.size <= self.capacity:
            found = self._tried(narrow)
            if found < min(score, RESOLVED) or self._enough(goal):
                self._widen(narrow, found, goal)
                return
        width = np.maximum(width, bands(self.system, self.seed))
        wide = Box(start.center, width, self.periodic)
        if start.size < wide.size <= self.capacity:
            found = self._tried(wide)
            if found < score:
                start, score = wide, found
        self._widen(start, score, goal)

    def _tried(self, box: Box) -> float:
        return self.attempt("search", box, box.size, ROWS_SEARCH).worst

    def _widen(self, box: Box, score: float, goal: float) -> None:
        """More features where these help much, or else other frequencies.

        Widen all where no single coordinate helps: nothing is resolved yet. Singular
        functions may explain much alone, so that nothing seems to help for a while.
        """
        patience = PATIENCE if self.space.corners else 0
        while not self._enough(goal):
            scored: list[tuple[float, int]] = []
            moves = [box.denser(DENSER)]
            resolved = score < RESOLVED
            if (resolved or box.is_mixed) and moves[0].size <= self.capacity:
                scored.append((self._tried(moves[0]), 0))
                if scored[0][0] < score / MUCH:
                    box, score = moves[0], scored[0][0]
                    continue
            factor = 2.0 if box.times(2).size < COARSE else FINE
            moves += box.widened(factor)
            for i, move in enumerate(moves[1:], start=1):
                if move.size <= self.capacity and not self._enough(goal):
                    scored.append((self._tried(move), i))
            if not scored or self._enough(goal):
                return
            best, which = min(scored)
            helps = best < score / GAIN
            if not helps and (box.is_mixed or moves[-1].size > self.capacity):
                return
            if not helps and resolved:
                patience -= 1
                if patience < 0:
                    return
            box = moves[which] if helps else moves[-1]
            score = min(score, best)

    def _grow(self, goal: float) -> bool:
        """Try larger variants of the best; False when none helps any more."""
        assert self.best is not None
        before, box = self.best.solved.worst, self.best.box
        count = self.best.solved.features.count
        variants = [(box, int(1.6 * count)), (box.times(1.4), 0)]
        variants += [(wider, 0) for wider in box.widened(2.0)]
        for new, n in variants:
            if self._enough(goal):
                return False
            n = min(n or max(count, new.size), self.capacity)
            if n < 0.8 * count:
                continue
            self.attempt("grow", new, n, ROWS_FINAL)
            if self.best.solved.worst * 10 < before:
                return True
        return self.best.solved.worst * GAIN < before
