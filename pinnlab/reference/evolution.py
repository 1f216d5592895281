"""An evolution: what is marched, from which data, and the rates."""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    ZERO,
    Expression,
)
from pinnlab.equation.structure import partials
from pinnlab.problem.problem import Axis, Problem
from pinnlab.reference.reference import NoReference
from pinnlab.reference.semilinear import semilinear
from pinnlab.system.arrays import array_values
from pinnlab.system.terms import Term, coordinates


Key = tuple[str, tuple[int, ...]]
"""A partial derivative of a field: its name and the orders, time included."""
Component = tuple[str, int]
"""A field and the order of a time derivative: one unknown of the first-order system."""


@dataclass(frozen=True, eq=False)
class Evolution:
    """Equations for the highest time derivatives, and where they start.

    - `time`: the index of the coordinate that is marched in.
    - `start`, `end`: from where to where; `end` is below `start` for terminal data.
    - `orders`: the order in time of each field.
    - `initial`: the values of the components at `start`, functions of space.
    - `walls`: the conditions on the faces of the other coordinates.
    """

    problem: Problem
    time: int
    start: float
    end: float
    fields: tuple[str, ...]
    orders: tuple[int, ...]
    equations: tuple[Expression, ...]
    initial: tuple[Expression, ...]
    walls: tuple[Term, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All coordinates."""
        return coordinates(self.problem)

    @cached_property
    def space(self) -> tuple[Axis, ...]:
        """The coordinates other than time, in order."""
        axes = self.problem.axes
        return axes[: self.time] + axes[self.time + 1 :]

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The unknowns of the first-order system, field by field."""
        return tuple(
            (field, k)
            for field, order in zip(self.fields, self.orders, strict=True)
            for k in range(order)
        )

    @cached_property
    def rows(self) -> list[int]:
        """Which components are the fields themselves."""
        return [self.components.index((f, 0)) for f in self.fields]

    @cached_property
    def highest(self) -> tuple[Key, ...]:
        """The derivatives that the equations are solved for."""
        still = (0,) * len(self.space)
        return tuple(
            (field, self.key(order, still))
            for field, order in zip(self.fields, self.orders, strict=True)
        )

    @cached_property
    def wanted(self) -> tuple[Key, ...]:
        """The derivatives in the equations other than the highest in time."""
        found = dict.fromkeys(
            (p.field, p.orders) for e in self.equations for p in partials(e)
        )
        return tuple(key for key in found if key not in self.highest)

    @cached_property
    def solved(self) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """The mass matrix, row by row, and the rest of each equation.

        mass w + rest = 0 for the highest derivatives w. Raises `NoReference` where
        they do not enter like this.
        """
        highest = set(self.highest)
        holds = lambda e: any((p.field, p.orders) in highest for p in partials(e))
        mass: list[Expression] = []
        rest: list[Expression] = []
        for equation in self.equations:
            split = semilinear(equation, lambda c: True, holds)
            if holds(split.rest):
                raise NoReference("a time derivative enters an equation nonlinearly")
            row = {(p.field, p.orders): c for p, c in split.linear.items()}
            mass += [row.get(key, ZERO) for key in self.highest]
            rest.append(split.rest)
        return tuple(mass), tuple(rest)

    def key(self, order: int, space: tuple[int, ...]) -> tuple[int, ...]:
        """Orders in all coordinates from the order in time and those in space."""
        return (*space[: self.time], order, *space[self.time :])

    def split_key(self, key: Key) -> tuple[Component, tuple[int, ...]]:
        """The component, and the orders in space, that a derivative is made of."""
        field, orders = key
        space = orders[: self.time] + orders[self.time + 1 :]
        return (field, orders[self.time]), space

    def values(
        self,
        expressions: tuple[Expression, ...],
        t: Array | float,
        points: Float[Array, "n space"],
        jets: dict[Key, Float[Array, " n"]],
        known: dict[Expression, Float[Array, " n"]],
    ) -> Float[Array, "expressions n"]:
        """Expressions at a time and points of space, given the fields' derivatives.

        `known` has the values of sub-expressions computed before: the integrals.
        """
        parameters = {k: jnp.asarray(v) for k, v in self.problem.parameters.items()}
        keys, nodes = tuple(jets), tuple(known)

        def one(point: Array, jet: Array, memory: Array) -> Array:
            full = [*point[: self.time], jnp.asarray(t, float), *point[self.time :]]
            index = {key: jet[i] for i, key in enumerate(keys)}
            around = Surroundings(
                dict(zip(self.names, full, strict=True)),
                parameters,
                lambda place, wanted: [index[key] for key in wanted],
                {node: memory[i] for i, node in enumerate(nodes)},
            )
            found = evaluate(expressions, around)
            return jnp.stack([jnp.asarray(v, float) for v in found])

        count = len(points)
        stacked = lambda rows: jnp.stack(rows) if rows else jnp.zeros((0, count))
        rows = (stacked(list(jets.values())), stacked(list(known.values())))
        return jax.vmap(one, in_axes=(0, 1, 1), out_axes=1)(jnp.asarray(points), *rows)

    def initial_values(
        self, points: Float[np.ndarray, "n space"]
    ) -> Float[np.ndarray, "components n"]:
        """The components at the start."""
        full = np.insert(points, self.time, self.start, axis=1)
        return array_values(self.problem, self.initial, full).T

    def initial_fields(
        self, points: Float[np.ndarray, "n space"]
    ) -> Float[np.ndarray, "fields n"]:
        """The fields at the start."""
        return self.initial_values(points)[self.rows]


def rates(
    evolution: Evolution,
    t: Array | float,
    points: Float[Array, "n space"],
    jets: dict[Key, Float[Array, " n"]],
    known: dict[Expression, Float[Array, " n"]],
) -> Float[Array, "fields n"]:
    """The highest time derivatives, solved for at each point."""
    mass, rest = evolution.solved
    found = evolution.values((*mass, *rest), t, points, jets, known)
    size = len(rest)
    matrix = found[:-size].reshape(size, size, -1)
    if size == 1:
        return -found[-1:] / matrix[0]
    solve = jax.vmap(jnp.linalg.solve, in_axes=(2, 1), out_axes=1)
    return -solve(matrix, found[-size:])
