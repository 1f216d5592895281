"""Functions of one coordinate that separable networks multiply.

Chebyshev polynomials where the coordinate is bounded, harmonics where it is periodic.
Everything works on NumPy and on JAX arrays alike.
"""

from functools import lru_cache
from types import ModuleType

import numpy as np


def chebyshev(z, count: int, order: int, numpy: ModuleType = np):
    """The derivative of the polynomials T_0 .. T_(count-1) at z in [-1, 1].

    **Arguments:**

    - `z`: points [...].
    - `numpy`: the module to compute with, `numpy` or `jax.numpy`.

    **Returns:** [..., count].
    """
    rows = [numpy.ones_like(z), z]
    while len(rows) < count:
        rows.append(2 * z * rows[-1] - rows[-2])
    values = numpy.stack(rows[:count], axis=-1)
    return values if order == 0 else values @ numpy.asarray(_slopes(count, order))


@lru_cache
def _slopes(count: int, order: int) -> np.ndarray:
    """[count, count]: column n holds the Chebyshev coefficients of T_n^(order)."""
    found = np.zeros((count, count))
    for n in range(order, count):
        unit = np.zeros(n + 1)
        unit[n] = 1.0
        found[: n + 1 - order, n] = np.polynomial.chebyshev.chebder(unit, order)
    return found


def harmonics(z, count: int, order: int, numpy: ModuleType = np):
    """The derivative of 1, cos(pi z), sin(pi z), cos(2 pi z), ... at z in [-1, 1].

    `count` is odd. Arguments and result as those of `chebyshev`.
    """
    most = count // 2
    rates = np.pi * np.arange(1, most + 1)
    angles = z[..., None] * rates + order * np.pi / 2
    waves = numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=-1)
    waves = (waves * (rates**order)[:, None]).reshape(*z.shape, 2 * most)
    constant = numpy.ones_like(z) if order == 0 else numpy.zeros_like(z)
    return numpy.concatenate([constant[..., None], waves], axis=-1)


def tail(coefficients: np.ndarray, axis: int, periodic: bool) -> float:
    """The share (root of the sum of squares) of the two highest degrees.

    A small tail is the sign of a resolved coordinate.
    """
    last = 4 if periodic else 2
    count = coefficients.shape[axis]
    if count <= last:
        return 1.0
    moved = np.moveaxis(coefficients, axis, 0)
    size = np.linalg.norm(moved)
    return float(np.linalg.norm(moved[-last:]) / size) if size > 0 else 0.0
