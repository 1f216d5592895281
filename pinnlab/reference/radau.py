"""Radau IIA collocation in constant steps, as a solver for diffrax.

For y' = A y + N(t, y) with a constant stiff matrix A (Hairer and Wanner, 1996, IV.5).
With s stages its stage order is s, so that boundary data that vary in time do not lower
the order to 2 or 3, as they do with exponential and diagonally implicit methods.
"""

from functools import cache
from typing import ClassVar, NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import legendre
from scipy.special import roots_jacobi


STAGES = 5
SWEEPS = 60
"""The most iterations for the stages of one step."""
FEW = 6
CLOSE, ACCEPTED = 1e-13, 1e-9
"""The relative change that ends the iteration, and the one that is good enough."""


class Tableau(NamedTuple):
    """Nodes c and weights a, and a = vectors diag(values) inverse."""

    nodes: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    inverse: np.ndarray


@cache
def tableau(stages: int) -> Tableau:
    """The nodes are the zeros of P_s - P_(s-1) on [0, 1], the last one 1."""
    inner = roots_jacobi(stages - 1, 1, 0)[0]
    x = np.append(inner, 1.0)
    values = legendre.legvander(x, stages - 1)
    integrals = np.stack(
        [legendre.legval(x, legendre.legint(e, lbnd=-1)) for e in np.eye(stages)], 1
    )
    weights = integrals @ np.linalg.inv(values) / 2
    eigenvalues, vectors = np.linalg.eig(weights)
    return Tableau((1 + x) / 2, weights, eigenvalues, vectors, np.linalg.inv(vectors))


def inverses(matrix: np.ndarray) -> np.ndarray:
    """(I - lambda A)^-1 for the eigenvalues of the weights, [stages, n, n]."""
    values = tableau(STAGES).values[:, None, None]
    return np.linalg.inv(np.eye(len(matrix)) - values * matrix)


class Radau(dfx.AbstractSolver):
    """Steps of length 1 for a vector field whose stiff part is `matrix` times y.

    The stages are found by iteration: the rest of the vector field at the last
    iterate, the stiff part implicitly.
    """

    matrix: Float[Array, "n n"]
    inverses: Array

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar = dfx.LocalLinearInterpolation

    def order(self, terms):
        return 2 * STAGES - 1

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del t1, solver_state, made_jump
        nodes, weights, _, vectors, inverse = tableau(STAGES)
        times = t0 + jnp.asarray(nodes)
        field = jax.vmap(lambda t, y: terms.vf(t, y, args))

        def sweep(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            count, stages, change, _ = carry
            rest = field(times, stages) - stages @ self.matrix.T
            known = inverse @ (y0 + weights @ rest).astype(complex)
            modes = jnp.einsum("kij,kj->ki", self.inverses, known)
            new = jnp.real(vectors @ modes)
            return count + 1, new, jnp.max(jnp.abs(new - stages)), change

        def goes_on(carry: tuple[Array, ...]) -> Array:
            count, stages, change, before = carry
            open_ = change > CLOSE * jnp.max(jnp.abs(stages))
            # Rounding may stop the iteration a little above that.
            return (count < SWEEPS) & open_ & ((change < before) | (count < FEW))

        first = jnp.broadcast_to(y0, (STAGES, *y0.shape))
        far = jnp.asarray(jnp.inf)
        begin = (jnp.asarray(0), first, far, far)
        _, stages, change, _ = jax.lax.while_loop(goes_on, sweep, begin)
        failed = ~(change <= ACCEPTED * jnp.max(jnp.abs(stages)))
        y1 = jnp.where(failed, jnp.nan, stages[-1])
        return y1, None, dict(y0=y0, y1=y1), None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)
