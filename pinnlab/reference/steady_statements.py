"""What a steady problem states: residuals, each with the place where it vanishes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import Coordinate, Expression, Partial
from pinnlab.equation.structure import partials
from pinnlab.problem.problem import Problem
from pinnlab.reference.reference import NoReference
from pinnlab.reference.steady_breaks import Break, continuous_quantities, find_breaks
from pinnlab.reference.steady_pointwise import Pointwise, pointwise
from pinnlab.sampling import membership
from pinnlab.system.terms import (
    Term,
    condition_terms,
    coordinates,
    equation_terms,
    real_fields,
)


@dataclass(frozen=True, eq=False)
class Statement:
    """Something that vanishes: a residual, the axes it holds along, fixed coordinates.

    - `along`: the axes whose points it is collocated on.
    - `fixed`: the values of other coordinates, by axis.
    - `inside`: which of [n, dim] points belong to the place, if it is `restricted`.
    """

    name: str
    kind: str
    form: Pointwise
    along: tuple[int, ...]
    fixed: Mapping[int, float]
    inside: Callable[[np.ndarray], np.ndarray]
    restricted: bool


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem as statements.

    - `orders`: the highest derivatives of each field, by axis.
    - `held`: the fields that a condition on a face mentions.
    - `continuous`: the quantities without a jump at breaks, by axis.
    - `smooth`: derivatives without a jump where coefficients are smooth, by axis.
    """

    problem: Problem
    fields: tuple[str, ...]
    orders: Mapping[str, tuple[int, ...]]
    held: frozenset[str]
    statements: tuple[Statement, ...]
    breaks: tuple[Break, ...]
    continuous: Mapping[int, tuple[Pointwise, ...]]
    smooth: tuple[tuple[Pointwise, ...], ...]
    linear: bool

    def cuts(self, axis: int) -> tuple[float, ...]:
        """Where the axis is cut into elements."""
        return tuple(b.right for b in self.breaks if b.axis == axis)

    def periodic(self, axis: int) -> bool:
        """Whether the axis is periodic."""
        return self.problem.axes[axis].name in self.problem.periodic


def pose(problem: Problem) -> Posed:
    """The problem as statements. Raises `NoReference` for what cannot be collocated."""
    if any(f.of for f in problem.fields):
        raise NoReference("a field depends on fewer coordinates than the others")
    equations, conditions = equation_terms(problem), condition_terms(problem)
    for term in (*equations, *conditions):
        if not isinstance(term.residual, Expression):
            raise NoReference(f"'{term.name}' is a Python function")
    fields = real_fields(problem)
    breaks = find_breaks(problem)
    if any(problem.axes[b.axis].name in problem.periodic for b in breaks):
        raise NoReference("a coefficient jumps along a periodic coordinate")
    names = coordinates(problem)
    continuous = {
        axis: tuple(
            pointwise(q, names, problem.parameters)
            for q in continuous_quantities(problem, axis)
        )
        for axis in {b.axis for b in breaks}
    }
    orders = {f: _orders(equations, f, len(names)) for f in fields}
    return Posed(
        problem,
        fields,
        orders,
        frozenset(p.field for t in conditions if t.place.fixed for p in _used(t)),
        tuple(_statement(problem, t) for t in (*equations, *conditions)),
        breaks,
        continuous,
        _smooth(problem, orders),
        all(t.is_affine for t in (*equations, *conditions)),
    )


def _used(term: Term) -> tuple[Partial, ...]:
    assert isinstance(term.residual, Expression)
    return partials(term.residual)


def _orders(equations: tuple[Term, ...], field: str, dim: int) -> tuple[int, ...]:
    found = [p.orders for t in equations for p in _used(t) if p.field == field]
    return tuple(max((o[i] for o in found), default=0) for i in range(dim))


def _smooth(
    problem: Problem, orders: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[Pointwise, ...], ...]:
    """The derivatives of each field below its order, for the only axis of a line."""
    names = coordinates(problem)
    if len(names) > 1:
        return tuple(() for _ in names)
    here = tuple(Coordinate(n) for n in names)
    return (
        tuple(
            pointwise(Partial(field, (k,), here), names, problem.parameters)
            for field, order in orders.items()
            for k in range(order[0])
        ),
    )


def _statement(problem: Problem, term: Term) -> Statement:
    assert isinstance(term.residual, Expression)
    names = coordinates(problem)
    fixed = {names.index(name): value for name, value in term.place.fixed}
    free = set(names) if term.kind == "equation" else (term.free or frozenset())
    along = tuple(i for i, n in enumerate(names) if n in free and i not in fixed)
    return Statement(
        term.name,
        term.kind,
        pointwise(term.residual, names, problem.parameters),
        along,
        fixed,
        membership(problem, term.place),
        term.place.where is not None,
    )
