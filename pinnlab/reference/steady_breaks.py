"""Where coefficients jump or kink, and what stays continuous there."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pinnlab.equation.calculus import expand
from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    RELATIONS,
    ZERO,
    Apply,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Number,
    Parameter,
    terms,
    walk,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.problem.problem import Problem
from pinnlab.reference.reference import NoReference
from pinnlab.system.terms import coordinates, real_parts


SAMPLES = 4099
"""Points of an axis at which comparisons are evaluated."""
NEAR = 1e-9
"""Breaks closer than this, relative to the axis, are one."""


@dataclass(frozen=True)
class Break:
    """A place on an axis where coefficients are not smooth.

    - `left`, `right`: neighboring floating-point numbers on its two sides.
    """

    axis: int
    left: float
    right: float


def find_breaks(problem: Problem) -> tuple[Break, ...]:
    """The breaks, found by sampling each axis and bisection.

    Raises `NoReference` for a coefficient that jumps along a curve.
    """
    names = coordinates(problem)
    found: list[Break] = []
    for switch in _switches(problem):
        used = [i for i, n in enumerate(names) if Coordinate(n) in set(walk(switch))]
        if len(used) == 1:
            found += _changes(problem, switch, used[0])
        elif len(used) > 1 and _inside_derivative(problem, switch):
            raise NoReference("a coefficient inside a derivative jumps along a curve")
    return _merged(problem, found)


def _merged(problem: Problem, breaks: list[Break]) -> tuple[Break, ...]:
    """One break for `x < c` and `x > c`, which change on either side of c."""
    found: list[Break] = []
    for b in sorted(breaks, key=lambda b: (b.axis, b.left)):
        axis = problem.axes[b.axis]
        last = found[-1] if found and found[-1].axis == b.axis else None
        if last and b.left - last.right <= NEAR * (axis.upper - axis.lower):
            found[-1] = Break(b.axis, last.left, max(last.right, b.right))
        else:
            found.append(b)
    return tuple(found)


def _switches(problem: Problem) -> tuple[Expression, ...]:
    """Every comparison without fields on which the problem depends, expanded."""
    names = coordinates(problem)
    written = [e.residual for e in problem.equations]
    written += [e.residual for c in problem.conditions for e in c.equations]
    written += [p.where for c in problem.conditions for p in c.on if p.where]
    found: dict[Expression, None] = {}
    for expression in written:
        for node in walk(expression):
            for comparison in _comparison(node):
                if not any(isinstance(n, Field) for n in walk(comparison)):
                    found[expand(comparison, names)] = None
    return tuple(found)


def _comparison(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Apply(function) if function in RELATIONS:
            return (node,)
        case Apply("abs" | "sign" | "heaviside", (a,)):
            return (Apply(">", (a, ZERO)),)
        case Apply("min" | "max", (a, b)):
            return (Apply("<", (a, b)),)
        case _:
            return ()


def _inside_derivative(problem: Problem, switch: Expression) -> bool:
    names = coordinates(problem)
    return any(
        isinstance(node, Derivative)
        and any(isinstance(n, Field) for n in walk(node.operand))
        and any(
            expand(c, names) == switch
            for n in walk(node.operand)
            for c in _comparison(n)
        )
        for equation in problem.equations
        for node in walk(equation.residual)
    )


def _changes(problem: Problem, switch: Expression, index: int) -> list[Break]:
    axis = problem.axes[index]
    constants = {k: jnp.asarray(v, float) for k, v in problem.parameters.items()}
    one = lambda x: jnp.asarray(
        evaluate((switch,), Surroundings({axis.name: x}, constants))[0], bool
    )
    holds: Callable = jax.jit(jax.vmap(one))
    x = np.linspace(axis.lower, axis.upper, SAMPLES)
    # The ends themselves belong to no side.
    x[0], x[-1] = np.nextafter(x[0], x[-1]), np.nextafter(x[-1], x[0])
    sides = np.asarray(holds(x))
    (where,) = np.nonzero(sides[1:] != sides[:-1])
    left, right = x[where], x[where + 1]
    start = sides[where]
    while len(where):
        middle = left + (right - left) / 2
        if np.all((middle <= left) | (middle >= right)):
            break
        before = np.asarray(holds(middle)) == start
        left, right = np.where(before, middle, left), np.where(before, right, middle)
    tiny = NEAR * (axis.upper - axis.lower)
    return [
        Break(index, float(a), float(b))
        for a, b in zip(left, right, strict=True)
        if axis.lower + tiny < a and b < axis.upper - tiny
    ]


def continuous_quantities(problem: Problem, index: int) -> tuple[Expression, ...]:
    """What the equations, as written, keep continuous across a plane x_index = c.

    An expression that is differentiated p times by x is continuous with its first
    p - 1 derivatives: `dx(k*dx(u))` has a continuous u and a continuous k u_x.
    """
    name = problem.axes[index].name
    names = coordinates(problem)
    found: dict[Expression, None] = {}
    for equation in problem.equations:
        for part in real_parts(problem, equation.residual):
            for operand, order in _differentiated(part, name):
                for k in range(order):
                    quantity = Derivative(operand, (name,) * k) if k else operand
                    found[expand(quantity, names)] = None
    return tuple(q for q in found if uses_fields(q))


def _differentiated(residual: Expression, name: str) -> list[tuple[Expression, int]]:
    """Expressions of fields and how many times each is differentiated.

    Fluxes with jumping coefficients that are differentiated in one sum are added up:
    only their sum is continuous.
    """
    fluxes: dict[int, list[tuple[Expression | None, Derivative]]] = {}
    for summand in terms(residual):
        factor, inner = _scaled(summand)
        if isinstance(inner, Derivative) and _jumps(inner.operand):
            fluxes.setdefault(inner.coordinates.count(name), []).append((factor, inner))
    found: list[tuple[Expression, int]] = []
    for order, members in fluxes.items():
        if len(members) > 1 and any(factor is None for factor, _ in members):
            raise NoReference("fluxes with jumping coefficients cannot be added up")
        total: Expression = ZERO
        for factor, inner in members:
            total = total + (Number(1.0) if factor is None else factor) * inner.operand
        found.append((total, order))
    summed = {inner for members in fluxes.values() for _, inner in members}
    for node in walk(residual):
        if isinstance(node, Derivative) and node not in summed:
            found.append((node.operand, node.coordinates.count(name)))
    return found


def _scaled(summand: Expression) -> tuple[Expression | None, Expression]:
    """A constant factor (None where it varies) and what it multiplies."""
    match summand:
        case Apply("neg", (a,)):
            factor, inner = _scaled(a)
            return (None if factor is None else -factor), inner
        case Apply("*", (a, Derivative() as inner)) | Apply(
            "*", (Derivative() as inner, a)
        ):
            constant = all(isinstance(n, Number | Parameter | Apply) for n in walk(a))
            return (a if constant else None), inner
        case Apply("/", (a, b)):
            factor, inner = _scaled(a)
            constant = all(isinstance(n, Number | Parameter | Apply) for n in walk(b))
            return (factor / b if factor is not None and constant else None), inner
        case _:
            return Number(1.0), summand


def _jumps(operand: Expression) -> bool:
    return any(_comparison(n) for n in walk(operand)) and any(
        isinstance(n, Field) for n in walk(operand)
    )
