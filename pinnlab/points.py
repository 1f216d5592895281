"""Fresh points for a least-squares problem, and the residual they reveal."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.residual import LeastSquares
from pinnlab.rows import Block
from pinnlab.sampling import by_residual, uniform


MORE = 1.25
"""Points drawn for each that is wanted inside of a shape, its area considered."""


def look(
    objective: LeastSquares, theta: Float[Array, " P"], key: PRNGKeyArray, pool: int
) -> tuple[LeastSquares, Float[Array, " terms"]]:
    """Measure the residual on fresh uniform points and draw new training points.

    **Arguments:**

    - `pool`: fresh points for each point that is kept; 1 keeps them all.

    **Returns:** the objective on the new points (drawn by residual from the pool),
    and every term's RMS residual on the pool, relative to its scale.
    """
    keys = jax.random.split(key, len(objective.blocks))
    found = [
        _look(objective, theta, b, k, pool)
        for b, k in zip(objective.blocks, keys, strict=True)
    ]
    blocks = tuple(b for b, _ in found)
    heldout = jnp.concatenate([h for _, h in found])
    return eqx.tree_at(lambda o: o.blocks, objective, blocks), heldout


def _look(
    objective: LeastSquares,
    theta: Float[Array, " P"],
    block: Block,
    key: PRNGKeyArray,
    pool: int,
) -> tuple[Block, Float[Array, " terms"]]:
    if not block.moving:
        return block, _rms(objective.relative(block, theta)[: block.count])
    first, second = jax.random.split(key)
    size = block.count * (pool if block.adaptive else 1)
    points = _candidates(first, block, size)
    fresh = objective.moved(block, points)
    relative = objective.relative(fresh, theta)[:size]
    heldout = _rms(relative)
    if size == block.count:
        return fresh, heldout
    total = jnp.sqrt(jnp.sum(relative**2, axis=1))
    points = by_residual(second, points, total, block.count)
    return objective.moved(block, points), heldout


def _candidates(key: PRNGKeyArray, block: Block, size: int) -> Float[Array, "size dim"]:
    """Uniform points of the block's domain.

    Of a shape those come first that fall inside when its box is filled; where too few
    do, which is rare, they are taken again.
    """
    if block.shape is None:
        return uniform(key, block.lower, block.upper, size)
    lower, upper = block.lower, block.upper
    for k, column in enumerate(block.shape.columns):
        lower = lower.at[column].set(block.shape.box[0, k])
        upper = upper.at[column].set(block.shape.box[1, k])
    drawn = uniform(key, lower, upper, math.ceil(MORE * size / block.shape.share))
    inside = block.shape.level(drawn, jnp) > 0
    order = jnp.argsort(~inside, stable=True)
    return drawn[order[jnp.arange(size) % jnp.maximum(1, jnp.sum(inside))]]


def _rms(values: Float[Array, "points terms"]) -> Float[Array, " terms"]:
    return jnp.sqrt(jnp.mean(values**2, axis=0))
