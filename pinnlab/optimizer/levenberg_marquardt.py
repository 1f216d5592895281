"""Levenberg-Marquardt with the damping chosen from the ratio of decreases.

    p(lambda) = -(J'J + lambda I)^-1 J'r
    ratio = (L(theta) - L(theta + p)) / (L(theta) - 1/2 |r + J p|^2)

(Levenberg 1944; Marquardt 1963; More 1978.) Of a geometric series of damping values
around the last one all true losses are evaluated, for a spectral factorization of J
makes each p cheap; the choice among them is `_choice`. Use it for up to about 1e3
parameters, in float64: the residual falls to rounding where the network can.

Cost of a step: one Jacobian, R P^2 for J'J, 9 P^3 for its eigenvectors, and `probes`
losses; R P numbers of memory.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info


class Spectrum(eqx.Module):
    """J'J = V diag(values) V', and V'J'r."""

    values: Float[Array, " P"]
    vectors: Float[Array, "P P"]
    gradient: Float[Array, " P"]

    def steps(self, damping: Float[Array, " K"]) -> Float[Array, "K P"]:
        """p for each damping value."""
        return -(self.gradient / (self.values + damping[:, None])) @ self.vectors.T

    def predicted(self, damping: Float[Array, " K"]) -> Float[Array, " K"]:
        """L - 1/2 |r + J p|^2 for each damping value, without cancellation."""
        shifted = self.values + damping[:, None]
        model = self.values + 2 * damping[:, None]
        return 0.5 * jnp.sum((self.gradient / shifted) ** 2 * model, axis=1)


def eigen_spectrum(J: Float[Array, "R P"], r: Float[Array, " R"]) -> Spectrum:
    """From J'J: fast; singular values below sqrt(eps) of the largest are noise."""
    values, vectors = jnp.linalg.eigh(J.T @ J)
    return Spectrum(jnp.maximum(values, 0), vectors, (r @ J) @ vectors)


def singular_spectrum(J: Float[Array, "R P"], r: Float[Array, " R"]) -> Spectrum:
    """From J = Q T, T = U S V': accurate down to eps of the largest singular value."""
    rows = jnp.concatenate([J, r[:, None]], axis=1)
    # Enough rows for a square T; the last column becomes Q'r.
    missing = max(0, rows.shape[1] - rows.shape[0])
    triangle = jnp.linalg.qr(jnp.pad(rows, ((0, missing), (0, 0))), mode="r")
    u, s, vt = jnp.linalg.svd(triangle[:-1, :-1])
    return Spectrum(s**2, vt.T, s * (triangle[:-1, -1] @ u))


class LevenbergMarquardtState(eqx.Module):
    """The loss at the parameters and the damping; negative before the first step."""

    value: Float[Array, ""]
    damping: Float[Array, ""]
    stalled: Bool[Array, ""]


class LevenbergMarquardt(AbstractOptimizer[LevenbergMarquardtState]):
    """Levenberg-Marquardt, the damping relative to the largest eigenvalue of J'J.

    - `probes`: damping values tried in a step, from `least` to `most` times the last.
    - `floor`: the smallest damping.

    !!! example

        optimizer = LevenbergMarquardt()
        state = optimizer.init(objective, theta)
        theta, state, info = optimizer.step(objective, theta, state)
    """

    spectrum: Callable[[Array, Array], Spectrum] = eqx.field(
        static=True, default=eigen_spectrum
    )
    probes: int = eqx.field(static=True, default=12)
    least: float = 1e-3
    most: float = 1e2
    first: float = 1e-2
    target: float = 0.15
    floor: float = 1e-20
    fine: int = eqx.field(static=True, default=0)
    geo: bool = eqx.field(static=True, default=False)
    refine: int = eqx.field(static=True, default=0)
    rule: str = eqx.field(static=True, default="aggressive")

    def init(self, objective, theta):
        return LevenbergMarquardtState(
            objective.loss(theta), -jnp.ones((), theta.dtype), jnp.asarray(False)
        )

    def step(self, objective, theta, state):
        J, r = objective.jacobian(theta), objective.residuals(theta)
        sp = self.spectrum(J, r)
        loss = 0.5 * r @ r
        top = jnp.max(sp.values)
        center = jnp.where(state.damping < 0, self.first, state.damping)
        factors = jnp.geomspace(self.least, self.most, self.probes) if self.probes > 1 else jnp.ones(1)
        lam = jnp.maximum(center * factors.astype(theta.dtype), self.floor)
        ps = sp.steps(lam * top)
        for _ in range(self.refine):
            res = (r + ps @ J.T) @ J + (lam * top)[:, None] * ps
            ps = ps - (res @ sp.vectors / (sp.values + (lam * top)[:, None])) @ sp.vectors.T
        geo = self.geo
        def trial(p_lam):
            p, l = p_lam
            if geo:
                h = 0.1
                curv = 2 / h * ((objective.residuals(theta + h * p) - r) / h - J @ p)
                a = -((curv @ J) @ sp.vectors / (sp.values + l)) @ sp.vectors.T
                ok = jnp.linalg.norm(a) < 0.75*2 * jnp.linalg.norm(p)
                p = p + jnp.where(ok, 0.5 * a, 0)
            return p, objective.loss(theta + p)
        def evaluate(lam, ps):
            ps, values = jax.lax.map(trial, (ps, lam*top))
            values = jnp.where(jnp.isfinite(values), values, jnp.inf)
            return ps, values, (loss - values) / sp.predicted(lam * top)
        ps, values, ratio = evaluate(lam, ps)
        if self.fine:
            mono = jax.lax.cummin(jnp.clip(ratio, -1, 1)[::-1])[::-1]
            k = jnp.argmax(mono >= self.target)
            k = jnp.where(jnp.any(mono >= self.target), k, lam.size - 1)
            up = lam[k]; down = jnp.where(k > 0, lam[k - 1], lam[0] / 10)
            e = jnp.linspace(0, 1, self.fine + 2)[1:-1]
            lam2 = jnp.maximum(up**e * down**(1-e), self.floor)
            ps2, v2, r2 = evaluate(lam2, sp.steps(lam2 * top))
            o = jnp.argsort(jnp.concatenate([lam, lam2]))
            lam, ps, values, ratio = (jnp.concatenate([a, b])[o] for a, b in ((lam, lam2), (ps, ps2), (values, v2), (ratio, r2)))
        if self.rule == "classic":
            i = 0
            ok = ratio[0] > 0
            new = jnp.where(ratio[0] > 0.75, lam[0] / 3, jnp.where(ratio[0] < 0.25, lam[0] * 3, lam[0]))
            accepted = ok
        else:
            best = jnp.argmin(values)
            if self.rule == "aggressive":
                mono = jax.lax.cummin(jnp.clip(ratio, -1, 1)[::-1])[::-1]
                good = mono >= self.target
                i = jnp.where(jnp.any(good), jnp.argmax(good), best)
            else:
                i = best
            accepted = values[i] < loss
            new = jnp.where(accepted, lam[i], center * self.most)
        p = jnp.where(accepted, ps[i], 0)
        out = jnp.where(accepted, values[i], loss)
        stalled = ~accepted & (new > 1e8)
        info = Info(out, jnp.linalg.norm(sp.gradient), jnp.where(accepted, 1.0, 0), lam[i], jnp.asarray(self.probes + 1), accepted, stalled)
        return theta + p, LevenbergMarquardtState(out, new, stalled), info

    def refresh(self, objective, theta, state):
        return LevenbergMarquardtState(objective.loss(theta), state.damping, jnp.asarray(False))
