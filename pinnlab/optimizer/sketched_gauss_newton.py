"""Gauss-Newton in a random subspace, with the step's length found by trying many.

In each step the Jacobian is compressed from both sides while its rows go by,

    J~ = C J Q   (m x s),   Q (P x s) orthonormal,   C (m x R) a count sketch,

where Q is a random part of a cosine transform of randomly signed and permuted
parameters (Ailon and Chazelle 2009) and C adds each row to four of m rows with random
signs (Clarkson and Woodruff 2013). With the exact gradient g = Q'J'r and any lambda,

    p(lambda) = -Q (J~'J~ + lambda I)^-1 g

costs nothing once J~'J~ is factorized (iterative Hessian sketch; Pilanci and
Wainwright 2016), so lambda follows from the radius |p|, and a geometric series of radii
around the last one is tried with the true loss. The longest step for which it and all
shorter ones bring at least `target` of the decrease that the model predicts is taken.

Use it for 1e3 to 2e4 parameters and up to 1e6 rows, in float64. Cost of a step: the
gradients of all rows, R P log P for the transforms, m s^2 + 9 s^3 for the factors, one
loss a radius; `most` P + (m + s) s numbers of memory.
"""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pinnlab.optimizer.levenberg_marquardt import Spectrum, Trials, eigen_spectrum
from pinnlab.optimizer.objective import (
    AbstractObjective,
    AbstractOptimizer,
    Info,
    Numbering,
)


HASHES = 4
BISECTIONS = 60


class ColumnMap(eqx.Module):
    """Q: `chosen` rows of the cosine transform, after signs and a permutation."""

    signs: Float[Array, " P"]
    order: Int[Array, " P"]
    chosen: Int[Array, " s"]

    def restrict(self, vectors: Float[Array, "k P"]) -> Float[Array, "k s"]:
        """v Q for every row v."""
        mixed = (vectors * self.signs)[:, self.order]
        return jax.scipy.fft.dct(mixed, norm="ortho")[:, self.chosen]

    def lift(self, vectors: Float[Array, "k s"]) -> Float[Array, "k P"]:
        """Q v for every row v."""
        shape = (vectors.shape[0], self.signs.size)
        wide = jnp.zeros(shape, vectors.dtype).at[:, self.chosen].set(vectors)
        mixed = jax.scipy.fft.idct(wide, norm="ortho")
        return jnp.zeros_like(mixed).at[:, self.order].set(mixed) * self.signs


def column_map(key: Array, size: int, kept: int, dtype: jnp.dtype) -> ColumnMap:
    """A random one that keeps so many of `size` columns."""
    first, second, third = jax.random.split(key, 3)
    return ColumnMap(
        jax.random.rademacher(first, (size,), dtype),
        jax.random.permutation(second, size),
        jax.random.permutation(third, size)[:kept],
    )


class SketchedGaussNewtonState(eqx.Module):
    """The trust radius, and the number of steps, from which the sketches follow."""

    radius: Float[Array, ""]
    count: Int[Array, ""]
    stalled: Bool[Array, ""]


