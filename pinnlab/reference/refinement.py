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
from pinnlab.reference.trajectory import Trajectory


class Resolution(Protocol):
    """A discretization in space that can be marched in any number of steps."""

    def run(self, steps: int, coarse: bool) -> Trajectory:
        """March; `coarse` with two thirds of the resolution in space."""
        ...


@dataclass(frozen=True)
class Limits:
    """Where refinement in space starts and ends, and the fewest steps."""

    count: int
    most: int
    steps: int


@dataclass(frozen=True, eq=False)
class Refined:
    """The finest solution, its error per field, and how it was reached."""

    trajectory: Trajectory
    errors: np.ndarray
    count: int
    steps: int
    efforts: tuple[Effort, ...]


@dataclass(eq=False)
class _Runs:
    """The runs of one count so far: values on the result grid, [fields, points]."""

    resolution: Resolution
    points: np.ndarray
    values: dict[tuple[int, bool], np.ndarray] = field(default_factory=dict)
    seconds: dict[tuple[int, bool], float] = field(default_factory=dict)
    finest: Trajectory | None = None
    compiling: float = 0.0

    def warm_up(self, steps: int) -> None:
        """Compile by a run that is not timed."""
        begin = time.perf_counter()
        self.resolution.run(steps, False)
        self.compiling = time.perf_counter() - begin

    def get(self, steps: int, coarse: bool = False) -> np.ndarray:
        key = (steps, coarse)
        if key not in self.values:
            begin = time.perf_counter()
            trajectory = self.resolution.run(steps, coarse)
            self.seconds[key] = time.perf_counter() - begin
            self.values[key] = trajectory.at(self.points).T
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
    efforts: list[Effort] = []
    while True:
        in_time = _time_error(runs, steps)
        fine = runs.get(steps)
        trajectory = runs.finest
        assert trajectory is not None
        in_space = _distance(runs.get(steps, coarse=True), fine)
        errors = in_time + in_space
        worst, spent = float(np.max(errors)), runs.seconds[steps, False]
        efforts.append(Effort(f"{count}, {steps} steps", worst, spent))
        if best is None or worst < best.errors.max():
            best = Refined(trajectory, errors, count, steps, tuple(efforts))
        if worst <= error or _stagnates(efforts):
            break
        if in_time.max() >= in_space.max():
            factor = _steps_factor(in_time.max(), error / 2)
            steps, ahead = steps * factor, 2.5 * factor * spent
        else:
            finer = min(count * _count_factor(in_space.max(), error / 2), limits.most)
            ahead = runs.compiling + 3 * finer / count * spent
        if time.perf_counter() + ahead > deadline:
            break
        if in_time.max() < in_space.max():
            if finer == count:
                break
            count = finer
            runs = _begin(make, count, limits, points)
    if not np.isfinite(best.errors).all():
        raise NoReference("no resolution that fits the time is stable")
    return dataclasses.replace(best, efforts=tuple(efforts))


def _begin(
    make: Callable[[int], Resolution], count: int, limits: Limits, points: np.ndarray
) -> _Runs:
    runs = _Runs(make(count), points)
    runs.warm_up(limits.steps)
    return runs


def _time_error(runs: _Runs, steps: int) -> np.ndarray:
    """The difference to half the steps, divided by what the observed order allows."""
    difference = _distance(runs.get(steps // 2), runs.get(steps))
    if (steps // 4, False) not in runs.values:
        return difference
    before = _distance(runs.get(steps // 4), runs.get(steps // 2))
    ratio = before / np.maximum(difference, 1e-300)
    return difference / np.clip(ratio - 1, 1.0, 7.0)


def _distance(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Relative L2 per field; infinite where a solution is not finite."""
    found = [relative_l2(a, b) for a, b in zip(coarse, fine, strict=True)]
    return np.where(np.isfinite(found), found, np.inf)


def _steps_factor(now: float, wish: float) -> int:
    """For the fourth order, a power of two up to 16."""
    if not np.isfinite(now):
        return 4
    return 2 ** min(4, max(1, math.ceil(math.log2(now / wish) / 4)))


FACTORS = (1.5, 2, 3, 4, 6, 8, 12, 16)


def _count_factor(now: float, wish: float) -> float:
    """For an error exp(-a count): log(wish)/log(now), rounded up to one of FACTORS."""
    if not now < 0.5:
        return 4
    ratio = math.log(wish) / math.log(now)
    return next((f for f in FACTORS if f >= ratio), FACTORS[-1])


def _stagnates(efforts: list[Effort]) -> bool:
    """Whether rounding has stopped the last two refinements from helping."""
    if len(efforts) < 3 or not efforts[-1].error < 1e-6:
        return False
    return min(e.error for e in efforts[-2:]) > 0.7 * efforts[-3].error
