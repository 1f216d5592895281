"""A trained model on many points: one padded, compiled batch function for everything.

Points are processed in batches of one fixed size, so that a point alone and the same
point among a million give the same bits. Separable networks, and those with functions
around holes and corners, are evaluated in NumPy: to compile them takes longer than all
that is asked of them.
"""

from collections.abc import Callable, Sequence
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.equation.expression import Coordinate, Expression, Partial, terms
from pinnlab.equation.jets import Orders
from pinnlab.equation.structure import partials
from pinnlab.fields import Model
from pinnlab.network import Derivative, in_arrays, slabs_of
from pinnlab.rows import Rows, make_rows
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


BATCH = 1024
CHUNK = 4096


class Evaluator:
    """Values of expressions in the fields (or residuals of terms) at points.

    Called with a model and [n, dim] points it gives [n, len(terms)].
    """

    def __init__(self, system: System, wanted: Sequence[Term | Expression]):
        self.rows = make_rows(system, wanted)
        here = tuple(Coordinate(c) for c in system.coordinates)
        self._is_local = np.array(
            [
                isinstance(f, Expression) and all(p.at == here for p in partials(f))
                for f in self.rows.functions
            ],
            bool,
        )
        others = [
            w for w, local in zip(wanted, self._is_local, strict=True) if not local
        ]
        self._others = make_rows(system, others)
        self._batch: Callable = eqx.filter_jit(_batch)

    def __call__(self, model: Model, points: np.ndarray) -> np.ndarray:
        derivative = in_arrays(model.network) if len(points) else None
        if derivative is None:
            return self._padded(self.rows, model, points)
        found = np.empty((len(points), len(self.rows.functions)))
        order = np.argsort(slabs_of(model.network, points), kind="stable")
        found[:, self._is_local] = self._in_arrays(derivative, points, order)
        if not self._is_local.all():
            found[:, ~self._is_local] = self._padded(self._others, model, points)
        return found

    def _in_arrays(
        self, derivative: Derivative, points: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """What needs the fields at the points alone, which are computed in an order."""
        system = self.rows.system
        pairs = zip(self.rows.functions, self._is_local, strict=True)
        written = cast("list[Expression]", [f for f, local in pairs if local])

        def partial(field: str, orders: Orders, places: np.ndarray) -> np.ndarray:
            return derivative(places, system.fields.index(field), orders)

        found = np.empty((len(points), len(written)))
        found[order] = array_values(
            system.problem, written, points[order], partial, chunk=CHUNK
        )
        return found

    def _padded(self, rows: Rows, model: Model, points: np.ndarray) -> np.ndarray:
        count = len(points)
        padded = -(-max(count, 1) // BATCH) * BATCH
        with jax.enable_x64(True):
            every = np.zeros((padded, points.shape[1]))
            every[:count] = points
            every[count:] = points[:1] if count else 0.0
            found = [
                np.asarray(self._batch(rows, model, jnp.asarray(part)))
                for part in np.split(every, padded // BATCH)
            ]
        return np.concatenate(found)[:count]


def _batch(rows: Rows, model: Model, points: Array) -> Array:
    def one(point: Array) -> Array:
        return rows(model, point, rows.known(model.parameters, point))

    with jax.default_matmul_precision("highest"):
        return jax.vmap(one)(points)


def field_expressions(system: System) -> tuple[Expression, ...]:
    """The fields themselves as expressions, in the network's order."""
    at = tuple(Coordinate(c) for c in system.coordinates)
    zero = (0,) * len(at)
    return tuple(Partial(f, zero, at) for f in system.fields)


def with_summands(term: Term) -> tuple[Term | Expression, ...]:
    """A term's residual and its summands, as far as they are known."""
    if not isinstance(term.residual, Expression):
        return (term,)
    return (term.residual, *terms(term.residual))


def sized(values: np.ndarray) -> tuple[np.ndarray, float]:
    """The residual [n] and the RMS of its largest summand, of a residual and its
    summands [n, 1 + summands]; 1 where none is known."""
    sizes = np.sqrt(np.mean(values[:, 1:] ** 2, axis=0))
    return values[:, 0], float(np.max(sizes)) if len(sizes) else 1.0


def term_sizes(
    system: System, model: Model, term: Term, points: np.ndarray
) -> tuple[np.ndarray, float]:
    """A term's residual at points, and the size of its largest summand (RMS)."""
    return sized(Evaluator(system, with_summands(term))(model, points))
