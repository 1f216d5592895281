"""The value of an expanded expression at one point.

Everything here is written for one point; callers `vmap`. How a field's partial
derivatives are found is the caller's business: it passes a function that gives all of
them at a location at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation import singular
from pinnlab.equation.expression import (
    Apply,
    Coordinate,
    Expression,
    Integral,
    Number,
    Parameter,
    Partial,
    children,
)
from pinnlab.equation.structure import uses_fields


Orders = tuple[int, ...]
Wanted = tuple[tuple[str, Orders], ...]
PartialsAt = Callable[[Float[Array, " dim"], Wanted], Sequence[Array]]
"""Gives the wanted partial derivatives `(field, orders)` at a location."""

FIELD_NODES = 48
"""Gauss-Legendre nodes of an integral over fields."""
STATIC_PANELS, STATIC_NODES = 24, 16
"""Panels and nodes of an integral without fields (computed once per point)."""


@dataclass(frozen=True)
class Surroundings:
    """What an expression is evaluated in.

    - `values`: coordinates and bound variables by name.
    - `parameters`: the problem's parameters by name.
    - `partials`: the fields' derivatives at a location; None where there are none.
    - `known`: values of sub-expressions computed before.
    """

    values: Mapping[str, Array]
    parameters: Mapping[str, Array]
    partials: PartialsAt | None = None
    known: Mapping[Expression, Array] = field(default_factory=dict)


def evaluate(
    expressions: Sequence[Expression], surroundings: Surroundings
) -> tuple[Array, ...]:
    """The values of several expressions that share their sub-expressions.

    All partial derivatives that are wanted at one location are asked for at once.
    Raises `ValueError` for a field where `surroundings` has no `partials`.
    """
    memory = dict(surroundings.known)
    _gather(expressions, surroundings, memory)
    return tuple(_value(e, surroundings, memory) for e in expressions)


def _gather(
    expressions: Sequence[Expression],
    surroundings: Surroundings,
    memory: dict[Expression, Array],
) -> None:
    """Put every partial outside integrals into the memory, location by location."""
    wanted: dict[tuple[Expression, ...], dict[Partial, None]] = {}
    seen: set[Expression] = set()
    stack = list(reversed(expressions))
    while stack:
        node = stack.pop()
        if node in seen or node in memory:
            continue
        seen.add(node)
        if isinstance(node, Partial):
            wanted.setdefault(node.at, {})[node] = None
        elif not isinstance(node, Integral):
            stack.extend(children(node))
        else:
            stack.extend((node.lower, node.upper))
    for at, nodes in wanted.items():
        if surroundings.partials is None:
            raise ValueError(f"the field '{next(iter(nodes)).field}' has no value here")
        place = jnp.stack(
            [jnp.asarray(_value(a, surroundings, memory), float) for a in at]
        )
        keys = tuple((n.field, n.orders) for n in nodes)
        memory.update(zip(nodes, surroundings.partials(place, keys), strict=True))


def _value(
    node: Expression, surroundings: Surroundings, memory: dict[Expression, Array]
) -> Array:
    if node in memory:
        return memory[node]
    match node:
        case Number(value):
            return value  # pyright: ignore[reportReturnType]
        case Coordinate(name):
            return surroundings.values[name]
        case Parameter(name):
            return surroundings.parameters[name]
        case Apply("^", (base, Number(int() | float() as exponent))):
            result = singular.power(_value(base, surroundings, memory), exponent)
        case Apply(function, arguments):
            result = OPERATIONS[function](
                *(_value(a, surroundings, memory) for a in arguments)
            )
        case Integral():
            result = _integral(node, surroundings, memory)
        case _:
            raise ValueError(f"cannot evaluate a {type(node).__name__} node")
    memory[node] = result
    return result


def _integral(
    node: Integral, surroundings: Surroundings, memory: dict[Expression, Array]
) -> Array:
    lower = _value(node.lower, surroundings, memory)
    upper = _value(node.upper, surroundings, memory)
    nodes, weights = _rule(uses_fields(node.body))
    half = (upper - lower) / 2

    def integrand(s: Array) -> Array:
        values = {**surroundings.values, node.variable: lower + half * (1 + s)}
        inner = Surroundings(values, surroundings.parameters, surroundings.partials)
        return jnp.asarray(evaluate((node.body,), inner)[0], float)

    return half * jnp.dot(weights, jax.vmap(integrand)(nodes))


def _rule(with_fields: bool) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1], composite without fields."""
    panels, count = (1, FIELD_NODES) if with_fields else (STATIC_PANELS, STATIC_NODES)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    centers = (2 * np.arange(panels) + 1) / panels - 1
    every = (centers[:, None] + nodes[None, :] / panels).ravel()
    return jnp.asarray(every), jnp.asarray(np.tile(weights / panels, panels))


OPERATIONS: dict[str, Callable[..., Array]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: jnp.power(jnp.asarray(a, float), b),
    "neg": lambda a: -a,
    "<": lambda a, b: jnp.less(a, b),
    "<=": lambda a, b: jnp.less_equal(a, b),
    ">": lambda a, b: jnp.greater(a, b),
    ">=": lambda a, b: jnp.greater_equal(a, b),
    "==": lambda a, b: jnp.equal(a, b),
    "!=": lambda a, b: jnp.not_equal(a, b),
    "and": jnp.logical_and,
    "or": jnp.logical_or,
    "not": jnp.logical_not,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "atan2": singular.arctan2,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "exp": jnp.exp,
    "log": jnp.log,
    "sqrt": singular.sqrt,
    "abs": singular.absolute,
    "min": jnp.minimum,
    "max": jnp.maximum,
    "sign": jnp.sign,
    "heaviside": lambda a: jnp.heaviside(a, 0.5),
    "erf": jax.scipy.special.erf,
    "where": jnp.where,
    "real": lambda a: a,
    "imag": lambda a: 0.0 * a,
    "conj": lambda a: a,
}
