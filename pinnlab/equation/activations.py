"""Activation functions and all their derivatives, in closed form and stable.

`tower(name, z, order)` gives s, s', ..., s^(order) at once, for the propagation of
jets. Its backward rule is a `custom_vjp` that uses the next entry of the tower:
differentiating the closed forms instead would lose the digits they were written to keep
(in float32, 1 - tanh(z)^2 is 0 at z = 10), and cost more.

`activation(name)` is the plain function for code that calls a network. Its derivative
is a `custom_jvp` made of the same closed forms, so that any nesting of `grad`,
`hessian` and `jvp` is stable. A `custom_vjp` never sits inside a plain call: `jvp`
cannot pass it.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


NAMES = ("tanh", "sin", "gelu", "swish")


def tower(
    name: str, z: Float[Array, " width"], order: int
) -> tuple[Float[Array, " width"], ...]:
    """s(z), s'(z), ..., s^(order)(z). Only reverse mode passes through it."""
    return cast(tuple[Array, ...], _tower(name, z, order))


@partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def _tower(name: str, z: Array, order: int) -> tuple[Array, ...]:
    return closed_forms(name, z, order)


def _tower_forward(name: str, z: Array, order: int) -> tuple[tuple, tuple]:
    entries = closed_forms(name, z, order + 1)
    return entries[:-1], entries[1:]


def _tower_backward(name: str, order: int, entries: tuple, cotangents: tuple) -> tuple:
    del name, order
    total = cotangents[0] * entries[0]
    for cotangent, entry in zip(cotangents[1:], entries[1:], strict=True):
        total = total + cotangent * entry
    return (total,)


_tower.defvjp(_tower_forward, _tower_backward)


@lru_cache
def activation(name: str, order: int = 0) -> Callable[[Array], Array]:
    """The activation (or its derivative of some order) as a plain function."""

    @jax.custom_jvp
    def function(z: Array) -> Array:
        return closed_forms(name, z, order)[order]

    def rule(primals: tuple, tangents: tuple) -> tuple:
        (z,), (dz,) = primals, tangents
        return function(z), activation(name, order + 1)(z) * dz

    function.defjvp(rule)
    return function


def closed_forms(name: str, z: Array, order: int) -> tuple[Array, ...]:
    """The entries of the tower, by formula. Raises `ValueError` for another name."""
    if name == "tanh":
        return _tanh(z, order)
    if name == "sin":
        sine, cosine = jnp.sin(z), jnp.cos(z)
        return tuple((sine, cosine, -sine, -cosine)[k % 4] for k in range(order + 1))
    if name == "swish":
        return _times_z(z, _sigmoid(z, order))
    if name == "gelu":
        return _times_z(z, _normal(z, order))
    raise ValueError(f"unknown activation '{name}' (one of: {', '.join(NAMES)})")


def _tanh(z: Array, order: int) -> tuple[Array, ...]:
    """q = sech^2 = 4 e / (1 + e)^2 with e = exp(-2|z|); s^(k) = q p_k(tanh)."""
    e = jnp.exp(-2 * jnp.abs(z))
    t, q = jnp.tanh(z), 4 * e / (1 + e) ** 2
    return t, *(q * _polynomial(p, t) for p in _tanh_polynomials(order))


@lru_cache
def _tanh_polynomials(order: int) -> tuple[tuple[float, ...], ...]:
    """p_1 = 1, p_{k+1} = (1 - t^2) p_k' - 2 t p_k."""
    found, p = [], np.polynomial.Polynomial([1.0])
    for _ in range(order):
        found.append(tuple(float(c) for c in p.coef))
        p = np.polynomial.Polynomial([1, 0, -1]) * p.deriv() - 2 * _X * p
    return tuple(found)


_X = np.polynomial.Polynomial([0.0, 1.0])


def _sigmoid(z: Array, order: int) -> tuple[Array, ...]:
    """s^(k) = s(z) s(-z) p_k(s): the product keeps the digits that s - s^2 loses."""
    s, q = jax.nn.sigmoid(z), jax.nn.sigmoid(z) * jax.nn.sigmoid(-z)
    found, p = [s], np.polynomial.Polynomial([1.0])
    for _ in range(order):
        found.append(q * _polynomial(tuple(float(c) for c in p.coef), s))
        p = (_X - _X**2) * p.deriv() + (1 - 2 * _X) * p
    return tuple(found)


def _normal(z: Array, order: int) -> tuple[Array, ...]:
    """The normal distribution and its derivatives, by Hermite polynomials."""
    density = jnp.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    found = [0.5 * jax.scipy.special.erfc(-z / math.sqrt(2))]
    before, hermite = jnp.zeros_like(z), jnp.ones_like(z)
    for k in range(order):
        found.append((-1) ** k * hermite * density)
        before, hermite = hermite, z * hermite - k * before
    return tuple(found)


def _times_z(z: Array, inner: tuple[Array, ...]) -> tuple[Array, ...]:
    """The tower of z f(z): z f^(k) + k f^(k-1)."""
    found = [z * inner[0]]
    for k in range(1, len(inner)):
        found.append(z * inner[k] + k * inner[k - 1])
    return tuple(found)


def _polynomial(coefficients: tuple[float, ...], t: Array) -> Array | float:
    """Horner's rule; polynomials of one parity are evaluated in t^2."""
    if all(c == 0 for c in coefficients[1::2]):
        return _horner(coefficients[::2], t * t) if len(coefficients) > 1 else 1.0
    if all(c == 0 for c in coefficients[::2]):
        return t * _horner(coefficients[1::2], t * t)
    return _horner(coefficients, t)


def _horner(coefficients: tuple[float, ...], t: Array) -> Array | float:
    value: Array | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * t + c
    return value
