"""Levenberg-Marquardt with the damping chosen from the ratio of decreases.

    p(lambda) = -(J'J + lambda I)^-1 J'r
    ratio = (L(theta) - L(theta + p)) / (L(theta) - 1/2 |r + J p|^2)

(Levenberg 1944; Marquardt 1963; More 1978). A spectral factorization of J makes p cheap
for any lambda, so many are tried in a step with their true losses: a geometric series
around the last damping, then a finer one inside the gap where the ratio falls below the
target. The longest step that meets the target is taken, not the one with the lowest
loss: greed leads into narrow valleys. Each p is bent along the valley by geodesic
acceleration (Transtrum and Sethna 2012), with J+ = (J'J + lambda I)^-1 J':

    p <- p + a/2,   a = -J+ d2r(p, p),   d2r(p, p) = 2/h ((r(theta + h p) - r)/h - J p)

Use it for up to about 1e3 parameters, in float64. Cost of a step: one Jacobian, R P^2
for J'J, 9 P^3 for its eigenvectors, two residuals a trial; R P numbers of memory.
"""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info


DIFFERENCE = 0.1
LONGEST_BEND = 1.5
HOPELESS_DAMPING = 1e6


class Spectrum(eqx.Module):
    """J'J = V diag(values) V'."""

    values: Float[Array, " P"]
    vectors: Float[Array, "P P"]

    def solve(
        self, damping: Float[Array, " K"], gradients: Float[Array, "K P"]
    ) -> Float[Array, "K P"]:
        """(J'J + damping_k I)^-1 gradient_k for each k."""
        shifted = self.values + damping[:, None]
        return (gradients @ self.vectors / shifted) @ self.vectors.T

    def predicted(
        self, damping: Float[Array, " K"], gradient: Float[Array, " P"]
    ) -> Float[Array, " K"]:
        """L - 1/2 |r + J p|^2 for each damping, without cancellation."""
        shifted = self.values + damping[:, None]
        model = self.values + 2 * damping[:, None]
        return 0.5 * jnp.sum((gradient @ self.vectors / shifted) ** 2 * model, axis=1)


def eigen_spectrum(jacobian: Float[Array, "R P"]) -> Spectrum:
    """From J'J: fast; singular values below sqrt(eps) of the largest are noise."""
    values, vectors = jnp.linalg.eigh(jacobian.T @ jacobian)
    return Spectrum(jnp.maximum(values, 0), vectors)


def singular_spectrum(jacobian: Float[Array, "R P"]) -> Spectrum:
    """From J = Q T and T = U S V': accurate down to eps of the largest; 2x the time."""
    missing = max(0, jacobian.shape[1] - jacobian.shape[0])
    triangle = jnp.linalg.qr(jnp.pad(jacobian, ((0, missing), (0, 0))), mode="r")
    _, singular, right = jnp.linalg.svd(triangle)
    return Spectrum(singular**2, right.T)


class LevenbergMarquardtState(eqx.Module):
    """The damping relative to the largest eigenvalue of J'J."""

    damping: Float[Array, ""]
    stalled: Bool[Array, ""]


class LevenbergMarquardt(AbstractOptimizer[LevenbergMarquardtState]):
    """Levenberg-Marquardt; damping values are relative to J'J's largest eigenvalue.

    **Arguments:**

    - `spectrum`: factorizes J: `eigen_spectrum` or `singular_spectrum`.
    - `coarse`, `fine`: how many damping values are tried in the first and second round.
    - `reach`: the first round goes from 1/reach to reach times the last damping.
    - `target`: the smallest ratio of the longest step.
    - `first`: damping before the first step.

    !!! example

        optimizer = LevenbergMarquardt()
        state = optimizer.init(objective, theta)
        theta, state, info = optimizer.step(objective, theta, state)
    """

    spectrum: Callable[[Array], Spectrum] = eqx.field(
        static=True, default=eigen_spectrum
    )
    coarse: int = eqx.field(static=True, default=8)
    fine: int = eqx.field(static=True, default=6)
    reach: float = 100.0
    target: float = 0.3
    first: float = 1e-2

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> LevenbergMarquardtState:
        return LevenbergMarquardtState(
            jnp.asarray(self.first, theta.dtype), jnp.asarray(False)
        )

    def step(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: LevenbergMarquardtState,
    ) -> tuple[Float[Array, " P"], LevenbergMarquardtState, Info]:
        local = _linearize(objective, theta, self.spectrum)
        series = jnp.geomspace(1 / self.reach, self.reach, self.coarse)
        trials = local.trials(state.damping * jnp.asarray(series, theta.dtype))
        between = _between(trials.damping, trials.good(self.target), self.fine)
        trials = trials.merged(local.trials(between))
        best = trials.choice(self.target)
        accepted = trials.loss[best] < local.loss
        loss = jnp.where(accepted, trials.loss[best], local.loss)
        damping = jnp.where(accepted, trials.damping[best], state.damping * self.reach)
        rounding = 100 * jnp.finfo(theta.dtype).eps * local.loss
        hopeless = (trials.predicted[-1] <= rounding) | (damping > HOPELESS_DAMPING)
        stalled = ~accepted & hopeless
        info = Info(
            loss,
            jnp.linalg.norm(local.gradient),
            jnp.where(accepted, jnp.ones_like(loss), 0),
            trials.damping[best] * local.largest,
            jnp.asarray(2 * (self.coarse + self.fine) + 1, jnp.int32),
            accepted,
            stalled,
        )
        theta = theta + jnp.where(accepted, trials.step[best], 0)
        return theta, LevenbergMarquardtState(damping, stalled), info

    def refresh(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: LevenbergMarquardtState,
    ) -> LevenbergMarquardtState:
        # Value and Jacobian are computed anew in every step; the damping is kept, but
        # not one that a stall drove up.
        damping = jnp.where(state.stalled, self.first, state.damping)
        return LevenbergMarquardtState(damping, jnp.asarray(False))

    def careful(self) -> "LevenbergMarquardt":
        return replace(self, first=self.first * self.reach)


