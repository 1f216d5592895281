"""The functions that solutions are made of at a singular point, with their derivatives.

Everything works on NumPy and on JAX arrays alike. `local` are the coordinates from the
point, scaled; derivatives are by them.
"""

from math import comb
from types import ModuleType

import numpy as np

from pinnlab.network.erfc import erfc_integrals


HIGHEST = 8
"""The largest index of a repeated integral."""
NEAREST = 1e-14
"""Nearer to the point than this the functions are those at this distance."""
SHOWN = 1e-3
"""Nearer than NEAREST, what is infinite at the point is shown as at this distance."""
AWAY = 30.0
"""An argument at which erfc has vanished."""


def heat_functions(local, powers, orders: tuple[int, int], numpy: ModuleType = np):
    """Derivatives of t^j F_k where initial and boundary data meet,

        F_k(t, d) = t^(k/2) i^k erfc(d / sqrt(t)),    dF_k/dt = F_(k-2) / 4,
        dF_k/dd = -F_(k-1)

    (Carslaw and Jaeger, 1959, 12.4): solutions of u_t = u_dd / 4.

    **Arguments:**

    - `local`: [..., 2], the time since the corner and the distance d >= 0.
    - `powers`: [S, 2] integers (j, k), -HIGHEST <= k <= HIGHEST.
    - `orders`: of the derivative by t and by d.

    **Returns:** [..., S].
    """
    by_time, by_distance = orders
    started = local[..., 0] > NEAREST
    t = numpy.where(started, local[..., 0], NEAREST)
    # At the corner itself the initial value holds, as everywhere at t = 0.
    away = numpy.maximum(local[..., 1], AWAY * NEAREST**0.5)
    distance = numpy.where(started, local[..., 1], away)
    lowest = -HIGHEST - 2 * by_time - by_distance
    tower = erfc_integrals(distance / numpy.sqrt(t), lowest, HIGHEST, numpy)
    t = t[..., None]
    j, k = powers[:, 0], powers[:, 1]
    total = numpy.zeros_like(t)
    for q in range(by_time + 1):
        index = k - 2 * (by_time - q) - by_distance
        falling = 1
        for i in range(q):
            falling = falling * (j - i)
        exponent = (2 * (j - q) + index).astype(t.dtype) / 2
        total = total + (
            comb(by_time, q)
            * 0.25 ** (by_time - q)
            * falling
            * t**exponent
            * tower[..., index - lowest]
        )
    return (-1.0) ** by_distance * total


def laplace_functions(local, powers, orders: tuple[int, int], numpy: ModuleType = np):
    """Derivatives of the parts, real and imaginary, of z^k conj(z)^j log(z)^m.

    z = x + iy. With d = d/dz and e = d/d conj(z): d/dx = d + e, d/dy = i (d - e), and
    the derivative of z^k log(z)^m is d^m/dk^m of that of z^k. Harmonic where j = 0; the
    others serve terms of lower order (Grisvard, 1985; Kondratiev, 1967).

    **Arguments:**

    - `local`: [..., 2], x and y. The branch is cut along x < 0. At the point itself
        the functions are those next to it in the direction of x.
    - `powers`: [S, 3] integers (2 k, j, m).
    - `orders`: of the derivative by x and by y.

    **Returns:** [..., 2 S], the real parts first.
    """
    x, y = local[..., 0], local[..., 1]
    square = x**2 + y**2
    far = square > NEAREST**2
    x, y = numpy.where(far, x, NEAREST), numpy.where(far, y, 0.0)
    degree = powers[:, 0] + 2 * powers[:, 1] - 2 * sum(orders)
    at_point = numpy.log(numpy.where(degree > 0, NEAREST, SHOWN).astype(x.dtype))
    size = numpy.where(far[..., None], numpy.log(x**2 + y**2)[..., None] / 2, at_point)
    log = size + 1j * numpy.arctan2(y, x)[..., None]
    total = numpy.zeros_like(log)
    for a, factor in enumerate(wirtinger(*orders)):
        if factor:
            total = total + complex(factor) * _power(
                log, powers, a, sum(orders) - a, numpy
            )
    return numpy.concatenate([total.real, total.imag], axis=-1)


def wirtinger(x: int, y: int) -> np.ndarray:
    """The coefficient of d^a e^(x + y - a) in (d + e)^x (i (d - e))^y, [x + y + 1]."""
    found = np.ones(1, complex)
    for factor in [np.array([1.0, 1.0])] * x + [1j * np.array([-1.0, 1.0])] * y:
        found = np.convolve(found, factor)
    return found


def _power(log, powers, a: int, b: int, numpy: ModuleType):
    """d^a e^b of z^k conj(z)^j log(z)^m at log z."""
    j, m = powers[:, 1], powers[:, 2]
    k = powers[:, 0].astype(log.real.dtype) / 2
    falling = 1
    for i in range(b):
        falling = falling * (j - i)
    # ff(k) = k (k - 1) .. (k - a + 1), and its first and second derivative by k.
    polynomial = np.poly(np.arange(a)) if a else np.ones(1)
    slopes = [polynomial, np.polyder(polynomial), np.polyder(polynomial, 2)]
    logs = 0.0
    for q, slope in enumerate(slopes):
        ways = (1, m, m * (m - 1) // 2)[q]
        rest = numpy.where(m >= q, m - q, 0)
        power = numpy.where(rest == 0, 1.0, numpy.where(rest == 1, log, log**2))
        logs = logs + ways * numpy.polyval(numpy.asarray(slope, k.dtype), k) * power
    conjugate = numpy.conj(log)
    return falling * numpy.exp((k - a) * log + (j - b) * conjugate) * logs
