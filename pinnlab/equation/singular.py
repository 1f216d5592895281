"""Functions with a singular point, with finite derivatives there.

A derivative that is infinite or undefined at the point is taken to be 0: in a residual
it always meets a factor 0 (sqrt(u)^2, x^1.5 at 0), and 0 * inf would make the whole
gradient NaN. Values are never changed.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike


def _floating(a: ArrayLike) -> Array:
    # An integer becomes a float; a float keeps its precision.
    return jnp.asarray(a) * 1.0


def sqrt(a: ArrayLike) -> Array:
    """The square root; derivative 0 at 0."""
    return _sqrt(_floating(a))


@jax.custom_jvp
def _sqrt(a: Array) -> Array:
    return jnp.sqrt(a)


@_sqrt.defjvp
def _sqrt_rule(primals: tuple, tangents: tuple) -> tuple:
    (a,), (da,) = primals, tangents
    root = _sqrt(a)
    inverse = jnp.where(root > 0, 0.5 / jnp.where(root > 0, root, 1), 0)
    return root, inverse * da


def absolute(a: ArrayLike) -> Array:
    """|a|; derivative sign(a), which is 0 at 0."""
    a = _floating(a)
    return a * jnp.sign(a)


def power(a: ArrayLike, exponent: float) -> Array:
    """a ^ exponent for a constant exponent; singular derivatives at 0 are 0."""
    a = _floating(a)
    if float(exponent).is_integer() and abs(exponent) <= 64:
        return jax.lax.integer_pow(a, int(exponent))
    return _power(a, exponent)


def _power(a: Array, exponent: float) -> Array:
    @jax.custom_jvp
    def function(a: Array) -> Array:
        return jnp.power(a, exponent)

    @function.defjvp
    def rule(primals: tuple, tangents: tuple) -> tuple:
        (a,), (da,) = primals, tangents
        safe = jnp.where(a == 0, 1, a)
        # Above exponent 1 the slope at 0 is 0 by itself; below it would be infinite.
        slope = jnp.where(a == 0, 0, exponent * _power(safe, exponent - 1))
        return function(a), slope * da

    return function(a)


def arctan2(y: ArrayLike, x: ArrayLike) -> Array:
    """The angle of (x, y); derivative 0 at the origin."""
    return _arctan2(*jnp.broadcast_arrays(_floating(y), _floating(x)))


@jax.custom_jvp
def _arctan2(y: Array, x: Array) -> Array:
    return jnp.arctan2(y, x)


@_arctan2.defjvp
def _arctan2_rule(primals: tuple, tangents: tuple) -> tuple:
    (y, x), (dy, dx) = primals, tangents
    square = x * x + y * y
    inverse = jnp.where(square > 0, 1 / jnp.where(square > 0, square, 1), 0)
    return _arctan2(y, x), (x * dy - y * dx) * inverse


def norm(components: Array) -> Array:
    """The Euclidean norm of a vector [n]; derivative 0 at 0."""
    return sqrt(jnp.sum(components**2))
