"""Refine a marched solution in space and time until it is as good as asked for."""

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pinnlab.metrics import relative_l2
from pinnlab.reference.reference import Effort, NoReference
from pinnlab.reference.trajectory import Marched


MISSED = 0.1
"""Two grids may both miss a pulse: more of the initial values lost is an error."""
FACTORS = (1.5, 2, 3, 4, 6, 8, 12, 16)
"""By what the resolution in space is multiplied."""


class Resolution(Protocol):
    """A discretization in space that can be marched in any number of steps."""

    def run(self, steps: int, coarse: bool) -> Marched:
        """March; `coarse` with two thirds of the resolution in space."""
        ...

    def label(self, steps: int) -> str:
        """The method and the resolution, for people."""
        ...


@dataclass(frozen=True)
class Limits:
    """Where refinement in space starts and ends, and the fewest steps.

    - `factor`: the most by which the resolution in space is multiplied at once.
    - `power`: the seconds of a step grow with this power of the count.
    - `most_steps`: beyond, time is not refined.
    """

    count: int
    most: int
    steps: int
    factor: float
    power: int
    most_steps: int


@dataclass(frozen=True, eq=False)
class Refined:
    """The best solution, its error per field, and how it was reached."""

    trajectory: Marched
    errors: np.ndarray
    label: str
    efforts: tuple[Effort, ...]


@dataclass(frozen=True, eq=False)
class _Measured:
    """One resolution: the changes that coarser time and space make, per field."""

    count: int
    steps: int
    label: str
    in_time: np.ndarray
    in_space: np.ndarray
    seconds: float

    @property
    def errors(self) -> np.ndarray:
        return self.in_time + self.in_space

    @property
    def worst(self) -> float:
        return float(np.max(self.errors))


@dataclass(eq=False)
class _Runs:
    """The runs of one count so far: values on the result grid, [fields, points]."""

    resolution: Resolution
    points: np.ndarray
    values: dict[tuple[int, bool], np.ndarray] = field(default_factory=dict)
    seconds: dict[tuple[int, bool], float] = field(default_factory=dict)
    finest: Marched | None = None
    compiling: float = 0.0

    def warm_up(self, steps: int) -> None:
        """Compile by a run that is not timed."""
        begin = time.perf_counter()
        for coarse in (False, True):
            self.resolution.run(steps, coarse)
        self.compiling = time.perf_counter() - begin

    def get(self, steps: int, coarse: bool = False) -> np.ndarray:
        key = (steps, coarse)
        if key not in self.values:
            begin = time.perf_counter()
            trajectory = self.resolution.run(steps, coarse)
            self.seconds[key] = time.perf_counter() - begin
            if np.isfinite(trajectory.values).all():
                self.values[key] = trajectory.at(self.points).T
            else:
                shape = (len(trajectory.values), len(self.points))
                self.values[key] = np.full(shape, np.nan)
            if not coarse:
                self.finest = trajectory
        return self.values[key]


def refine(
    make: Callable[[int], Resolution],
    limits: Limits,
    points: np.ndarray,
    error: float,
    deadline: float,
) -> Refined:
    """Refine until the estimated relative L2 error of every field is below `error`.

    The error is the difference to a solution with two thirds of the resolution in
    space, plus the one to a solution with half the steps; the latter is divided where
    a third solution shows its order.

    **Arguments:**

    - `points`: the result grid, [n, dim].
    - `deadline`: the `time.perf_counter()` after which nothing new is begun.

    Raises `NoReference` where no solution is stable in time.
    """
    count, steps = limits.count, 2 * limits.steps
    runs = _begin(make, count, limits, points)
    best: Refined | None = None
    history: list[_Measured] = []
    while True:
        now = _measure(runs, count, steps)
        history.append(now)
        assert runs.finest is not None
        if best is None or now.worst < best.errors.max():
            best = Refined(runs.finest, now.errors, now.label, ())
        if now.worst <= error or _stagnates(history):
            break
        left = deadline - time.perf_counter()
        ahead = _affordable(history, limits, error / 2, runs.compiling, left)
        if ahead is None:
            break
        count, steps = ahead
        if count != now.count:
            runs = _begin(make, count, limits, points)
    if not np.isfinite(best.errors).all():
        raise NoReference("no resolution that fits the time is stable")
    efforts = tuple(Effort(m.label, m.worst, m.seconds) for m in history)
    return dataclasses.replace(best, efforts=efforts)


