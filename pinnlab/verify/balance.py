"""Sources against boundary fluxes: the divergence theorem on the box.

An equation div(F) + f = 0 whose flux F is given on every face has a solution only if
the integral of f over the box and the flux out of it cancel.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.calculus import differentiate
from pinnlab.equation.expression import (
    ZERO,
    Coordinate,
    Expression,
    Partial,
)
from pinnlab.equation.structure import affine, is_kinked
from pinnlab.system.arrays import array_values, gauss, holds
from pinnlab.system.given import Given, given_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term
from pinnlab.verify.findings import Findings


SMOOTH, KINKED = 1e-6, 1e-2
PANELS, NODES = {1: 16, 2: 4, 3: 2}, 8
TIMES = 3


@dataclass(frozen=True)
class FluxPart:
    """A part `coefficient * partial` of the flux along an axis."""

    axis: int
    partial: Partial
    coefficient: Expression


def unbalanced(system: System) -> Findings:
    """Errors for equations whose source and boundary data contradict each other.

    Nothing is said about shapes, over which no exact quadrature is at hand.
    """
    space = [n for n in system.coordinates if n != "t"]
    if not 1 <= len(space) <= max(PANELS) or system.problem.shape is not None:
        return Findings()
    given = given_values(system)
    messages = [m for t in system.equations if (m := _message(system, t, given))]
    return Findings(errors=tuple(messages))


def _message(system: System, term: Term, given: list[Given]) -> str:
    form = divergence_form(system, term)
    if form is None:
        return ""
    parts, source = form
    totals = [_totals(system, parts, source, given, t) for t in _times(system)]
    for found in totals:
        if found is None:
            return ""
        inside, outside, size = found
        data = (source, *(g.value for g in given))
        tolerance = KINKED if any(is_kinked(e) for e in data) else SMOOTH
        if abs(inside + outside) > tolerance * size:
            return (
                f"equations.{term.name}: no solution exists: what flows out through "
                f"the boundary is {outside:.6g}, the sources make {0.0 - inside:.6g}; "
                "change the boundary data or the source until both are equal"
            )
    return ""


def _times(system: System) -> np.ndarray:
    axis = next((a for a in system.problem.axes if a.name == "t"), None)
    return np.zeros(1) if axis is None else np.linspace(axis.lower, axis.upper, TIMES)


def divergence_form(
    system: System, term: Term
) -> tuple[list[FluxPart], Expression] | None:
    """The equation as sum_i d/dx_i (flux parts) + source = 0; None if it is none."""
    form = affine(term.residual) if isinstance(term.residual, Expression) else None
    if form is None:
        return None
    left = {p: c for p, c in form.coefficients.items() if c != ZERO}
    point = tuple(Coordinate(n) for n in system.coordinates)
    found: list[FluxPart] = []
    for partial in sorted(left, key=lambda p: -_order(p)):
        if not isinstance(partial, Partial) or partial.at != point:
            return None
        if partial not in left:
            continue
        axis = next((i for i, n in enumerate(partial.orders) if n), None)
        alone = axis is not None and sum(partial.orders) == partial.orders[axis]
        if not alone or axis is None or system.coordinates[axis] == "t":
            return None
        coefficient = left.pop(partial)
        lower = tuple(n - (i == axis) for i, n in enumerate(partial.orders))
        inner = Partial(partial.field, lower, point)
        found.append(FluxPart(axis, inner, coefficient))
        slope = differentiate(coefficient, system.coordinates[axis])
        rest = left.pop(inner, ZERO)
        if not _same(system, slope, rest):
            left[inner] = rest - slope
    return (found, form.rest) if found else None


def _order(partial: object) -> int:
    return sum(partial.orders) if isinstance(partial, Partial) else 0


def _same(system: System, a: Expression, b: Expression) -> bool:
    if a == b:
        return True
    lower, upper = _box(system)
    points = lower + (upper - lower) * np.random.default_rng(5).random((64, len(lower)))
    values = array_values(system.problem, (a, b), points)
    gap = np.max(np.abs(values[:, 0] - values[:, 1]))
    return bool(gap <= 1e-9 * np.max(np.abs(values)))


def _totals(
    system: System,
    parts: list[FluxPart],
    source: Expression,
    given: list[Given],
    time: float,
) -> tuple[float, float, float] | None:
    """The integrals of the source and of the outward flux, and the size of both."""
    points, weights = _rule(system, time, None)
    values = weights * array_values(system.problem, (source,), points)[:, 0]
    inside, outside, size = values.sum(), 0.0, np.abs(values).sum()
    for axis in {p.axis for p in parts}:
        if system.coordinates[axis] in system.problem.periodic:
            continue
        here = [p for p in parts if p.axis == axis]
        for end in (0, 1):
            values = _face(system, here, given, time, axis, end)
            if values is None:
                return None
            outside += (2 * end - 1) * values.sum()
            size += np.abs(values).sum()
    if not np.isfinite([inside, outside]).all():
        return None
    return float(inside), float(outside), float(size)


def _face(
    system: System,
    parts: list[FluxPart],
    given: list[Given],
    time: float,
    axis: int,
    end: int,
) -> np.ndarray | None:
    """Weighted values of the flux along +axis on one face; None where not given."""
    points, weights = _rule(system, time, (axis, end))
    total = np.zeros(len(points))
    for part in parts:
        value = np.full(len(points), np.nan)
        for g in given:
            if (g.partial.field, g.partial.orders) == (
                part.partial.field,
                part.partial.orders,
            ):
                inside = holds(system.problem, g.place, points)
                found = array_values(system.problem, (g.value,), points)[:, 0]
                value = np.where(inside & np.isnan(value), found, value)
        size = array_values(system.problem, (part.coefficient,), points)[:, 0]
        total += np.where(np.isfinite(size), size, np.nan) * value
    return None if np.isnan(total).any() else weights * total


def _rule(
    system: System, time: float, face: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature points [n, dim] and weights over space, or over one face of it."""
    lower, upper = _box(system)
    free = [
        i
        for i, n in enumerate(system.coordinates)
        if n != "t" and (face is None or i != face[0])
    ]
    panels = PANELS[max(1, len(free))]
    nodes, weights = gauss(panels, NODES)
    points = np.full((len(nodes) ** len(free), len(lower)), time)
    total = np.ones(len(points))
    mesh = itertools.product(range(len(nodes)), repeat=len(free))
    index = np.array(list(mesh), int).reshape(len(points), len(free))
    for column, i in enumerate(free):
        half = (upper[i] - lower[i]) / 2
        points[:, i] = lower[i] + half * (1 + nodes[index[:, column]])
        total *= half * weights[index[:, column]]
    if face is not None:
        points[:, face[0]] = (lower, upper)[face[1]][face[0]]
    return points, total


def _box(system: System) -> tuple[np.ndarray, np.ndarray]:
    axes = system.problem.axes
    return np.array([a.lower for a in axes]), np.array([a.upper for a in axes])
