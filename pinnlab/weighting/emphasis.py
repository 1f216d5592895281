"""Factors of the rows of single points: the last column of what is known there."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.fields import Model
from pinnlab.residual import LeastSquares
from pinnlab.rows import Block


Factors = Callable[[Block, Float[Array, " points"]], Float[Array, " points"]]
"""From a block and the size of its residual at each point to the rows' new factors."""


def emphasized(
    objective: LeastSquares, theta: Float[Array, " P"], factors: Factors
) -> LeastSquares:
    """The objective with new factors where rows are `weighted`.

    The size of a point is the root of the mean square of its residuals, each relative
    to the scale of its term, without the factor that it has.
    """
    model = objective.model(theta)
    blocks = tuple(
        _set(b, factors(b, _sizes(b, model))) if b.rows.weighted else b
        for b in objective.blocks
    )
    return eqx.tree_at(lambda o: o.blocks, objective, blocks)


def _sizes(block: Block, model: Model) -> Float[Array, " points"]:
    plain = _set(block, jnp.ones_like(block.points[:, 0]))
    return jnp.sqrt(jnp.mean((plain.raw(model) / block.scale) ** 2, axis=1))


def _set(block: Block, factors: Float[Array, " points"]) -> Block:
    return block.at(block.points, block.known.at[:, -1].set(factors))
