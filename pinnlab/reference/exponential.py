"""Fourth-order exponential time differencing, as a solver for diffrax.

For y' = A y + N(t, y) with a constant A that is stiff (Cox and Matthews, 2002). The
coefficients are entire functions of A with removable singularities; they are found
by scaling and doubling, which has no cancellation (Berland, Skaflestad and Wright,
2007) and serves matrices whose eigenvalues are far apart, where one contour around all
of them (Kassam and Trefethen, 2005) cannot.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


TAYLOR = 18
"""Terms of the series where the norm is at most 1."""


class Coefficients(NamedTuple):
    """exp(A), exp(A/2) and the weights of the nonlinear terms."""

    full: Array | np.ndarray
    half: Array | np.ndarray
    middle: Array | np.ndarray
    first: Array | np.ndarray
    inner: Array | np.ndarray
    last: Array | np.ndarray


def coefficients(linear: np.ndarray) -> Coefficients:
    """The coefficients of a step of length 1 for matrices [..., c, c]."""
    of_half = phi_functions(linear / 2)
    half, middle = of_half[:2]
    full, phi1, phi2, phi3 = _double(*of_half)
    return Coefficients(
        full,
        half,
        middle / 2,
        phi1 - 3 * phi2 + 4 * phi3,
        2 * (phi2 - 2 * phi3),
        4 * phi3 - phi2,
    )


def phi_functions(
    z: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """exp(z) and phi_k(z) = sum_j z^j / (j + k)! for k = 1, 2, 3; z is [..., c, c].

    The series of z/2^s, then s times exp(2z) = exp(z)^2,
    phi_1(2z) = (exp(z) phi_1 + phi_1)/2, phi_2(2z) = (phi_1^2 + 2 phi_2)/4,
    phi_3(2z) = (phi_1 phi_2 + phi_2 + 2 phi_3)/8. Every matrix has its own s.
    """
    norm = np.abs(z).sum(axis=-1).max(axis=-1)
    doublings = np.ceil(np.log2(np.maximum(norm, 1))).astype(int)
    small = z / 2.0 ** doublings[..., None, None]
    one = np.broadcast_to(np.eye(z.shape[-1]), z.shape)
    phi3 = _series(small, one)
    phi2 = one / 2 + small @ phi3
    phi1 = one + small @ phi2
    found = (one + small @ phi1, phi1, phi2, phi3)
    most = int(doublings.max(initial=0))
    for level in range(most):
        # The matrices with fewer doublings join later.
        active = (doublings >= most - level)[..., None, None]
        doubled = _double(*found)
        pairs = zip(doubled, found, strict=True)
        found = tuple(np.where(active, new, old) for new, old in pairs)
    return found  # pyright: ignore[reportReturnType]


def _series(z: np.ndarray, one: np.ndarray) -> np.ndarray:
    """phi_3 by Horner's rule: 1/3! (1 + z/4 (1 + z/5 (...)))."""
    total = one
    for j in range(TAYLOR, 3, -1):
        total = one + z @ total / j
    return total / 6


def _double(
    exp: np.ndarray, phi1: np.ndarray, phi2: np.ndarray, phi3: np.ndarray
) -> tuple[np.ndarray, ...]:
    return (
        exp @ exp,
        (exp @ phi1 + phi1) / 2,
        (phi1 @ phi1 + 2 * phi2) / 4,
        (phi1 @ phi2 + phi2 + 2 * phi3) / 8,
    )


Multiply = Callable[[Array | np.ndarray, Array], Array]


def _staged(
    terms: dfx.AbstractTerm,
    times: Array,
    y0: Array,
    args: object,
    stages: tuple[Callable[[Array], Array], ...],
) -> Array:
    """The last stage, each made of the slopes [4, ...] of those before."""

    # A loop, so that the slope is compiled once and not four times.
    def stage(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        y, slopes = carry
        slopes = slopes.at[i].set(terms.vf(times[i], y, args))
        return jax.lax.switch(i, stages, slopes), slopes

    empty = jnp.zeros((4, *y0.shape), y0.dtype)
    return jax.lax.fori_loop(0, 4, stage, (y0, empty))[0]


class ETDRK4(dfx.AbstractSolver):
    """y' = A y + N(t, y) in steps of length 1; the term's vector field is N alone.

    - `weights`: the coefficients of A.
    - `multiply`: applies one of them to a state.
    """

    weights: Coefficients
    multiply: Multiply = eqx.field(static=True)

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar = dfx.LocalLinearInterpolation

    def order(self, terms):
        return 4

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del solver_state, made_jump
        w, apply = self.weights, self.multiply
        middle = t0 + (t1 - t0) / 2
        y_half = apply(w.half, y0)
        stages = (
            lambda n: y_half + apply(w.middle, n[0]),
            lambda n: y_half + apply(w.middle, n[1]),
            lambda n: (
                apply(w.half, y_half + apply(w.middle, n[0]))
                + apply(w.middle, 2 * n[2] - n[0])
            ),
            lambda n: (
                apply(w.full, y0)
                + apply(w.first, n[0])
                + apply(w.inner, n[1] + n[2])
                + apply(w.last, n[3])
            ),
        )
        times = jnp.stack([t0, middle, middle, t1])
        y1 = _staged(terms, times, y0, args, stages)
        return y1, None, dict(y0=y0, y1=y1), None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


class Lawson(dfx.AbstractSolver):
    """The same by the classical Runge-Kutta method for exp(-A t) y (Lawson, 1967).

    Free waves are at rest in these variables, however fast they turn: it is for data
    with kinks in dispersive equations, where `ETDRK4` would have to resolve them.

    - `weights`: the coefficients of A, as for `ETDRK4`.
    - `multiply`: applies one of them to a state.
    """

    weights: Coefficients
    multiply: Multiply = eqx.field(static=True)

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar = dfx.LocalLinearInterpolation

    def order(self, terms):
        return 4

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del solver_state, made_jump
        half = lambda y: self.multiply(self.weights.half, y)
        full = lambda y: self.multiply(self.weights.full, y)
        y_half, y_full = half(y0), full(y0)
        stages = (
            lambda n: y_half + half(n[0]) / 2,
            lambda n: y_half + n[1] / 2,
            lambda n: y_full + half(n[2]),
            lambda n: y_full + (full(n[0]) + 2 * half(n[1] + n[2]) + n[3]) / 6,
        )
        middle = t0 + (t1 - t0) / 2
        times = jnp.stack([t0, middle, middle, t1])
        y1 = _staged(terms, times, y0, args, stages)
        return y1, None, dict(y0=y0, y1=y1), None, dfx.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)
