"""SPRING: the natural gradient over rows, with the memory of its last direction.

    phi <- mu phi + J'(JJ' + lambda I)^-1 (r - mu J phi),   theta <- theta - eta phi

(Goldshlager, Abrahamsen and Lin 2024). What the rows of now do not determine is kept
from the rows of before, as in Kaczmarz' method: it helps where points are few or change
often. eta comes from a line search, in place of the published factor
1/sqrt(1 - mu^(2k)), with which the loss may grow at a learning rate of 1. Cost of a
step: that of ENGD-W and one more product with J.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info
from pinnlab.optimizer.woodbury import MOST_ROWS, RANK, woodbury_step


class SPRINGState(eqx.Module):
    """The last direction phi, and the damping relative to the mean of JJ's diagonal."""

    direction: Float[Array, " P"]
    damping: Float[Array, ""]
    stalled: Bool[Array, ""]


class SPRING(AbstractOptimizer[SPRINGState]):
    """ENGD-W with momentum `mu`; the direction is forgotten where no step is good.

    The other arguments are those of `ENGDW`.

    !!! example

        optimizer = SPRING(mu=0.9)
    """

    mu: float = 0.9
    first: float = 1e-2
    halvings: int = eqx.field(static=True, default=8)
    memory: int = eqx.field(static=True, default=1_000_000_000)
    most: int = eqx.field(static=True, default=MOST_ROWS)
    rank: int = eqx.field(static=True, default=RANK)

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> SPRINGState:
        damping = jnp.asarray(self.first, theta.dtype)
        return SPRINGState(jnp.zeros_like(theta), damping, jnp.asarray(False))

    def step(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: SPRINGState,
    ) -> tuple[Float[Array, " P"], SPRINGState, Info]:
        found = woodbury_step(
            objective,
            theta,
            state.damping,
            self.mu * state.direction,
            self.halvings,
            self.memory,
            self.most,
            self.rank,
        )
        info = found.info
        # With a direction to forget, a failure proves nothing yet.
        stalled = info.stalled & ~jnp.any(state.direction != 0)
        info = eqx.tree_at(lambda i: i.stalled, info, stalled)
        kept = jnp.where(info.accepted, found.direction, 0)
        return found.theta, SPRINGState(kept, found.damping, stalled), info

    def refresh(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: SPRINGState,
    ) -> SPRINGState:
        damping = jnp.where(state.stalled, self.first, state.damping)
        return SPRINGState(state.direction, damping, jnp.asarray(False))

    def careful(self) -> "SPRING":
        return replace(self, first=self.first * 10)
