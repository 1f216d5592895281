"""Points weighed by their residual, with memory: residual-based attention.

    lambda_i <- gamma lambda_i + (1 - gamma) |r_i| / max over j of |r_j|

(Anagnostopoulos et al., 2023), the factor of row i. It belongs to points that stay, so
they are not redrawn. The published gamma of 0.999 is for a step of Adam; this is for
the some hundred steps between two looks.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares
from pinnlab.rows import Block
from pinnlab.weighting.emphasis import emphasized


MEMORY = 0.8


def attention(objective: LeastSquares, theta: Float[Array, " P"]) -> LeastSquares:
    """The objective with other factors on the points of its equations."""
    return emphasized(objective, theta, _factors)


def _factors(block: Block, size: Float[Array, " points"]) -> Float[Array, " points"]:
    largest = jnp.max(size)
    relative = size / jnp.where(largest > 0, largest, 1)
    return MEMORY * block.known[:, -1] + (1 - MEMORY) * relative
