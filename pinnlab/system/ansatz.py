"""Conditions held exactly: each field as a lift plus a network that cannot break them.

For a field u with linear conditions B_f u = g_f on faces of the box,

    u = G + w R,   R = N - sum_f phi_f(x_i) (B_f N at the face),

where N is the network. G is the Boolean sum of the face data, w vanishes to the order
of the conditions on the faces where values and derivatives are given without a gap,
and R is the constrained expression of the theory of functional connections
(Mortari, 2017) along the one axis where it is needed (Neumann faces).
Everything is an expression, so that derivatives follow from the tree.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.calculus import differentiate, substitute
from pinnlab.equation.expression import (
    ONE,
    ZERO,
    Coordinate,
    Expression,
    Integral,
    Number,
    Partial,
    rebuild,
)
from pinnlab.problem.problem import Axis


@dataclass(frozen=True)
class FaceCondition:
    """d^order u / dx_axis^order = value on one side of the box.

    `side` is 0 at the start of the axis and 1 at its end.
    """

    field: str
    axis: int
    side: int
    order: int
    value: Expression


@dataclass(frozen=True)
class FieldAnsatz:
    """One field: `lift + product(factors) * remainder`, in network outputs."""

    field: str
    lift: Expression
    factors: tuple[Expression, ...]
    remainder: Expression

    def derivative(
        self, orders: tuple[int, ...], names: tuple[str, ...], network: bool = True
    ) -> Expression:
        """The partial derivative of the field, at the point.

        With `network=False` only the lift is kept (the network is zero).
        """
        total = _raise(self.lift, orders, names)
        if not network:
            return total
        ranges = (range(n + 1) for n in orders)
        for inner in itertools.product(*ranges):
            factor: Expression = ONE
            for i, (n, k) in enumerate(zip(orders, inner, strict=True)):
                raised = _raise(self.factors[i], (n - k,), (names[i],))
                factor = factor * (math.comb(n, k) * raised)
            if factor != ZERO:
                total = total + factor * _raise(self.remainder, inner, names)
        return total


def _raise(
    expression: Expression, orders: tuple[int, ...], names: tuple[str, ...]
) -> Expression:
    for name, count in zip(names, orders, strict=True):
        for _ in range(count):
            expression = differentiate(expression, name)
    return expression


def build(
    field: str, axes: tuple[Axis, ...], conditions: tuple[FaceCondition, ...]
) -> FieldAnsatz:
    """The ansatz that holds the conditions (which must be `admissible` together)."""
    names = tuple(a.name for a in axes)
    point = tuple(Coordinate(n) for n in names)
    lift: Expression = ZERO
    factors: list[Expression] = [ONE] * len(axes)
    remainder: Expression = Partial(field, (0,) * len(axes), point)
    # Time comes last, so that initial data hold even where a corner disagrees.
    for i in sorted(range(len(axes)), key=lambda i: names[i] == "t"):
        here = tuple(c for c in conditions if c.axis == i)
        if not here:
            continue
        basis = _dual_basis(axes[i], here)
        lift = lift + _correction(lift, axes, here, basis, with_values=True)
        if _is_contiguous(here):
            factors[i] = _vanishing(axes[i], here)
        else:
            remainder = remainder + _correction(
                remainder, axes, here, basis, with_values=False
            )
    return FieldAnsatz(field, lift, tuple(factors), remainder)


def needs_projection(conditions: tuple[FaceCondition, ...]) -> bool:
    """Whether conditions on one axis leave a gap (a derivative without the value)."""
    return bool(conditions) and not _is_contiguous(conditions)


def _is_contiguous(conditions: tuple[FaceCondition, ...]) -> bool:
    for side in (0, 1):
        orders = sorted(c.order for c in conditions if c.side == side)
        if orders != list(range(len(orders))):
            return False
    return True


def _correction(
    inner: Expression,
    axes: tuple[Axis, ...],
    conditions: tuple[FaceCondition, ...],
    basis: tuple[Expression, ...],
    with_values: bool,
) -> Expression:
    """sum_f phi_f (g_f - B_f inner at the face)."""
    total: Expression = ZERO
    for condition, phi in zip(conditions, basis, strict=True):
        axis = axes[condition.axis]
        place = Number(axis.upper if condition.side else axis.lower)
        trace = _raise(inner, (condition.order,), (axis.name,))
        trace = substitute(trace, {axis.name: place})
        value = condition.value if with_values else ZERO
        total = total + phi * (value - trace)
    return total


def _dual_basis(
    axis: Axis, conditions: tuple[FaceCondition, ...]
) -> tuple[Expression, ...]:
    """Polynomials phi_f with B_g phi_f = 1 where f = g and 0 elsewhere."""
    length = axis.upper - axis.lower
    columns: list[np.ndarray] = []
    degrees: list[int] = []
    for degree in range(2 * len(conditions) + 6):
        column = np.array(
            [_monomial(degree, c.order, float(c.side)) for c in conditions]
        )
        if np.linalg.matrix_rank(np.array([*columns, column])) > len(columns):
            columns.append(column)
            degrees.append(degree)
        if len(columns) == len(conditions):
            break
    inverse = np.linalg.inv(np.array(columns).T)
    inverse[np.abs(inverse) < 1e-13] = 0.0
    xi = (Coordinate(axis.name) - axis.lower) / length
    return tuple(
        sum(
            (
                Number(float(inverse[row, f]) * length**c.order) * xi**degree
                for row, degree in enumerate(degrees)
            ),
            start=ZERO,
        )
        for f, c in enumerate(conditions)
    )


def _monomial(degree: int, order: int, at: float) -> float:
    """The derivative of s^degree at s, in the unit interval."""
    if order > degree:
        return 0.0
    return math.perm(degree, order) * at ** (degree - order)


def _vanishing(axis: Axis, conditions: tuple[FaceCondition, ...]) -> Expression:
    """A polynomial of size one that is zero to the conditions' order at the faces."""
    count = [sum(c.side == side for c in conditions) for side in (0, 1)]
    length = axis.upper - axis.lower
    left = (Coordinate(axis.name) - axis.lower) / length
    right = (axis.upper - Coordinate(axis.name)) / length
    height = max(
        (k / sum(count)) ** k * (1 - k / sum(count)) ** (sum(count) - k)
        for k in [count[0]]
    )
    return (left ** count[0]) * (right ** count[1]) / height


def impose(
    expression: Expression,
    ansatz: dict[str, FieldAnsatz],
    names: tuple[str, ...],
    network: bool = True,
) -> Expression:
    """An expanded expression of the fields as one of the network's outputs.

    With `network=False` every network output is zero: the expression of the lift.
    """
    done: dict[Expression, Expression] = {}
    raised: dict[tuple[str, tuple[int, ...]], Expression] = {}

    def change(node: Expression) -> Expression:
        if node not in done:
            if isinstance(node, Partial):
                done[node] = _located(node)
            elif isinstance(node, Integral):
                body = change(node.body)
                limits = change(node.lower), change(node.upper)
                done[node] = (
                    ZERO if body == ZERO else Integral(body, node.variable, *limits)
                )
            else:
                done[node] = rebuild(node, change)
        return done[node]

    def _located(node: Partial) -> Expression:
        key = (node.field, node.orders)
        if key not in raised:
            raised[key] = ansatz[node.field].derivative(node.orders, names, network)
        new = {n: a for n, a in zip(names, node.at, strict=True) if a != Coordinate(n)}
        return substitute(raised[key], new) if new else raised[key]

    return change(expression)
