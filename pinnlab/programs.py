"""The programs of a stage of training: compiled once, and run on the device."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.devices import everywhere, replicated
from pinnlab.optimizer import AbstractOptimizer
from pinnlab.optimizer.known import Known
from pinnlab.points import look
from pinnlab.residual import LeastSquares
from pinnlab.weighting import Weighting


Begin = Callable[[LeastSquares, Array, float], tuple[LeastSquares, Array]]


@dataclass(frozen=True)
class Stage:
    """One optimizer run.

    - `iterations`: at most this many (0: no limit).
    - `look`: iterations between measurements of the held-out residual.
    - `redraw`: whether the points are drawn anew at each look.
    - `pool`: points in the pool for each point that is drawn.
    - `weighting`: gives the objective new weights at each look.
    - `share`: of the budget, after which the next stage begins if the solution is
        resolved.
    - `begin`: makes the objective and the first parameters of the stage from the best
        of those before and their held-out residual; None goes on with them.
    """

    name: str
    optimizer: AbstractOptimizer
    iterations: int
    look: int
    redraw: bool
    pool: int
    weighting: Weighting | None = None
    share: float = 1.0
    begin: Begin | None = None

    @property
    def changes(self) -> bool:
        """Whether a look leads to another objective."""
        return self.redraw or self.weighting is not None

    def careful(self, times: int) -> "Stage":
        """The stage with an optimizer that was made more careful so many times."""
        optimizer = self.optimizer
        for _ in range(times):
            optimizer = optimizer.careful()
        return replace(self, optimizer=optimizer)


class Programs(eqx.Module):
    """The compiled programs of a stage."""

    value_and_grad: Callable
    init: Callable
    resume: Callable
    advance: Callable
    look: Callable

    def start(self, objective: LeastSquares, theta: Array):
        """The optimizer's first state."""
        return self.init(self._known(objective, theta), theta)

    def refresh(self, objective: LeastSquares, theta: Array, state):
        """The optimizer's state after the points have changed."""
        return self.resume(self._known(objective, theta), theta, state)

    def _known(self, objective: LeastSquares, theta: Array) -> Known:
        value, gradient = self.value_and_grad(objective, theta)
        return Known(value, gradient, objective.unravel)


Inspect = Callable[[Stage, Programs], Programs]
"""Looks at a stage's compiled programs, and may wrap them."""


def advanced(
    objective: LeastSquares, carry: tuple, count: Array, optimizer: AbstractOptimizer
) -> tuple:
    """At most `count` steps; fewer if the optimizer stalls or the loss is lost.

    There is one copy of a step: a second one, compiled in another surrounding, may
    round otherwise, and then results would depend on how steps are grouped into calls.
    """

    def more(loop: tuple) -> Array:
        done, _, info = loop
        return (done < count) & ~info.stalled & jnp.isfinite(info.loss)

    def step(loop: tuple) -> tuple:
        done, (theta, state), _ = loop
        theta, state, info = optimizer.step(objective, theta, state)
        return done + 1, (theta, state), info

    start = (jnp.asarray(0), carry, None)
    _, _, shapes = jax.eval_shape(step, start)
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    done, carry, info = jax.lax.while_loop(more, step, (*start[:2], nothing))
    return carry, info, done


def compile_stage(
    stage: Stage,
    objective: LeastSquares,
    theta: Float[Array, " P"],
    before: Programs | None = None,
) -> Programs:
    """Compile a stage's programs ahead of time, for the devices of the objective.

    **Arguments:**

    - `before`: those of the same stage with a less careful optimizer: what does not
        depend on it is not compiled again.
    """
    optimizer, mesh = stage.optimizer, objective.mesh

    def value_and_grad(objective: LeastSquares, theta: Array) -> tuple:
        return everywhere(objective.value_and_grad(theta), mesh)

    def init(known: Known, theta: Array):
        return everywhere(optimizer.init(known, theta), mesh)

    def resume(known: Known, theta: Array, state):
        return everywhere(optimizer.refresh(known, theta, state), mesh)

    def advance(objective: LeastSquares, carry: tuple, count: Array) -> tuple:
        return everywhere(advanced(objective, carry, count, optimizer), mesh)

    def fresh(objective: LeastSquares, theta: Array, key: Array) -> tuple:
        fresh, heldout = look(objective, theta, key, stage.pool)
        if stage.weighting is not None:
            fresh = stage.weighting(fresh if stage.redraw else objective, theta)
        return fresh, everywhere(heldout, mesh)

    one, key = replicated((jnp.asarray(1), jax.random.key(0)), mesh)
    if before is None:
        both = compiled(value_and_grad, objective, theta)
        drawn = compiled(fresh, objective, theta, key)
    else:
        both, drawn = before.value_and_grad, before.look
    value, gradient = both(objective, theta)
    known = Known(value, gradient, objective.unravel)
    began = compiled(init, known, theta)
    state = began(known, theta)
    return Programs(
        both,
        began,
        compiled(resume, known, theta, state),
        compiled(advance, objective, (theta, state), one, donate=True),
        drawn,
    )


def compiled(function: Callable, *arguments, donate: bool = False) -> Callable:
    donated = "all-except-first" if donate else "none"
    jitted: Any = eqx.filter_jit(function, donate=donated)
    return jitted.lower(*arguments).compile()
