"""A residual as a linear part with known coefficients, plus everything else."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    ZERO,
    Apply,
    Coordinate,
    Expression,
    Number,
    Partial,
    walk,
)
from pinnlab.equation.structure import partials, uses_fields
from pinnlab.problem.problem import Problem


@dataclass(frozen=True)
class Semilinear:
    """sum_i linear[i] * (partial i) + rest."""

    linear: dict[Partial, Expression]
    rest: Expression


def semilinear(
    expression: Expression,
    admitted: Callable[[Expression], bool],
    unknown: Callable[[Expression], bool] = uses_fields,
) -> Semilinear:
    """Split an expanded expression; products with coefficients are multiplied out.

    **Arguments:**

    - `admitted`: tells which coefficients may be in the linear part; terms with others
        stay in the rest.
    - `unknown`: tells which expressions are no coefficients.
    """
    linear: dict[Partial, Expression] = {}
    rest = ZERO
    for node, coefficient in _summands(expression, Number(1.0), unknown):
        if isinstance(node, Partial) and unknown(node) and admitted(coefficient):
            linear[node] = linear.get(node, ZERO) + coefficient
        else:
            rest = rest + coefficient * node
    return Semilinear(linear, rest)


def _summands(
    node: Expression, factor: Expression, unknown: Callable[[Expression], bool]
) -> list[tuple[Expression, Expression]]:
    """Pairs whose products add up to factor * node."""
    again = lambda n, f: _summands(n, f, unknown)
    match node:
        case Apply("+", (a, b)):
            return again(a, factor) + again(b, factor)
        case Apply("-", (a, b)):
            return again(a, factor) + again(b, -factor)
        case Apply("neg", (a,)):
            return again(a, -factor)
        case Apply("*", (a, b)) if not unknown(a):
            return again(b, factor * a)
        case Apply("*", (a, b)) if not unknown(b):
            return again(a, factor * b)
        case Apply("/", (a, b)) if not unknown(b):
            return again(a, factor / b)
        case _:
            return [(node, factor)]


def depends_on(expression: Expression, names: tuple[str, ...]) -> bool:
    """Whether any of the coordinates is in the expression."""
    return any(isinstance(n, Coordinate) and n.name in names for n in walk(expression))


def number(problem: Problem, expression: Expression) -> float:
    """The value of an expression without coordinates and fields."""
    parameters = {k: jnp.asarray(v) for k, v in problem.parameters.items()}
    return float(np.asarray(evaluate((expression,), Surroundings({}, parameters))[0]))


def space_order(expressions: tuple[Expression, ...], time: int) -> int:
    """The highest total order in space of any derivative in the expressions."""
    return max(
        (sum(p.orders) - p.orders[time] for e in expressions for p in partials(e)),
        default=0,
    )
