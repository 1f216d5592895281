"""Optax's Adam and L-BFGS as optimizers of an objective.

Adam (Kingma and Ba 2015): theta <- theta - eta m/(sqrt(v) + eps), m and v running means
of the gradient and its square. A pilot of some hundred steps; one gradient a step.

L-BFGS (Liu and Nocedal 1989): theta <- theta - alpha H g with H from the last `memory`
steps, alpha by optax's zoom line search. Where P^2 numbers do not fit; some losses with
gradient a step, O(memory P) besides.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info


Picked = TypeVar("Picked")
Memory = tuple[
    optax.ScaleByLBFGSState, optax.EmptyState, optax.ScaleByZoomLinesearchState
]


class AdamState(eqx.Module):
    """The running means and the number of steps made."""

    inner: optax.OptState
    count: Int[Array, ""]


class Adam(AbstractOptimizer[AdamState]):
    """Adam with a learning rate that decays by the factor `decay` every 100 steps.

    A gradient that is not finite changes nothing.

    !!! example

        optimizer = Adam(learning_rate=1e-3)
    """

    learning_rate: float = 5e-3
    decay: float = 0.9

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> AdamState:
        inner = optax.scale_by_adam().init(theta)
        return AdamState(inner, jnp.asarray(0, jnp.int32))

    def step(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: AdamState
    ) -> tuple[Float[Array, " P"], AdamState, Info]:
        scale = optax.scale_by_adam().update
        rate = optax.exponential_decay(self.learning_rate, 100, self.decay)
        return descend(objective, theta, state, rate, lambda g, inner: scale(g, inner))

    def refresh(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: AdamState
    ) -> AdamState:
        return state

    def careful(self) -> "Adam":
        return replace(self, learning_rate=self.learning_rate / 10)


def descend(
    objective: AbstractObjective,
    theta: Float[Array, " P"],
    state: AdamState,
    rate: optax.Schedule,
    direction: Callable[[Array, optax.OptState], tuple[optax.Updates, optax.OptState]],
) -> tuple[Float[Array, " P"], AdamState, Info]:
    """theta - rate * direction(gradient); a gradient that is not finite does nothing.

    **Arguments:**

    - `rate`: of the number of steps made.
    - `direction`: the flat direction from the gradient and the inner state.
    """
    loss, gradient = objective.value_and_grad(theta)
    # An integer count would compute the rate in 32 bits.
    size = jnp.asarray(rate(state.count.astype(theta.dtype)), theta.dtype)
    step, inner = direction(gradient, state.inner)
    new = theta - size * jnp.asarray(step)
    finite = jnp.isfinite(loss) & jnp.isfinite(jnp.sum(gradient))
    new, after = _pick(finite, (new, AdamState(inner, state.count + 1)), (theta, state))
    info = Info(
        loss,
        jnp.linalg.norm(gradient),
        jnp.where(finite, size, 0),
        jnp.zeros_like(loss),
        jnp.asarray(1, jnp.int32),
        finite,
        jnp.asarray(False),
    )
    return new, after, info


class LBFGSState(eqx.Module):
    """Value and gradient at the parameters, and optax's state.

    `fresh`: the memory is empty.
    """

    value: Float[Array, ""]
    gradient: Float[Array, " P"]
    inner: Memory
    fresh: Bool[Array, ""]
    stalled: Bool[Array, ""]


class LBFGS(AbstractOptimizer[LBFGSState]):
    """L-BFGS with a zoom line search.

    A step that does not lower the loss is not taken and empties the memory; with an
    empty memory it is a stall. The search tries `first` times the direction first.

    !!! example

        optimizer = LBFGS(memory=50)
    """

    memory: int = eqx.field(static=True, default=30)
    first: float = 1.0

    @property
    def _optax(self) -> optax.GradientTransformationExtraArgs:
        return optax.lbfgs(self.first, self.memory)

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> LBFGSState:
        value, gradient = objective.value_and_grad(theta)
        inner = cast(Memory, self._optax.init(theta))
        # Weak types would compile the second step anew.
        inner = jax.tree.map(lambda x: jnp.asarray(x, x.dtype), inner)
        yes, no = jnp.asarray(True), jnp.asarray(False)
        return LBFGSState(value, gradient, inner, yes, no)

    def step(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: LBFGSState
    ) -> tuple[Float[Array, " P"], LBFGSState, Info]:
        lbfgs = self._optax
        updates, inner = lbfgs.update(
            state.gradient,
            state.inner,
            theta,
            value=state.value,
            grad=state.gradient,
            value_fn=objective.loss,
        )
        memory = cast(Memory, inner)
        search = memory[-1]
        value, gradient = jnp.asarray(search.value), jnp.asarray(search.grad)
        new = theta + jnp.asarray(updates)
        # The sum is finite only if every entry is.
        finite = jnp.isfinite(jnp.sum(new) + value + jnp.sum(gradient))
        accepted = finite & (value < state.value) & ~state.stalled
        stalled = state.stalled | (~accepted & state.fresh)
        empty = cast(Memory, lbfgs.init(theta))
        theta, after = _pick(
            accepted,
            (new, LBFGSState(value, gradient, memory, ~accepted, stalled)),
            (
                theta,
                LBFGSState(state.value, state.gradient, empty, ~accepted, stalled),
            ),
        )
        info = Info(
            after.value,
            jnp.linalg.norm(after.gradient),
            jnp.where(accepted, search.learning_rate, 0),
            jnp.zeros_like(after.value),
            jnp.asarray(search.info.num_linesearch_steps, jnp.int32),
            accepted,
            stalled,
        )
        return theta, after, info

    def refresh(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: LBFGSState
    ) -> LBFGSState:
        value, gradient = objective.value_and_grad(theta)
        memory, between, search = state.inner
        # The next difference of gradients must not contain the change of points.
        shifted = jnp.asarray(memory.updates) + (gradient - state.gradient)
        search = search._replace(value=value, grad=gradient)
        inner = (memory._replace(updates=shifted), between, search)
        return LBFGSState(value, gradient, inner, state.fresh, jnp.asarray(False))

    def careful(self) -> "LBFGS":
        return replace(self, first=self.first / 10)


def _pick(which: Bool[Array, ""], a: Picked, b: Picked) -> Picked:
    return jax.tree.map(lambda u, v: jnp.where(which, u, v), a, b)
