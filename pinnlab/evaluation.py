"""A trained model on many points: one padded, compiled batch function for everything.

Points are processed in batches of one fixed size, so that a point alone and the same
point among a million give the same bits. A solution in slabs is evaluated slab by slab.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.equation.expression import Coordinate, Expression, Partial, terms
from pinnlab.equation.structure import partials
from pinnlab.network import Separable
from pinnlab.residual import Model, Rows, make_rows
from pinnlab.system.system import System
from pinnlab.system.terms import Term


BATCH = 1024
SLAB_BATCH = 128
"""Where there are many slabs, each has few of the points."""


class Evaluator:
    """Values of expressions in the fields (or residuals of terms) at points.

    Called with a model and [n, dim] points it gives [n, len(terms)].
    """

    def __init__(self, system: System, wanted: Sequence[Term | Expression]):
        self.rows = make_rows(system, wanted)
        self._batch: Callable = eqx.filter_jit(_batch)
        here = tuple(Coordinate(c) for c in system.coordinates)
        self._is_local = all(
            isinstance(f, Expression) and all(p.at == here for p in partials(f))
            for f in self.rows.functions
        )

    def __call__(self, model: Model, points: np.ndarray) -> np.ndarray:
        network = model.network
        if not (isinstance(network, Separable) and self._is_local and len(points)):
            return self._padded(model, points, BATCH)
        slabs = network.slabs_of(points)
        found = np.zeros((len(points), len(self.rows.functions)))
        for which in np.unique(slabs):
            here = slabs == which
            alone = eqx.tree_at(lambda m: m.network, model, network.slab(int(which)))
            found[here] = self._padded(alone, points[here], SLAB_BATCH)
        return found

    def _padded(self, model: Model, points: np.ndarray, batch: int) -> np.ndarray:
        count = len(points)
        padded = -(-max(count, 1) // batch) * batch
        with jax.enable_x64(True):
            every = np.zeros((padded, points.shape[1]))
            every[:count] = points
            every[count:] = points[:1] if count else 0.0
            found = [
                np.asarray(self._batch(self.rows, model, jnp.asarray(part)))
                for part in np.split(every, padded // batch)
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


def term_sizes(
    system: System, model: Model, term: Term, points: np.ndarray
) -> tuple[np.ndarray, float]:
    """A term's residual at points, and the size of its largest summand (RMS)."""
    if not isinstance(term.residual, Expression):
        residual = Evaluator(system, (term,))(model, points)[:, 0]
        return residual, 1.0
    pieces = terms(term.residual)
    values = Evaluator(system, (term.residual, *pieces))(model, points)
    size = float(np.max(np.sqrt(np.mean(values[:, 1:] ** 2, axis=0))))
    return values[:, 0], size
