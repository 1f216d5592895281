"""Points weighed so that early times are solved before later ones.

    w(t) = exp(-epsilon sum over the time slices before t of the mean of r^2)

(Wang, Sankaran and Perdikaris, 2022), with r relative to the size of its equation's
terms. A slice counts once the residual of all slices before it is small.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares
from pinnlab.rows import Block
from pinnlab.weighting.emphasis import emphasized


SLICES = 32
EPSILON = 1e3
"""A residual of 1 % in every slice leaves the last one exp(-32 * 1e3 * 1e-4) = 4 %."""


def causal(objective: LeastSquares, theta: Float[Array, " P"]) -> LeastSquares:
    """The objective with the weights of causality on the points of its equations."""
    return emphasized(objective, theta, _factors)


def _factors(block: Block, size: Float[Array, " points"]) -> Float[Array, " points"]:
    axis = block.rows.system.coordinates.index("t")
    lower, upper = block.lower[axis], block.upper[axis]
    part = (block.points[:, axis] - lower) / (upper - lower)
    number = jnp.clip((part * SLICES).astype(int), 0, SLICES - 1)
    total = jax.ops.segment_sum(size**2, number, SLICES)
    count = jax.ops.segment_sum(jnp.ones_like(size), number, SLICES)
    mean = total / jnp.maximum(count, 1)
    before: Array = jnp.cumsum(mean) - mean
    # A row's factor is the root of its weight.
    return jnp.exp(-0.5 * EPSILON * before)[number]
