"""Pieces of the domain on which the equations are smooth, and what holds between them.

An equation that jumps across x = c has a solution whose derivatives jump there. Each
side has features of its own; the values and the fluxes of both sides agree at x = c.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root_scalar

from pinnlab.equation.calculus import expand
from pinnlab.equation.expression import (
    ZERO,
    Apply,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Partial,
    terms,
    walk,
)
from pinnlab.equation.structure import STEPS, partials, uses_coordinates, uses_fields
from pinnlab.problem.problem import Place
from pinnlab.system.forms import LinearForm, coordinate_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term, real_parts


LINE = 2001
APART = 1e-9
"""Half the distance of the two sides of an edge, relative to the domain."""
MOST_PIECES = 4


@dataclass(frozen=True)
class Partition:
    """The pieces of a coordinate.

    - `axis`: its index.
    - `name`: of the coordinate.
    - `edges`: where pieces meet, increasing; an edge belongs to the piece below it.
    - `lower`, `upper` [dim]: the domain.
    - `terms`: what has the same value on both sides of every edge.
    """

    axis: int
    name: str
    edges: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    terms: tuple[Term, ...]

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.edges) + 1

    @property
    def text(self) -> str:
        """The edges in words."""
        return " and ".join(f"{self.name} = {e:g}" for e in self.edges)

    def bounds(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The box of piece i."""
        lower, upper = self.lower.copy(), self.upper.copy()
        ends = [lower[self.axis], *self.edges, upper[self.axis]]
        lower[self.axis], upper[self.axis] = ends[i], ends[i + 1]
        return lower, upper

    def piece(self, points: np.ndarray) -> np.ndarray:
        """The pieces of points [..., dim]."""
        return np.searchsorted(self.edges, points[..., self.axis])

    def restricted(self, form: LinearForm, i: int) -> LinearForm:
        """The form of a function that is zero outside piece i."""
        if self.count == 1:
            return form
        pieces = tuple(
            dataclasses.replace(
                p, coefficient=p.coefficient * (self.piece(p.location) == i)
            )
            for p in form.pieces
        )
        return LinearForm(pieces, form.rest)

    def sides(self, points: np.ndarray, edge: int) -> tuple[np.ndarray, np.ndarray]:
        """Points below and above an edge, next to it."""
        apart = APART * (self.upper - self.lower)[self.axis]
        below, above = points.copy(), points.copy()
        below[:, self.axis] = self.edges[edge] - apart
        above[:, self.axis] = self.edges[edge] + apart
        return below, above


def whole(system: System) -> Partition:
    """The domain as one piece."""
    lower = np.array([a.lower for a in system.problem.axes])
    upper = np.array([a.upper for a in system.problem.axes])
    return Partition(0, system.coordinates[0], np.zeros(0), lower, upper, ())


def find_partition(system: System) -> Partition:
    """Pieces between the places where the equations jump; one where none are found.

    Steps must depend on one and the same coordinate, which is not periodic, and
    derivatives by it be of second order at most.
    """
    everything = whole(system)
    steps = {s for r in _residuals(system) for s in _steps(r)}
    named = {n.name for s in steps for n in walk(s) if isinstance(n, Coordinate)}
    if len(named) != 1 or not named.isdisjoint(system.problem.periodic):
        return everything
    (name,) = named
    axis = system.coordinates.index(name)
    lower, upper = everything.lower[axis], everything.upper[axis]
    line = np.linspace(lower, upper, LINE)
    roots = sorted({r for s in steps for r in _roots(system, s, name, line)})
    slack = 1e-6 * (upper - lower)
    edges = [r for r in roots if lower + slack < r < upper - slack]
    if not edges or len(edges) >= MOST_PIECES:
        return everything
    joined = _continuous(system, axis)
    if joined is None:
        return everything
    return dataclasses.replace(
        everything, axis=axis, name=name, edges=np.array(edges), terms=joined
    )


