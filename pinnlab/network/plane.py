"""Functions around points of the plane that are not in the domain: holes and corners.

    w^a conj(w)^b log|w|^m,    w = (z - p) exp(-i turn) / size,    z = x + iy

for real a and integers b >= 0 and m = 0, 1. With a = -n and b = 0 they are those of
Laurent's series around a hole, with log|w| all harmonic functions outside of it; with a
a multiple of pi / angle those of a corner (Kondratiev, 1967; Gopal and Trefethen,
2019). Those with b > 0 serve terms of lower order.
"""

from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.network.corners import AbstractExpansion
from pinnlab.network.singular import NEAREST, wirtinger


def plane_functions(
    local, turn, powers, orders: tuple[int, int], numpy: ModuleType = np
):
    """Derivatives of the parts, real and imaginary, by x and y.

    **Arguments:**

    - `local`: [..., 2], (x, y) from the point, over the size.
    - `turn`: the angle of the direction opposite to which the branch is cut.
    - `powers`: [S, 3], (a, b, m).
    - `orders`: of the derivative by x and by y of `local`.

    **Returns:** [..., 2 S], the real parts first.
    """
    x, y = local[..., 0], local[..., 1]
    far = x**2 + y**2 > NEAREST**2
    x, y = numpy.where(far, x, NEAREST), numpy.where(far, y, 0.0)
    z = (x + 1j * y) * numpy.exp(-1j * turn)
    size = numpy.log(x**2 + y**2)[..., None] / 2
    log = size + 1j * numpy.arctan2(z.imag, z.real)[..., None]
    # The same for all derivatives, of which compilers make use.
    value = numpy.exp(powers[:, 0] * log + powers[:, 1] * numpy.conj(log))
    inverse = 1 / z[..., None]
    total = numpy.zeros_like(log)
    for p, factor in enumerate(wirtinger(*orders)):
        if factor:
            q = sum(orders) - p
            turned = factor * numpy.exp(-1j * turn * (p - q))
            lowered = inverse**p * numpy.conj(inverse) ** q
            total = total + turned * lowered * (
                value * _slopes(size, powers, p, q, numpy)
            )
    return numpy.concatenate([total.real, total.imag], axis=-1)


def functions_around(points, place, size: float, turn: float, powers, orders):
    """`plane_functions` at [..., 2] points, of (points - place) / size, and their
    derivatives by the points."""
    both = (orders[0], orders[1])
    found = plane_functions((points - place) / size, turn, powers, both)
    return size ** -sum(orders) * found


def _slopes(size, powers, p: int, q: int, numpy: ModuleType):
    """What d^p / dw^p d^q / d conj(w)^q multiplies w^(a - p) conj(w)^(b - q) with,
    where log|w| is `size`.

    log|w| is the derivative of |w|^s by s at 0, and |w|^s = w^(s/2) conj(w)^(s/2).
    """
    a, b, m = powers[:, 0], powers[:, 1], powers[:, 2]
    first, first_slope = _falling(a, p, numpy)
    second, second_slope = _falling(b, q, numpy)
    plain = first * second
    slope = (first_slope * second + first * second_slope) / 2
    return numpy.where(m > 0, plain * size + slope, plain)


def _falling(a, count: int, numpy: ModuleType):
    """a (a - 1) .. (a - count + 1), and its derivative by a."""
    polynomial = np.poly(np.arange(count)) if count else np.ones(1)
    dtype = a.dtype
    evaluated = lambda c: numpy.polyval(numpy.asarray(c, dtype), a)
    return evaluated(polynomial), evaluated(np.polyder(polynomial))


class PlaneFunctions(AbstractExpansion):
    """Functions around points, and their weights, which are all that is trained.

    - `places`: the points; `sizes` and `turns` as above.
    - `powers`: (a, b, m) of every point's functions; filled up with (0, 0, 0).
    - `coefficients`: of the real parts, then of the imaginary ones.
    """

    places: Float[Array, "points 2"]
    sizes: Float[Array, " points"]
    turns: Float[Array, " points"]
    powers: Float[Array, "points functions 3"]
    coefficients: Float[Array, "points outputs 2*functions"]

    def derivative(
        self, point: Float[Array, " 2"], orders: tuple[int, ...]
    ) -> Float[Array, " out"]:
        """A derivative of the values."""
        local = (point - self.places) / self.sizes[:, None]
        each = jax.vmap(lambda l, t, p: plane_functions(l, t, p, _pair(orders), jnp))
        found = each(local, self.turns, self.powers)
        scale = self.sizes ** -sum(orders)
        return jnp.einsum("cos,cs,c->o", self.coefficients, found, scale)


def _pair(orders: tuple[int, ...]) -> tuple[int, int]:
    x, y = orders
    return x, y


def blank_plane(outputs: int) -> PlaneFunctions:
    """No points."""
    none = jnp.zeros(0)
    return PlaneFunctions(
        jnp.zeros((0, 2)),
        none,
        none,
        jnp.zeros((0, 0, 3)),
        jnp.zeros((0, outputs, 0)),
    )