class Trials(eqx.Module):
    """Steps tried, in the order of increasing damping."""

    damping: Float[Array, " K"]
    step: Float[Array, "K P"]
    loss: Float[Array, " K"]
    predicted: Float[Array, " K"]
    ratio: Float[Array, " K"]

    def merged(self, others: "Trials") -> "Trials":
        """Both, in order."""
        order = jnp.argsort(jnp.concatenate([self.damping, others.damping]))
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b])[order], self, others)

    def good(self, target: float | Float[Array, ""]) -> Bool[Array, " K"]:
        """Whether the ratio of this step and of every shorter one meets the target."""
        lowest = jax.lax.cummin(self.ratio, reverse=True)
        return lowest >= target

    def choice(self, target: float | Float[Array, ""]) -> Array:
        """The longest good step; where none is good, the one with the lowest loss."""
        good = self.good(target)
        return jnp.where(jnp.any(good), jnp.argmax(good), jnp.argmin(self.loss))


class _Local(eqx.Module):
    """The objective around the parameters."""

    objective: AbstractObjective
    theta: Float[Array, " P"]
    residuals: Float[Array, " R"]
    loss: Float[Array, ""]
    gradient: Float[Array, " P"]
    jacobian: Float[Array, "R P"]
    spectrum: Spectrum
    largest: Float[Array, ""]

    def trials(self, relative: Float[Array, " K"]) -> Trials:
        """The steps for relative damping values, and what they bring."""
        floor = 1e-4 * jnp.finfo(self.theta.dtype).eps
        relative = jnp.maximum(relative, floor)
        damping = relative * self.largest
        every = jnp.broadcast_to(self.gradient, (damping.size, self.theta.size))
        step = self._bent(-self.spectrum.solve(damping, every), damping)
        loss = jax.lax.map(lambda p: self.objective.loss(self.theta + p), step)
        loss = jnp.where(jnp.isfinite(loss), loss, jnp.inf)
        predicted = self.spectrum.predicted(damping, self.gradient)
        ratio = (self.loss - loss) / jnp.where(predicted > 0, predicted, 1)
        ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
        return Trials(relative, step, loss, predicted, ratio)

    def _bent(
        self, step: Float[Array, "K P"], damping: Float[Array, " K"]
    ) -> Float[Array, "K P"]:
        """The steps with geodesic acceleration, where that is short enough."""
        h = DIFFERENCE
        ahead = jax.lax.map(
            lambda p: self.objective.residuals(self.theta + h * p), step
        )
        slope = step @ self.jacobian.T
        second = 2 / h * ((ahead - self.residuals) / h - slope)
        bend = -self.spectrum.solve(damping, second @ self.jacobian)
        limit = LONGEST_BEND * jnp.linalg.norm(step, axis=1)
        short = jnp.linalg.norm(bend, axis=1) <= limit
        return step + jnp.where(short[:, None], bend / 2, 0)


def _linearize(
    objective: AbstractObjective,
    theta: Float[Array, " P"],
    spectrum: Callable[[Array], Spectrum],
) -> _Local:
    jacobian, residuals = objective.jacobian(theta), objective.residuals(theta)
    factors = spectrum(jacobian)
    largest = jnp.max(factors.values)
    return _Local(
        objective,
        theta,
        residuals,
        0.5 * residuals @ residuals,
        residuals @ jacobian,
        jacobian,
        factors,
        # J = 0 leaves nothing to do, but must not divide 0 by 0.
        jnp.where(largest > 0, largest, 1),
    )


def _between(
    damping: Float[Array, " K"],
    good: Bool[Array, " K"],
    count: int,
) -> Float[Array, " count"]:
    """A geometric series between the last good damping and the next smaller one."""
    first = jnp.where(jnp.any(good), jnp.argmax(good), damping.size - 1)
    gap = damping[1] / damping[0]
    smaller = jnp.where(first > 0, damping[first - 1], damping[0] / gap)
    fractions = jnp.linspace(0, 1, count + 2)[1:-1].astype(damping.dtype)
    return smaller * (damping[first] / smaller) ** fractions
