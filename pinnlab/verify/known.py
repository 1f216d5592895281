"""How far a model is from the truth, or from satisfying the equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.evaluation import Evaluator, field_expressions, term_sizes
from pinnlab.fields import Model
from pinnlab.rows import Rows, make_rows
from pinnlab.sampling import sample
from pinnlab.scaling import parameters_of
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, exact_solution


ERROR_SAMPLE = 4096
HELDOUT_SAMPLE = 2048


class KnownError(eqx.Module):
    """The worst field's relative L2 error of a model on points with a known truth.

    - `known`: what of the fields contains no network output, at the points.
    - `size`: the norm of each field's truth.
    """

    rows: Rows
    points: Float[Array, "points dim"]
    known: Float[Array, "points nodes"]
    truth: Float[Array, "points fields"]
    size: Float[Array, " fields"]

    def __call__(self, model: Model) -> Float[Array, ""]:
        """The error."""
        return self._error(
            jax.vmap(self.rows, in_axes=(None, 0, 0))(model, self.points, self.known)
        )

    def measured(self, model: Model) -> float:
        """The error, outside of compiled code."""
        system = self.rows.system
        evaluator = Evaluator(system, field_expressions(system))
        found = evaluator(model, np.asarray(self.points))
        return float(self._error(jnp.asarray(found)))

    def _error(self, found: Float[Array, "points fields"]) -> Float[Array, ""]:
        lengths = jnp.sqrt(jnp.sum((found - self.truth) ** 2, axis=0))
        return jnp.max(lengths / self.size)


def error_of(system: System) -> KnownError | None:
    """The worst field's relative error on a fixed sample, where a truth is given."""
    exact = exact_solution(system.problem)
    if set(exact) != set(system.fields):
        return None
    points = sample(system.problem, EVERYWHERE, ERROR_SAMPLE, seed=101)
    truth = array_values(system.problem, tuple(exact[f] for f in system.fields), points)
    keep = np.isfinite(truth).all(axis=1)
    points, truth = jnp.asarray(points[keep]), jnp.asarray(truth[keep])
    rows = make_rows(system, field_expressions(system))
    parameters = parameters_of(system)
    known = jax.jit(jax.vmap(lambda p: rows.known(parameters, p)))(points)
    size = jnp.sqrt(jnp.sum(truth**2, axis=0))
    size = jnp.where(size > 0, size, jnp.sqrt(float(len(truth))))
    return KnownError(rows, points, known, truth, size)


def heldout_of(system: System, model: Model, seed: int) -> float:
    """The worst equation's residual on fresh points, relative to its largest term."""
    worst = 0.0
    for term in system.equations:
        points = sample(system.problem, term.place, HELDOUT_SAMPLE, seed + 40_009)
        residual, size = term_sizes(system, model, term, points)
        worst = max(worst, float(np.sqrt(np.mean(residual**2))) / (size or 1.0))
    return worst
