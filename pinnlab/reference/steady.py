"""The classical solution of a problem without marching: collocation and refinement."""

import time
from dataclasses import dataclass

import jax
import numpy as np

from pinnlab.problem.problem import Problem
from pinnlab.reference.boundary_value import (
    Collocation,
    Posed,
    Variant,
    collocate,
    pose,
    variants,
)
from pinnlab.reference.newton import (
    Diverged,
    Found,
    Singular,
    continued,
    newton,
    rows_of,
)
from pinnlab.reference.reference import Effort, NoReference, Reference


LADDERS = {
    1: (12, 18, 26, 38, 56, 84, 126, 190, 280, 420, 630, 950, 1400),
    2: (8, 11, 14, 18, 22, 27, 32, 38, 45, 53, 62),
    3: (5, 7, 9, 11, 13, 15),
    4: (4, 5, 6, 7),
}
"""Collocation points on each element of each axis, by the number of axes."""
LARGEST = 6000
"""Unknowns of a dense system."""
COMPARISON = {1: 1001, 2: 81, 3: 25, 4: 11}
"""Uniform points on each axis on which two solutions are compared."""
TOLERANCE = 1e-12
"""On Newton's last step, relative to the unknowns."""
CONTRADICTION = 1e-3
"""What may be left of a condition, relative to the unknowns."""


@dataclass(frozen=True, eq=False)
class Level:
    """A solved resolution, with the fields on the grid of comparison."""

    system: Collocation
    found: Found
    values: np.ndarray
    errors: np.ndarray
    seconds: float

    @property
    def label(self) -> str:
        """The resolution for people."""
        shapes = {s.shape for s in self.system.spaces.values()}
        return ", ".join("x".join(map(str, s)) for s in sorted(shapes, reverse=True))


@dataclass(frozen=True)
class NullSpace:
    """A variant that does not have one solution, and why."""

    reason: str


def solve_steady(problem: Problem, *, error: float, seconds: float) -> Reference:
    """Solve by spectral collocation, refining until two solutions agree.

    Every coordinate is a direction of the collocation, time too.

    **Arguments:**

    - `error`: the wanted relative L2 error of every field.
    - `seconds`: no resolution is begun that would exceed them.

    **Returns:** a `Reference`; its errors are larger than wanted where time ran out.

    Raises `NoReference` for a problem that cannot be solved so.
    """
    begin = time.perf_counter()
    reason = "the problem has no solution here"
    with jax.enable_x64(True):
        posed = pose(problem)
        for variant in variants(posed):
            levels = _refine(posed, variant, error, begin + seconds)
            if not isinstance(levels, NullSpace):
                return _reference(levels, time.perf_counter() - begin)
            reason = levels.reason
    raise NoReference(reason)


def _refine(
    posed: Posed, variant: Variant, error: float, deadline: float
) -> tuple[Level, ...] | NullSpace:
    """Solutions, coarse to fine, until the last two agree."""
    dim = len(posed.problem.axes)
    if dim not in LADDERS:
        raise NoReference(f"{dim} coordinates are too many for a grid")
    levels: list[Level] = []
    failure = "no resolution was solved in time"
    for count in LADDERS[dim]:
        system = collocate(posed, variant, count)
        if system.size > LARGEST or not _affordable(levels, system, deadline):
            break
        try:
            levels.append(_solve(system, levels[-1] if levels else None))
        except Singular as singular:
            return NullSpace(_null_space(system, singular))
        except Diverged as diverged:
            failure = f"Newton's method failed: {diverged}"
            continue
        if np.all(levels[-1].errors <= error):
            break
    if len(levels) < 2:
        raise NoReference(failure)
    return tuple(levels)


def _affordable(levels: list[Level], system: Collocation, deadline: float) -> bool:
    """Whether a dense solve of this size would end in time."""
    if not levels:
        return time.perf_counter() < deadline
    last = levels[-1]
    expected = last.seconds * (system.size / last.system.size) ** 3
    return time.perf_counter() + expected < deadline


def _solve(system: Collocation, coarser: Level | None) -> Level:
    begin = time.perf_counter()
    rows = rows_of(system)
    if coarser is None:
        start = np.zeros(system.size)
    else:
        start = coarser.system.prolong(coarser.found.unknowns, system)
    try:
        found = newton(rows, start, TOLERANCE)
    except Diverged:
        if coarser is not None:
            raise
        found = continued(rows, start, TOLERANCE)
    seconds = time.perf_counter() - begin
    values = system.values(found.unknowns, comparison_points(system.posed.problem))
    if coarser is None:
        errors = np.full(values.shape[1], np.inf)
    else:
        errors = relative_difference(coarser.values, values)
    return Level(system, found, values, errors, seconds)


def comparison_points(problem: Problem) -> np.ndarray:
    """Uniform points of the domain, [n, dim]."""
    count = COMPARISON[len(problem.axes)]
    lines = [np.linspace(a.lower, a.upper, count) for a in problem.axes]
    mesh = np.meshgrid(*lines, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)


def relative_difference(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """|coarse - fine| / |fine| by column; absolute where a column is 0."""
    size = np.linalg.norm(fine, axis=0)
    return np.linalg.norm(coarse - fine, axis=0) / np.where(size > 0, size, 1.0)


def _null_space(system: Collocation, singular: Singular) -> str:
    """What may be added to a solution."""
    if singular.vector is None:
        return "there are fewer conditions than the equations need"
    problem = system.posed.problem
    values = system.values(singular.vector, comparison_points(problem))
    share = np.abs(values).max(axis=0) / np.abs(values).max()
    k = int(np.argmax(share))
    name, column = system.posed.fields[k], values[:, k]
    if np.ptp(column) <= 1e-6 * np.abs(column).max():
        return f"the solution is not unique: a constant may be added to '{name}'"
    return f"the solution is not unique: '{name}' has a part that nothing determines"


def _reference(levels: tuple[Level, ...], seconds: float) -> Reference:
    finest = levels[-1]
    system, found = finest.system, finest.found
    left = float(np.sqrt(np.mean(found.mismatch**2)))
    if left > max(CONTRADICTION, 10 * float(finest.errors.max())):
        name = system.row_names()[int(np.argmax(found.mismatch))]
        raise NoReference(
            f"the equations and conditions contradict each other: '{name}' is left "
            f"with {left:.1e}"
        )
    efforts = tuple(
        Effort(level.label, float(level.errors.max()), level.seconds)
        for level in levels
        if np.all(np.isfinite(level.errors))
    )
    fields = system.posed.fields
    return Reference(
        fields,
        lambda points: system.values(found.unknowns, np.asarray(points, float)),
        dict(zip(fields, map(float, finest.errors), strict=True)),
        seconds,
        efforts,
        _method(finest),
    )


def _method(level: Level) -> str:
    posed = level.system.posed
    kinds = sorted(
        {"Fourier" if posed.periodic(i) else "Chebyshev"
         for i in range(len(posed.problem.axes))}
    )  # fmt: skip
    solver = "one linear solve" if posed.linear else "Newton's method"
    return f"{' and '.join(kinds)} collocation {level.label}, {solver}"
