"""Optax's Muon as an optimizer of an objective.

    M <- beta M + G,   W <- W - eta 0.2 sqrt(max(rows, columns)) U V'   (M = U S V')

for every weight matrix W with gradient G (Jordan et al., 2024; Liu et al., 2025): the
momentum with all singular values set to one, by Newton-Schulz iteration. Vectors and
numbers are Adam's. One gradient a step and some products of matrices of the layers'
size; for networks too large for curvature.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from pinnlab.optimizer.first_order import AdamState, descend
from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info


class Muon(AbstractOptimizer[AdamState]):
    """Muon with a learning rate that decays by the factor `decay` every 100 steps.

    A gradient that is not finite changes nothing.

    !!! example

        optimizer = Muon(learning_rate=1e-3)
    """

    learning_rate: float = 5e-3
    decay: float = 0.9

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> AdamState:
        inner = _muon().init(jax.tree.leaves(objective.arrays(theta)))
        # Weak types would compile the second step anew.
        inner = jax.tree.map(lambda x: jnp.asarray(x, jnp.asarray(x).dtype), inner)
        return AdamState(inner, jnp.asarray(0, jnp.int32))

    def step(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: AdamState
    ) -> tuple[Float[Array, " P"], AdamState, Info]:
        now = jax.tree.leaves(objective.arrays(theta))

        def direction(gradient: Array, inner: optax.OptState):
            split = jax.tree.leaves(objective.arrays(gradient))
            updates, new = _muon().update(split, inner, now)
            new = jax.tree.map(lambda a, b: jnp.asarray(a, b.dtype), new, inner)
            return -ravel_pytree(updates)[0], new

        rate = optax.exponential_decay(self.learning_rate, 100, self.decay)
        return descend(objective, theta, state, rate, direction)

    def refresh(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: AdamState
    ) -> AdamState:
        return state

    def careful(self) -> "Muon":
        return replace(self, learning_rate=self.learning_rate / 10)


def _muon() -> optax.GradientTransformation:
    # Updates as large as Adam's, so that matrices and vectors share a learning rate.
    return optax.contrib.muon(1.0, consistent_rms=0.2)
