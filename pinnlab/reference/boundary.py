"""Conditions on faces, eliminated by rectangular collocation (Driscoll and Hale, 2016).

With m conditions on the ends of a line of n nodes, the equations hold at n - m points,
to which values are interpolated; these and the conditions determine the n values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.expression import Expression, Partial
from pinnlab.equation.structure import affine
from pinnlab.reference.evolution import Evolution
from pinnlab.reference.grid import Line
from pinnlab.reference.reference import NoReference
from pinnlab.reference.semilinear import depends_on, number
from pinnlab.system.terms import Term


@dataclass(frozen=True)
class FaceRow:
    """sum_k coefficients[k] * (derivative k along the axis) = value, at one end.

    - `axis`: the index among the coordinates of space.
    """

    field: str
    axis: int
    upper: bool
    coefficients: dict[int, float]
    value: Expression

    def row(self, line: Line) -> Float[np.ndarray, " count"]:
        """The left-hand side as a row over the nodes of the line."""
        end = -1 if self.upper else 0
        pairs = self.coefficients.items()
        return np.sum([c * line.matrix(k)[end] for k, c in pairs], axis=0)


def face_rows(evolution: Evolution) -> tuple[FaceRow, ...]:
    """The conditions on faces. Raises `NoReference` for any of another kind."""
    return tuple(_face_row(evolution, term) for term in evolution.walls)


def _face_row(evolution: Evolution, term: Term) -> FaceRow:
    form = affine(term.residual)  # pyright: ignore[reportArgumentType]
    face = term.place.face(evolution.problem)
    if form is None or face is None:
        raise NoReference(f"condition '{term.name}' is not linear")
    name, upper = face
    axis = [a.name for a in evolution.space].index(name)
    fields: set[str] = set()
    coefficients: dict[int, float] = {}
    for atom, coefficient in form.coefficients.items():
        if not isinstance(atom, Partial):
            raise NoReference(f"condition '{term.name}' has an integral")
        (_, order), space = evolution.split_key((atom.field, atom.orders))
        if order or sum(space) != space[axis]:
            raise NoReference(f"condition '{term.name}' differentiates along the face")
        if depends_on(coefficient, evolution.names):
            raise NoReference(f"condition '{term.name}' has a variable coefficient")
        fields.add(atom.field)
        coefficients[space[axis]] = number(evolution.problem, coefficient)
    if len(fields) != 1:
        raise NoReference(f"condition '{term.name}' couples several fields")
    return FaceRow(fields.pop(), axis, upper, coefficients, -form.rest)


@dataclass(frozen=True, eq=False)
class Elimination:
    """One field along one line: values at nodes from values at fewer points and data.

    - `restrict`: [n - m, n], nodes to points.
    - `extend`: [n, n - m], and `impose`: [n, m]: nodes from points and data.
    """

    restrict: np.ndarray
    extend: np.ndarray
    impose: np.ndarray
    rows: tuple[FaceRow, ...]


def eliminate(line: Line, rows: tuple[FaceRow, ...]) -> Elimination:
    """Solve the conditions for the values that the equations leave free.

    Raises `NoReference` where the conditions contradict each other.
    """
    one = np.eye(line.count)
    if not rows:
        return Elimination(one, one, np.zeros((line.count, 0)), ())
    if line.periodic:
        raise NoReference(f"conditions on the periodic coordinate '{line.name}'")
    kept = line.count - len(rows)
    unit = -np.cos(np.pi * (np.arange(kept) + 0.5) / kept)
    points = (line.lower + line.upper) / 2 + line.length / 2 * unit
    restrict = line.interpolation(points)
    # Rows of high derivatives are large: scaled, they solve as accurately as values.
    conditions = np.stack([r.row(line) for r in rows])
    scale = np.abs(conditions).max(axis=1)
    square = np.concatenate([restrict, conditions / scale[:, None]])
    if np.linalg.cond(square) > 1e10:
        raise NoReference(f"the conditions on '{line.name}' depend on each other")
    inverse = np.linalg.inv(square)
    return Elimination(restrict, inverse[:, :kept], inverse[:, kept:] / scale, rows)


def along(matrix: np.ndarray, values: Array, axis: int) -> Array:
    """A matrix applied along one axis."""
    return jnp.moveaxis(jnp.tensordot(matrix, values, (1, axis)), 0, axis)


def derivative_in_time(
    function: Callable[[Array], Array], t: Array, order: int
) -> Array:
    """The derivative of some order of a function of time."""
    if order == 0:
        return function(t)
    slope = lambda s: jax.jvp(function, (s,), (jnp.ones_like(s),))[1]
    return derivative_in_time(slope, t, order - 1)
