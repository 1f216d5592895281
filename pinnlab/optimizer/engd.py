"""Energy natural gradient by Woodbury's identity (ENGD-W).

    theta <- theta - eta J'(JJ' + lambda I)^-1 r

(Mueller and Zeinhofer 2023; Guzman-Cordero, Dangel, Goldshlager and Zeinhofer 2025),
with eta by a line search on the true loss and lambda from the ratio of actual to
predicted decrease. Use it where the rows are fewer than the parameters: up to some
thousand rows and 1e6 parameters, in float64. Cost of a step: one Jacobian, R^2 P for
JJ', R^3/3 for its factor, one loss a halving, two gradients; R^2 numbers of memory
beside at most `memory` bytes for the Jacobian.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info
from pinnlab.optimizer.woodbury import MOST_ROWS, RANK, woodbury_step


class ENGDWState(eqx.Module):
    """The damping relative to the mean of JJ's diagonal."""

    damping: Float[Array, ""]
    stalled: Bool[Array, ""]


class ENGDW(AbstractOptimizer[ENGDWState]):
    """Natural gradient over rows.

    **Arguments:**

    - `first`: damping before the first step, relative to the mean of JJ's diagonal.
    - `halvings`: the shortest step tried is 2^-halvings of the direction.
    - `memory`: bytes that the Jacobian may take before it is made in pieces.
    - `most`: rows above which JJ' is approximated by `rank` random directions
        (Nystrom), for 2 `rank` products with J.

    !!! example

        optimizer = ENGDW()
    """

    first: float = 1e-2
    halvings: int = eqx.field(static=True, default=8)
    memory: int = eqx.field(static=True, default=1_000_000_000)
    most: int = eqx.field(static=True, default=MOST_ROWS)
    rank: int = eqx.field(static=True, default=RANK)

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> ENGDWState:
        return ENGDWState(jnp.asarray(self.first, theta.dtype), jnp.asarray(False))

    def step(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: ENGDWState
    ) -> tuple[Float[Array, " P"], ENGDWState, Info]:
        found = woodbury_step(
            objective,
            theta,
            state.damping,
            jnp.zeros_like(theta),
            self.halvings,
            self.memory,
            self.most,
            self.rank,
        )
        new = ENGDWState(found.damping, found.info.stalled)
        return found.theta, new, found.info

    def refresh(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: ENGDWState
    ) -> ENGDWState:
        # The damping is kept, but not one that a stall drove up.
        damping = jnp.where(state.stalled, self.first, state.damping)
        return ENGDWState(damping, jnp.asarray(False))

    def careful(self) -> "ENGDW":
        return replace(self, first=self.first * 10)
