"""Weights of terms, blended into those that they had."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares


MEMORY = 0.9


def unweighted(objective: LeastSquares) -> LeastSquares:
    """The objective with all weights of terms 1."""
    return _with_weights(objective, [jnp.ones_like(b.weight) for b in objective.blocks])


def alone(objective: LeastSquares, block: int, term: int) -> LeastSquares:
    """The objective with the weights of all other terms 0."""
    weights = [jnp.zeros_like(b.weight) for b in objective.blocks]
    kept = objective.blocks[block].weight[term]
    weights[block] = weights[block].at[term].set(kept)
    return _with_weights(objective, weights)


def blended(objective: LeastSquares, sizes: Float[Array, " terms"]) -> LeastSquares:
    """Weights inversely proportional to sizes, a tenth of them: the rest is memory.

    Their sum does not change. Sizes that are 0 or not finite leave all as it was.
    """
    old = jnp.concatenate([b.weight for b in objective.blocks])
    wanted = 1 / sizes
    wanted = wanted * jnp.sum(old) / jnp.sum(wanted)
    new = MEMORY * old + (1 - MEMORY) * wanted
    new = jnp.where(jnp.all((sizes > 0) & jnp.isfinite(sizes)), new, old)
    weights, start = [], 0
    for block in objective.blocks:
        weights.append(new[start : start + block.weight.size])
        start += block.weight.size
    return _with_weights(objective, weights)


def _with_weights(objective: LeastSquares, weights: list[Array]) -> LeastSquares:
    return eqx.tree_at(lambda o: [b.weight for b in o.blocks], objective, weights)
