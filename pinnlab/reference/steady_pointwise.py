"""An expression as a compiled function of the point, of partials and of integrals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    Coordinate,
    Expression,
    Integral,
    Partial,
    children,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.reference.reference import NoReference


CHUNK = 256
"""Points that are evaluated together."""
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Pointwise:
    """An expanded expression as a function of the point, of partials and of integrals.

    - `variables`: the coordinates and bound variables, in order.
    - `bodies`: the integrands of `integrals`, in the same form.
    """

    expression: Expression
    variables: tuple[str, ...]
    partials: tuple[Partial, ...]
    integrals: tuple[Integral, ...]
    bodies: tuple["Pointwise", ...]
    tangent: Callable[[np.ndarray, np.ndarray], tuple[Array, Array]]
    numbers: Callable[[tuple[Expression, ...], Columns], list[np.ndarray]]

    def value_and_slopes(
        self, columns: Columns, atoms: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The value [n] and its derivative by the atoms [n, atoms].

        The atoms are the partials and then the integrals. Points are handled in equal
        chunks, so that the compiled program serves every resolution.
        """
        point = np.stack([columns[v] for v in self.variables], axis=1)
        values, slopes = np.zeros(len(point)), np.zeros(atoms.shape)
        for start in range(0, len(point), CHUNK):
            part = slice(start, start + CHUNK)
            left = len(point[part])
            found = self.tangent(_padded(point[part]), _padded(atoms[part]))
            values[part] = np.asarray(found[0])[:left]
            slopes[part] = np.asarray(found[1])[:left]
        return values, slopes


def pointwise(
    expression: Expression, variables: tuple[str, ...], parameters: Mapping[str, float]
) -> Pointwise:
    """The expression in this form. Raises `NoReference` for a place that moves."""
    partials, integrals = _atoms(expression)
    for node in (*(a for p in partials for a in p.at), *_limits(integrals)):
        if uses_fields(node):
            raise NoReference("a place or a limit of an integral depends on a field")
    constants = {k: jnp.asarray(v, float) for k, v in parameters.items()}
    atoms: tuple[Expression, ...] = (*partials, *integrals)

    def value(point: Float[Array, " v"], values: Float[Array, " atoms"]) -> Array:
        named = dict(zip(variables, point, strict=True))
        known: dict[Expression, Array] = dict(zip(atoms, values, strict=True))
        around = Surroundings(named, constants, None, known)
        return jnp.asarray(evaluate((expression,), around)[0], float)

    def numbers(
        expressions: tuple[Expression, ...], columns: Columns
    ) -> list[np.ndarray]:
        return _numbers(expressions, columns, constants)

    return Pointwise(
        expression,
        variables,
        partials,
        integrals,
        tuple(
            pointwise(i.body, (*variables, i.variable), parameters) for i in integrals
        ),
        jax.jit(jax.vmap(jax.value_and_grad(value, argnums=1))),
        numbers,
    )


def _padded(rows: np.ndarray) -> np.ndarray:
    """The rows with the last one repeated up to the length of a chunk."""
    return np.pad(rows, ((0, CHUNK - len(rows)), (0, 0)), mode="edge")


def _atoms(
    expression: Expression,
) -> tuple[tuple[Partial, ...], tuple[Integral, ...]]:
    """The outermost partials and integrals over fields."""
    found: dict[Expression, None] = {}
    seen: set[Expression] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Partial) or (
            isinstance(node, Integral) and uses_fields(node.body)
        ):
            found[node] = None
        else:
            stack.extend(children(node))
    return (
        tuple(n for n in found if isinstance(n, Partial)),
        tuple(n for n in found if isinstance(n, Integral)),
    )


def _limits(integrals: tuple[Integral, ...]) -> tuple[Expression, ...]:
    return tuple(e for i in integrals for e in (i.lower, i.upper))


def _numbers(
    expressions: tuple[Expression, ...], columns: Columns, constants: Mapping
) -> list[np.ndarray]:
    """Expressions without fields on [n] points each, [n]."""
    count = len(next(iter(columns.values())))
    if all(isinstance(e, Coordinate) for e in expressions):
        return [columns[e.name] for e in expressions if isinstance(e, Coordinate)]
    one = lambda values: [
        jnp.asarray(v, float)
        for v in evaluate(expressions, Surroundings(values, constants))
    ]
    found = jax.vmap(one)({k: jnp.asarray(v) for k, v in columns.items()})
    return [np.broadcast_to(np.asarray(f), (count,)) for f in found]