class SketchedGaussNewton(AbstractOptimizer[SketchedGaussNewtonState]):
    """Sketched Gauss-Newton with a probed trust radius.

    **Arguments:**

    - `share`, `least`: the subspace has `share` times P dimensions, at least `least`.
    - `oversampling`: m / s.
    - `probes`, `reach`: so many radii from 1/reach to reach times the last one.
    - `target`: the smallest ratio of actual to predicted decrease.
    - `first`: the first radius.
    - `most`: rows whose gradients are in memory at once.
    - `spectrum`: factorizes J~, as for `LevenbergMarquardt`.
    - `seed`: of all sketches.

    !!! example

        optimizer = SketchedGaussNewton(share=0.3)
    """

    share: float = eqx.field(static=True, default=0.5)
    least: int = eqx.field(static=True, default=200)
    oversampling: float = eqx.field(static=True, default=2.0)
    probes: int = eqx.field(static=True, default=12)
    reach: float = 3.0
    target: float = 0.2
    first: float = 0.1
    most: int = eqx.field(static=True, default=512)
    spectrum: Callable[[Array], Spectrum] = eqx.field(
        static=True, default=eigen_spectrum
    )
    seed: int = eqx.field(static=True, default=0)

    def init(
        self, objective: AbstractObjective, theta: Float[Array, " P"]
    ) -> SketchedGaussNewtonState:
        radius = jnp.asarray(self.first, theta.dtype)
        return SketchedGaussNewtonState(
            radius, jnp.asarray(0, jnp.int32), jnp.asarray(False)
        )

    def step(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: SketchedGaussNewtonState,
    ) -> tuple[Float[Array, " P"], SketchedGaussNewtonState, Info]:
        local = self._sketch(objective, theta, state.count)
        series = jnp.geomspace(self.reach, 1 / self.reach, self.probes)
        radii = state.radius * jnp.asarray(series, theta.dtype)
        trials = local.trials(objective, theta, radii)
        best = trials.choice(self.target)
        accepted = trials.loss[best] < local.loss
        loss = jnp.where(accepted, trials.loss[best], local.loss)
        # Nothing between 1/reach and reach times the radius was good.
        radius = jnp.where(accepted, radii[best], state.radius / self.reach**2)
        eps = jnp.finfo(theta.dtype).eps
        hopeless = trials.predicted[-1] <= 100 * eps * local.loss
        stalled = ~accepted & (hopeless | (radius < jnp.sqrt(eps)))
        info = Info(
            loss,
            jnp.linalg.norm(local.gradient),
            jnp.where(accepted, radius, 0),
            trials.damping[best],
            jnp.asarray(self.probes + 1, jnp.int32),
            accepted,
            stalled,
        )
        theta = theta + jnp.where(accepted, trials.step[best], 0)
        return theta, SketchedGaussNewtonState(radius, state.count + 1, stalled), info

    def refresh(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        state: SketchedGaussNewtonState,
    ) -> SketchedGaussNewtonState:
        # The radius is kept, but not one that a stall drove down.
        radius = jnp.where(state.stalled, self.first, state.radius)
        return SketchedGaussNewtonState(radius, state.count, jnp.asarray(False))

    def careful(self) -> "SketchedGaussNewton":
        return replace(self, first=self.first / 10)

    def _sketch(
        self, objective: AbstractObjective, theta: Float[Array, " P"], count: Array
    ) -> "_Local":
        """Pass over all rows once."""
        size, rows = theta.size, objective.numbering(theta)
        kept = min(size, max(self.least, round(self.share * size)))
        height = min(rows.count, round(self.oversampling * kept))
        key = jax.random.fold_in(jax.random.key(self.seed), count)
        column_key, *row_keys = jax.random.split(key, 3)
        columns = column_map(column_key, size, kept, theta.dtype)
        place, sign = _row_hashes(row_keys, rows, height, theta.dtype)

        def visit(carry: tuple, index: Array, values: Array, gradients: Array) -> tuple:
            matrix, gradient, total = carry
            small = columns.restrict(gradients)
            index = jnp.minimum(index, rows.size - 1)
            for k in range(place.shape[1]):
                signed = sign[index, k, None] * small
                matrix = matrix.at[place[index, k]].add(signed)
            return matrix, gradient + values @ gradients, total + values @ values

        zeros = jnp.zeros((height, kept), theta.dtype)
        start = zeros, jnp.zeros_like(theta), jnp.zeros((), theta.dtype)
        most = min(self.most, rows.size)
        matrix, gradient, total = objective.fold_rows(theta, visit, start, most)
        restricted = columns.restrict(gradient[None])[0]
        spectrum = self.spectrum(matrix)
        return _Local(spectrum, columns, restricted, gradient, 0.5 * total)


class _Local(eqx.Module):
    """The compressed model around the parameters."""

    spectrum: Spectrum
    columns: ColumnMap
    restricted: Float[Array, " s"]
    gradient: Float[Array, " P"]
    loss: Float[Array, ""]

    def trials(
        self,
        objective: AbstractObjective,
        theta: Float[Array, " P"],
        radii: Float[Array, " K"],
    ) -> Trials:
        """The steps of these lengths, longest first, and what they bring."""
        damping = damping_of_radius(self.spectrum, self.restricted, radii)
        every = jnp.broadcast_to(self.restricted, (radii.size, self.restricted.size))
        step = self.columns.lift(-self.spectrum.solve(damping, every))
        loss = jax.lax.map(lambda p: objective.loss(theta + p), step)
        loss = jnp.where(jnp.isfinite(loss), loss, jnp.inf)
        predicted = self.spectrum.predicted(damping, self.restricted)
        ratio = (self.loss - loss) / jnp.where(predicted > 0, predicted, 1)
        ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
        return Trials(damping, step, loss, predicted, ratio)


def damping_of_radius(
    spectrum: Spectrum, gradient: Float[Array, " s"], radii: Float[Array, " K"]
) -> Float[Array, " K"]:
    """The lambda for which (J'J + lambda I)^-1 g has each length, by bisection.

    The smallest lambda that rounding allows where the Gauss-Newton step is shorter.
    """
    size = jnp.abs(gradient @ spectrum.vectors)
    largest = jnp.max(spectrum.values)
    largest = jnp.where(largest > 0, largest, 1)
    low = jnp.full_like(radii, 0.1 * jnp.finfo(radii.dtype).eps) * largest
    high = jnp.maximum(low, jnp.linalg.norm(gradient) / radii)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = jnp.sqrt(low) * jnp.sqrt(high)
        length = jnp.linalg.norm(size / (spectrum.values + middle[:, None]), axis=1)
        long = length > radii
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    return jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))[1]


def _row_hashes(
    keys: list[Array], rows: Numbering, height: int, dtype: jnp.dtype
) -> tuple[Int[Array, "R h"], Float[Array, "R h"]]:
    """To which rows of the sketch each row goes, and with which factor.

    A sketch as high as the matrix is the matrix itself.
    """
    if height == rows.count:
        place = rows.ordered(jnp.minimum(jnp.arange(rows.size), height - 1))
        return place[:, None], jnp.ones((place.size, 1), dtype)
    shape = rows.size, HASHES
    place = jax.random.randint(keys[0], shape, 0, height)
    sign = jax.random.rademacher(keys[1], shape, dtype)
    return rows.ordered(place), rows.ordered(sign) / HASHES**0.5
