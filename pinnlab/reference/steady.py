"""The classical solution of a problem without marching: collocation and refinement."""

import time
from dataclasses import dataclass

import jax
import numpy as np

from pinnlab.problem.problem import Problem
from pinnlab.reference.boundary_value import Collocation, Variant, collocate, variants
from pinnlab.reference.newton import (
    Diverged,
    Found,
    Rows,
    Singular,
    continued,
    lifted,
    newton,
    rows_of,
)
from pinnlab.reference.reference import Effort, NoReference, Reference
from pinnlab.reference.steady_basis import Expansion
from pinnlab.reference.steady_check import null_space, residual_between
from pinnlab.reference.steady_diagonalization import solve_separable
from pinnlab.reference.steady_elements import LADDERS, resolutions
from pinnlab.reference.steady_level import Level, solved_level
from pinnlab.reference.steady_separable import Separable, separate
from pinnlab.reference.steady_statements import Posed, pose


LARGEST = 4500
"""Unknowns of a dense system."""
SMALL = 700
"""Unknowns from which on a system that separates is solved so."""
TOLERANCE = 1e-12
"""On Newton's last step, relative to the unknowns."""
NOTHING = 1e-13
"""The share of all scaled unknowns below which a field is rounding."""
FAINT = 1e-5
"""A residual that rounding alone may leave between the points."""
MISSED = 0.1
"""The residual between the points above which collocation may converge to a function
that is no solution, as where u grows as the root of the distance to a point."""


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
                return _reference(posed, levels, error, begin)
            reason = levels.reason
    raise NoReference(reason)


def _refine(
    posed: Posed, variant: Variant, error: float, deadline: float
) -> tuple[Level, ...] | NullSpace:
    """Solutions, coarse to fine, until the last two agree."""
    dim = len(posed.problem.axes)
    if dim not in LADDERS:
        raise NoReference(f"{dim} coordinates are too many for a grid")
    separable = separate(posed)
    levels: list[Level] = []
    solved: list[Expansion] = []
    failure = "no two resolutions were solved in time"
    for count, cuts in resolutions(posed, solved, error):
        size = len(posed.fields) * count**dim * (len(cuts) + 1)
        apart = separable if size > SMALL else None
        if not _affordable(levels, size, apart is None, deadline):
            break
        before = levels[-1] if levels else None
        level = None if apart is None else _solve_apart(apart, count, before)
        if level is None or not _is_kept(level, levels, error):
            if size > LARGEST:
                break
            system = collocate(posed, variant, count, cuts)
            try:
                level = _solve(system, before)
            except Singular as singular:
                return NullSpace(null_space(system, singular))
            except Diverged as diverged:
                failure = f"Newton's method failed: {diverged}"
                continue
        levels.append(level)
        solved.append(level.expansion)
        good = np.all(level.errors <= error) and _is_resolved(posed, level, error)
        if good or (len(levels) > 2 and level.is_contradiction):
            break
    if len(levels) < 2:
        raise NoReference(failure)
    return tuple(levels)


def _affordable(levels: list[Level], size: int, dense: bool, deadline: float) -> bool:
    """Whether a solve of about this size is possible, and would end in time."""
    if dense and size > LARGEST:
        return False
    if not levels:
        return time.perf_counter() < deadline
    last = levels[-1]
    expected = last.seconds * (size / last.size) ** (3 if dense else 2)
    return time.perf_counter() + expected < deadline


def _is_kept(level: Level, coarser: list[Level], error: float) -> bool:
    """Whether a separated solution satisfies its conditions, corners included."""
    return level.left <= max(error, float(coarser[-1].errors.max()))


def _is_resolved(posed: Posed, level: Level, error: float) -> bool:
    """Whether the equations hold between the collocation points, too."""
    return residual_between(posed, level.expansion) <= _allowed(error)


def _allowed(error: float) -> float:
    """The residual between the points of a solution with this error."""
    return max(error**0.5, FAINT)


def _solve(system: Collocation, coarser: Level | None) -> Level:
    """One resolution by a dense solve. Raises `Singular` and `Diverged`."""
    begin = time.perf_counter()
    rows = rows_of(system)
    if coarser is None:
        found = _first(system, rows)
    else:
        found = newton(rows, coarser.expansion.prolong(system.spaces), TOLERANCE)
    seconds = time.perf_counter() - begin
    left = float(np.sqrt(np.mean(found.mismatch**2)))
    worst = str(system.row_names[int(np.argmax(found.mismatch))])
    expansion = _without_rounding(system, found)
    return solved_level(system.posed, expansion, coarser, left, worst, seconds)


def _without_rounding(system: Collocation, found: Found) -> Expansion:
    """The fields; one that is 0 but for rounding is 0."""
    expansion = system.expansion(found.unknowns)
    least = NOTHING * np.linalg.norm(found.scaled)
    kept = {
        field: coefficients * float(np.linalg.norm(scaled) > least)
        for (field, coefficients), scaled in zip(
            expansion.coefficients.items(),
            system.parts(found.scaled).values(),
            strict=True,
        )
    }
    return Expansion(expansion.spaces, kept)


def _first(system: Collocation, rows: Rows) -> Found:
    """A solution from nothing: from zero, from the conditions, by continuation."""
    zero = np.zeros(system.size)
    try:
        return newton(rows, zero, TOLERANCE)
    except (Singular, Diverged):
        if system.posed.linear:
            raise
        lift = lifted(rows, system.are_conditions, system.size)
    try:
        return newton(rows, lift, TOLERANCE)
    except Diverged:
        return continued(rows, lift, TOLERANCE)


def _solve_apart(problem: Separable, count: int, coarser: Level | None) -> Level | None:
    """One resolution by diagonalization; None where that is not accurate."""
    begin = time.perf_counter()
    try:
        expansion, violation = solve_separable(problem, count)
    except Diverged:
        return None
    seconds = time.perf_counter() - begin
    worst = "a condition on a face"
    return solved_level(problem.posed, expansion, coarser, violation, worst, seconds)


def _reference(
    posed: Posed, levels: tuple[Level, ...], error: float, begin: float
) -> Reference:
    finest = levels[-1]
    if finest.is_contradiction:
        raise NoReference(
            f"the equations and conditions contradict each other: '{finest.worst}' "
            f"is left with {finest.left:.1e}"
        )
    between = residual_between(posed, finest.expansion)
    if between > MISSED:
        raise NoReference(
            f"the equations do not hold between the points (residual {between:.0%}): "
            "a layer is not resolved, or the solution is singular at a corner or where "
            "conditions change"
        )
    efforts = tuple(
        Effort(level.label, float(level.errors.max()), level.seconds)
        for level in levels[1:]
    )
    return Reference(
        posed.fields,
        lambda points: finest.expansion.values(np.asarray(points, float)),
        dict(zip(posed.fields, map(float, finest.errors), strict=True)),
        time.perf_counter() - begin,
        efforts,
        _method(posed, finest, between if between > _allowed(error) else 0.0),
    )


def _method(posed: Posed, level: Level, between: float) -> str:
    axes = range(len(posed.problem.axes))
    kinds = {"Fourier" if posed.periodic(i) else "Chebyshev" for i in axes}
    solver = "one linear solve" if posed.linear else "Newton's method"
    text = f"{' and '.join(sorted(kinds))} collocation {level.label}, {solver}"
    if between:
        text += f"; residual {between:.0e} between the points"
    return text
