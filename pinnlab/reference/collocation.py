"""An evolution on a box as a system of ordinary differential equations.

Chebyshev nodes, Fourier ones in periodic directions; the conditions on faces are
eliminated. The state is a vector: the components at the points where the equations
hold, one after another.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.calculus import substitute
from pinnlab.equation.expression import (
    Coordinate,
    Expression,
    Integral,
    Number,
    walk,
)
from pinnlab.equation.structure import partials, uses_fields
from pinnlab.reference.boundary import (
    Elimination,
    FaceRow,
    along,
    derivative_in_time,
    eliminate,
    face_rows,
)
from pinnlab.reference.evolution import Component, Evolution, Key, rates
from pinnlab.reference.grid import Grid, Line
from pinnlab.reference.reference import NoReference
from pinnlab.reference.semilinear import depends_on, number, space_order
from pinnlab.reference.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Collocation:
    """One resolution in space.

    - `rows`: the conditions on faces.
    """

    evolution: Evolution
    grid: Grid
    rows: tuple[FaceRow, ...]

    @cached_property
    def eliminations(self) -> dict[str, tuple[Elimination, ...]]:
        """For each field, one for each line."""
        return {
            field: tuple(
                eliminate(
                    line,
                    tuple(r for r in self.rows if (r.field, r.axis) == (field, i)),
                )
                for i, line in enumerate(self.grid.lines)
            )
            for field in self.evolution.fields
        }

    def _shape(self, component: Component) -> tuple[int, ...]:
        return tuple(len(e.restrict) for e in self.eliminations[component[0]])

    @cached_property
    def size(self) -> int:
        """The length of the state."""
        return sum(math.prod(self._shape(c)) for c in self.evolution.components)

    def pack(self, values: dict[Component, Array]) -> Float[Array, " size"]:
        """The state from the components' values on the grid."""
        parts: list[Array] = []
        for component in self.evolution.components:
            found = values[component]
            for i, e in enumerate(self.eliminations[component[0]]):
                found = along(e.restrict, found, i)
            parts.append(found.ravel())
        return jnp.concatenate(parts)

    def unpack(self, t: Array, state: Float[Array, " size"]) -> dict[Component, Array]:
        """The components' values on the grid; the conditions hold."""
        found: dict[Component, Array] = {}
        begin = 0
        for component in self.evolution.components:
            shape = self._shape(component)
            part = state[begin : begin + math.prod(shape)].reshape(shape)
            begin += math.prod(shape)
            found[component] = self._extend(t, component, part)
        return found

    def _extend(self, t: Array, component: Component, values: Array) -> Array:
        field, order = component
        several = self.eliminations[field]
        for i, e in enumerate(several):
            values = along(e.extend, values, i)
            for j, row in enumerate(e.rows):
                data = derivative_in_time(lambda s, r=row: self._data(r, s), t, order)
                for later in range(i + 1, len(several)):
                    data = along(several[later].restrict, data, later)
                values = values + along(e.impose[:, j : j + 1], data, i)
        return values

    def _data(self, row: FaceRow, t: Array) -> Array:
        """The right-hand side of a condition on its face, of size 1 along its axis."""
        line = self.grid.lines[row.axis]
        end = line.upper if row.upper else line.lower
        name = self.evolution.space[row.axis].name
        value = substitute(row.value, {name: Number(end)})
        shape = list(self.grid.shape)
        shape[row.axis] = 1
        face = np.take(np.arange(len(self.grid.points)).reshape(self.grid.shape), 0,
                       axis=row.axis).ravel()  # fmt: skip
        points = jnp.asarray(self.grid.points[face])
        return self.evolution.values((value,), t, points, {}, {})[0].reshape(shape)

    def slope(self, t: Array, state: Float[Array, " size"]) -> Float[Array, " size"]:
        """The time derivative of the state."""
        evolution = self.evolution
        values = self.unpack(t, state)
        jets: dict[Key, Array] = {}
        for key in evolution.wanted:
            component, orders = evolution.split_key(key)
            jets[key] = self.grid.derivative(values[component], orders).ravel()
        points = jnp.asarray(self.grid.points)
        known = self._integrals(t, jets)
        top = rates(evolution, t, points, jets, known)
        found: dict[Component, Array] = {}
        for f, (field, order) in enumerate(
            zip(evolution.fields, evolution.orders, strict=True)
        ):
            for k in range(order - 1):
                found[field, k] = values[field, k + 1]
            found[field, order - 1] = top[f].reshape(self.grid.shape)
        return self.pack(found)

    def _integrals(self, t: Array, jets: dict[Key, Array]) -> dict[Expression, Array]:
        """The values of the integrals over fields in the equations, at all nodes."""
        nodes = {
            n for e in self.evolution.equations for n in walk(e)
            if isinstance(n, Integral) and uses_fields(n.body)
        }  # fmt: skip
        return {n: self._integral(n, t, jets) for n in nodes}

    def _integral(self, node: Integral, t: Array, jets: dict[Key, Array]) -> Array:
        axis = integrated_axis(self.evolution, node)
        name = self.evolution.space[axis].name
        body = substitute(node.body, {node.variable: Coordinate(name)})
        points = jnp.asarray(self.grid.points)
        (values,) = self.evolution.values((body,), t, points, jets, {})
        weights = self.grid.lines[axis].weights
        total = jnp.tensordot(values.reshape(self.grid.shape), weights, (axis, 0))
        total = jnp.expand_dims(total, axis)
        return jnp.broadcast_to(total, self.grid.shape).ravel()

    @cached_property
    def start(self) -> Float[Array, " size"]:
        """The initial state."""
        values = self.evolution.initial_values(self.grid.points)
        pairs = zip(self.evolution.components, values, strict=True)
        return self.pack({c: jnp.asarray(v.reshape(self.grid.shape)) for c, v in pairs})

    @cached_property
    def _fields(self):
        @jax.jit
        def many(times: Array, states: Array) -> Array:
            def one(pair: tuple[Array, Array]) -> Array:
                values = self.unpack(*pair)
                return jnp.stack([values[f, 0] for f in self.evolution.fields])

            return jax.lax.map(one, (times, states))

        return many

    def trajectory(self, states: Float[Array, "times size"]) -> Trajectory:
        """The fields from the states at equally spaced times."""
        evolution = self.evolution
        times = np.linspace(evolution.start, evolution.end, len(states))
        values = np.moveaxis(np.asarray(self._fields(jnp.asarray(times), states)), 0, 1)
        if times[-1] < times[0]:
            times, values = times[::-1], values[:, ::-1]
        return Trajectory(
            times,
            self.grid.lines,
            evolution.time,
            values,
            evolution.start,
            evolution.initial_fields,
        )

    def linear_matrix(self, equations: tuple[Expression, ...]) -> np.ndarray:
        """The matrix of the slope for other, linear equations and conditions with zero
        data, [size, size]."""
        evolution = replace(self.evolution, equations=equations)
        rows = tuple(replace(r, value=Number(0.0)) for r in self.rows)
        other = Collocation(evolution, self.grid, rows)
        start = jnp.asarray(self.evolution.start)
        slope = lambda state: other.slope(start, state)
        return np.asarray(jax.jit(jax.jacfwd(slope))(jnp.zeros(self.size)))


