"""Functions of one coordinate that separable networks multiply.

Chebyshev polynomials where the coordinate is bounded, harmonics where it is periodic.
Everything works on NumPy and on JAX arrays alike.
"""

import math
from dataclasses import dataclass
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
    # exp(i k pi z) for k = a * size + b as a product: few exponentials are computed.
    size = math.isqrt(most) + 1
    low = numpy.exp(1j * np.pi * z[..., None] * np.arange(size))
    high = numpy.exp(1j * np.pi * z[..., None] * np.arange(0, most + 1, size))
    waves = (high[..., :, None] * low[..., None, :]).reshape(*z.shape, -1)
    waves = waves[..., 1 : most + 1] * (1j * rates) ** order
    pairs = numpy.stack([waves.real, waves.imag], axis=-1)
    constant = numpy.ones_like(z) if order == 0 else numpy.zeros_like(z)
    pairs = pairs.reshape(*z.shape, 2 * most)
    return numpy.concatenate([constant[..., None], pairs], axis=-1)


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


OCTAVES = 0.25
"""The octaves of degrees that are compared to see how amplitudes decay."""


@dataclass(frozen=True)
class Decay:
    """How the amplitudes of a coordinate decay towards the highest degree.

    - `missing`: the share (root of the sum of squares) of the degrees beyond, if the
        decay goes on like this.
    - `order`: amplitudes fall like degree^-order: 1 for a jump, 2 for a kink, and
        large where the function is smooth.
    """

    missing: float
    order: float


def decay(coefficients: np.ndarray, axis: int, periodic: bool) -> Decay:
    """From the energies E of the last two quarters of an octave of degrees.

    Where the next ones follow as a geometric series, E / (ratio - 1) is missing.
    """
    moved = np.moveaxis(coefficients, axis, 0)
    energy = np.sum(moved.reshape(len(moved), -1) ** 2, axis=1)
    whole = float(np.sum(energy))
    if periodic:
        energy = np.concatenate([energy[:1], energy[1::2] + energy[2::2]])
    first, second = (round(len(energy) * 2 ** (-k * OCTAVES)) for k in (2, 1))
    if whole == 0:
        return Decay(0.0, np.inf)
    if not 0 < first < second < len(energy):
        return Decay(1.0, 0.0)
    before, last = np.sum(energy[first:second]), np.sum(energy[second:])
    tiny = np.finfo(float).tiny
    order = (np.log2(max(before, tiny) / max(last, tiny)) / OCTAVES + 1) / 2
    # Nothing that is resolved at all decays more slowly than a jump.
    order = max(float(order), 1.0)
    missing = np.sqrt(last / whole / (2 ** (OCTAVES * (2 * order - 1)) - 1))
    return Decay(float(missing), order)