def _affordable(
    history: list[_Measured],
    limits: Limits,
    wish: float,
    compiling: float,
    left: float,
) -> tuple[int, int] | None:
    """The next count and steps; None where nothing finer fits the seconds left."""
    now = history[-1]
    count, steps = _next(history, limits, wish)
    # What would reach the wish may not fit, and something smaller may.
    smaller = min(count, 2 * round(0.75 * now.count)), min(steps, 2 * now.steps)
    for more, finer in ((count, steps), smaller):
        growth = (more / now.count) ** limits.power * (finer / now.steps)
        ahead = 2.5 * growth * now.seconds + (more != now.count) * compiling
        if (more, finer) != (now.count, now.steps) and ahead <= left:
            return more, finer
    return None


def _begin(
    make: Callable[[int], Resolution], count: int, limits: Limits, points: np.ndarray
) -> _Runs:
    runs = _Runs(make(count), points)
    runs.warm_up(limits.steps)
    return runs


def _measure(runs: _Runs, count: int, steps: int) -> _Measured:
    in_time = _time_error(runs, steps)
    in_space = _distance(runs.get(steps, coarse=True), runs.get(steps))
    assert runs.finest is not None
    missed = runs.finest.missed(runs.points)
    in_space = np.where(missed > MISSED, np.fmax(in_space, missed), in_space)
    label, spent = runs.resolution.label(steps), runs.seconds[steps, False]
    return _Measured(count, steps, label, in_time, in_space, spent)


def _time_error(runs: _Runs, steps: int) -> np.ndarray:
    """The difference to half the steps, divided by what the observed order allows."""
    half = runs.get(steps // 2)
    difference = _distance(half, runs.get(steps))
    if (steps // 4, False) not in runs.values:
        return difference
    before = _distance(runs.get(steps // 4), half)
    with np.errstate(invalid="ignore"):
        ratio = np.nan_to_num(before / np.maximum(difference, 1e-300))
    return difference / np.clip(ratio - 1, 1.0, 7.0)


def _distance(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Relative L2 per field; infinite where a solution is not finite."""
    found = [relative_l2(a, b) for a, b in zip(coarse, fine, strict=True)]
    return np.where(np.isfinite(found), found, np.inf)


def _next(history: list[_Measured], limits: Limits, wish: float) -> tuple[int, int]:
    """The count and the steps that should bring both errors below the wish."""
    now = history[-1]
    in_time, in_space = float(now.in_time.max()), float(now.in_space.max())
    if not np.isfinite(in_time):
        return now.count, min(4 * now.steps, limits.most_steps)
    count, steps = now.count, now.steps
    if in_space > wish:
        factor = min(_count_factor(history, wish), limits.factor)
        count = min(2 * round(now.count * factor / 2), limits.most)
    # Where space is not resolved, the error in time means little.
    if in_time > wish and (in_space < 1e-2 or count == now.count):
        steps = min(steps * _steps_factor(in_time, wish), limits.most_steps)
    return count, steps


def _steps_factor(now: float, wish: float) -> int:
    """For the fourth order, a power of two up to 16."""
    return 2 ** min(4, max(1, math.ceil(math.log2(now / wish) / 4)))


def _count_factor(history: list[_Measured], wish: float) -> float:
    """For an error exp(-a count): log(wish)/log(error), rounded up to one of FACTORS.

    Where the last refinement showed a low order p, (error/wish)^(1/p).
    """
    error = float(history[-1].in_space.max())
    if not error < 0.5:
        return 4
    ratio = math.log(wish) / math.log(error)
    if len(history) > 1 and history[-2].count < history[-1].count:
        before = float(history[-2].in_space.max())
        gain = math.log(history[-1].count / history[-2].count)
        order = max(0.5, math.log(before / error) / gain)
        if order < 3:
            ratio = (error / wish) ** (1 / order)
    return next((f for f in FACTORS if f >= ratio), FACTORS[-1])


def _stagnates(history: list[_Measured]) -> bool:
    """Whether rounding has stopped the last two refinements from helping."""
    if len(history) < 3 or not history[-1].worst < 1e-6:
        return False
    return min(m.worst for m in history[-2:]) > 0.7 * history[-3].worst