def integrated_axis(evolution: Evolution, node: Integral) -> int:
    """The coordinate of space that an integral over its whole range runs over.

    Raises `NoReference` for integrals of another kind.
    """
    bound = Coordinate(node.variable)
    axes = {p.at.index(bound) for p in partials(node.body) if bound in p.at}
    names = [a.name for a in evolution.space]
    if len(axes) != 1 or evolution.names[min(axes)] not in names:
        raise NoReference("an integral over time")
    axis = names.index(evolution.names[min(axes)])
    nested = any(isinstance(n, Integral) for n in walk(node.body))
    if nested or depends_on(node.body, (names[axis],)):
        raise NoReference("an integral with a kernel, or inside another one")
    for limit, side in ((node.lower, "lower"), (node.upper, "upper")):
        wanted = getattr(evolution.space[axis], side)
        if depends_on(limit, evolution.names):
            raise NoReference("an integral with a variable limit")
        if not math.isclose(number(evolution.problem, limit), wanted, abs_tol=1e-12):
            raise NoReference("an integral over a part of a coordinate's range")
    return axis


def collocate(evolution: Evolution, count: int) -> Collocation:
    """The discretization with `count` nodes on every line.

    Without derivatives in space every point is on its own, and nothing is periodic.
    """
    alone = space_order(evolution.equations, evolution.time) == 0
    periodic = () if alone else evolution.problem.periodic
    lines = tuple(
        Line(a.name, a.lower, a.upper, count, a.name in periodic)
        for a in evolution.space
    )
    return Collocation(evolution, Grid(lines), face_rows(evolution))
