"""Fresh points for a least-squares problem, and the residual they reveal."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.residual import Block, LeastSquares, Model
from pinnlab.sampling import by_residual, uniform


def look(
    objective: LeastSquares, theta: Float[Array, " P"], key: PRNGKeyArray, pool: int
) -> tuple[LeastSquares, Float[Array, " terms"]]:
    """Measure the residual on fresh uniform points and draw new training points.

    **Arguments:**

    - `pool`: fresh points for each point that is kept; 1 keeps them all.

    **Returns:** the objective on the new points (drawn by residual from the pool),
    and every term's RMS residual on the pool, relative to its scale.
    """
    model = objective.model(theta)
    keys = jax.random.split(key, len(objective.blocks))
    found = [
        _look(b, model, k, pool) for b, k in zip(objective.blocks, keys, strict=True)
    ]
    blocks = tuple(b for b, _ in found)
    heldout = jnp.concatenate([h for _, h in found])
    return eqx.tree_at(lambda o: o.blocks, objective, blocks), heldout


def _look(
    block: Block, model: Model, key: PRNGKeyArray, pool: int
) -> tuple[Block, Float[Array, " terms"]]:
    if not block.moving:
        return block, _rms(block.raw(model) / block.scale)
    first, second = jax.random.split(key)
    count = block.points.shape[0]
    size = count * (pool if block.adaptive else 1)
    fresh = block.moved(model, uniform(first, block.lower, block.upper, size))
    relative = fresh.raw(model) / block.scale
    heldout = _rms(relative)
    if size == count:
        return fresh, heldout
    total = jnp.sqrt(jnp.sum(relative**2, axis=1))
    points = by_residual(second, fresh.points, total, count)
    return block.moved(model, points), heldout


def _rms(values: Float[Array, "points terms"]) -> Float[Array, " terms"]:
    return jnp.sqrt(jnp.mean(values**2, axis=0))
