"""Terms weighed so that all of their tangent kernels have the same trace.

    lambda_m = trace(K) / trace(K_m),   K_m = J_m J_m'

(Wang, Yu and Perdikaris, 2022), as a running mean: terms converge equally fast under
gradient descent. Cost: one pass over all rows' gradients.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares
from pinnlab.weighting.terms import blended, unweighted


PIECE = 512


def ntk(objective: LeastSquares, theta: Float[Array, " P"]) -> LeastSquares:
    """The objective with weights after the traces of its terms' kernels."""
    numbers, start = [], 0
    for block in objective.blocks:
        own = start + jnp.arange(block.weight.size)
        numbers.append(jnp.tile(own, block.points.shape[0]))
        start += block.weight.size
    number = jnp.concatenate(numbers)

    def visit(traces: Array, index: Array, _: Array, gradients: Array) -> Array:
        term = number[jnp.minimum(index, number.size - 1)]
        return traces.at[term].add(jnp.sum(gradients**2, axis=1))

    zeros = jnp.zeros(start, theta.dtype)
    traces = unweighted(objective).fold_rows(theta, visit, zeros, PIECE)
    return blended(objective, traces)