def _residuals(system: System) -> list[Expression]:
    every = (t.residual for t in system.equations)
    return [r for r in every if isinstance(r, Expression)]


def _steps(node: Expression) -> list[Expression]:
    """What changes its sign where the expression jumps."""
    found = []
    for n in walk(node):
        if isinstance(n, Apply) and n.function in STEPS and uses_coordinates(n):
            if n.function == "where":
                found += [
                    a - b
                    for c in walk(n.arguments[0])
                    if isinstance(c, Apply) and c.function in ("<", "<=", ">", ">=")
                    for a, b in [c.arguments]
                ]
            else:
                found.append(n.arguments[0])
    return [f for f in found if uses_coordinates(f) and not uses_fields(f)]


def _roots(
    system: System, node: Expression, name: str, line: np.ndarray
) -> list[float]:
    value = lambda x: coordinate_values(system, node, {name: np.atleast_1d(x)})
    found = value(line)
    roots = [float(x) for x in line[found == 0]]
    for i in np.flatnonzero(found[:-1] * found[1:] < 0):
        root = root_scalar(
            lambda x: float(value(x)[0]), bracket=(line[i], line[i + 1]), xtol=1e-15
        )
        roots.append(float(root.root))
    return roots


def _continuous(system: System, axis: int) -> tuple[Term, ...] | None:
    """Values, and fluxes where the order is two; None where they are not known."""
    names = system.coordinates
    point = tuple(Coordinate(n) for n in names)
    found = []
    for field in system.fields:
        fluxes = [f for t in _parts(system) if (f := _flux(t, names, axis, field))]
        order = max(
            p.orders[axis]
            for r in _residuals(system)
            for p in partials(r)
            if p.field == field
        )
        if order > 2 or len(fluxes) != int(order == 2):
            return None
        value = Partial(field, (0,) * len(names), point)
        found += [(field, value)] * (order > 0) + [(f"flux of {field}", *fluxes)] * (
            order > 1
        )
    place = Place("", ((names[axis], 0.0),), None)
    return tuple(Term(n, "condition", "", place, e) for n, e in found)


def _parts(system: System) -> list[Expression]:
    """The equations in written form, real."""
    problem = system.problem
    return [p for e in problem.equations for p in real_parts(problem, e.residual)]


def _flux(
    residual: Expression, names: tuple[str, ...], axis: int, field: str
) -> Expression | None:
    """What is continuous across the axis where a written equation has order two.

    The integral over it of the summands that are derivatives by it; the slope where
    second derivatives have factors. None where the order is less.
    """
    total, factors = ZERO, False
    for summand in terms(residual):
        inside = _integral(summand, names[axis])
        second = _order(expand(summand, names), axis, field) == 2
        if inside is not None:
            total = total + inside
        factors |= second and inside is None
    flux = expand(total, names)
    if not factors:
        return flux if _order(flux, axis, field) == 1 else None
    one = tuple(int(i == axis) for i in range(len(names)))
    return Partial(field, one, tuple(Coordinate(n) for n in names))


def _integral(node: Expression, name: str) -> Expression | None:
    """The integral over a coordinate of a derivative by it; None of another."""
    match node:
        case Apply("neg", (a,)):
            inside = _integral(a, name)
            return None if inside is None else -inside
        case Apply("*", (a, b)) if not (uses_coordinates(a) or _has_field(a)):
            inside = _integral(b, name)
            return None if inside is None else a * inside
        case Derivative(operand, names) if name in names:
            rest = list(names)
            rest.remove(name)
            return Derivative(operand, tuple(rest)) if rest else operand
        case _:
            return None


def _has_field(node: Expression) -> bool:
    return any(isinstance(n, Field) for n in walk(node))


def _order(node: Expression, axis: int, field: str) -> int:
    return max((p.orders[axis] for p in partials(node) if p.field == field), default=0)
