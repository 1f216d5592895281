"""Terms weighed so that all of their gradients are equally long.

    lambda_m = sum over k of |grad L_k| / |grad L_m|

(Wang, Teng and Perdikaris, 2021; Wang et al., 2023), as a running mean. Cost: a
gradient for each term.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares
from pinnlab.weighting.terms import alone, blended, unweighted


def gradient_norm(objective: LeastSquares, theta: Float[Array, " P"]) -> LeastSquares:
    """The objective with weights after the norms of its terms' gradients."""
    plain = unweighted(objective)
    gradients = [
        alone(plain, i, j).value_and_grad(theta)[1]
        for i, block in enumerate(objective.blocks)
        for j in range(block.weight.size)
    ]
    return blended(objective, jnp.linalg.norm(jnp.stack(gradients), axis=1))
