"""The repeated integrals of the complementary error function, and its derivatives.

    i^k erfc(z) = 2/sqrt(pi) * integral of s^k/k! exp(-(s + z)^2) over s > 0

for k >= 0 (Abramowitz and Stegun, 1964, 7.2.3; Carslaw and Jaeger, 1959, appendix II),
and i^(-k) erfc = (-d/dz)^k erfc for k > 0: Hermite polynomials times a Gaussian.
"""

from types import ModuleType

import numpy as np


NODES = 40
LONGEST, DECAY = 8.0, 64.0
"""The integrand exp(-s^2 - 2 s z) is below rounding at s = 8, and where 2 s z = 64."""


def erfc_integrals(z, least: int, most: int, numpy: ModuleType = np):
    """i^k erfc(z) for k = least .. most, z >= 0.

    The two highest come from quadrature of a positive integrand, the others from

        i^(k-2) erfc = 2 k i^k erfc + 2 z i^(k-1) erfc,

    which adds numbers of one sign as long as k > 0: nothing cancels at any z. (Upwards
    the same recurrence loses all digits at large z; Gautschi, 1967.)

    **Arguments:**

    - `z`: [...], not negative.
    - `most`: at least 1.
    - `numpy`: the module to compute with, `numpy` or `jax.numpy`.

    **Returns:** [..., most - least + 1].
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    reach = DECAY / (DECAY / LONGEST + 2 * z[..., None])
    unit = numpy.asarray((nodes + 1) / 2, z.dtype)
    weights = numpy.asarray(weights / 2, z.dtype)
    # Squared, the nodes are dense where the integrand is large.
    s, slope = reach * unit**2, 2 * reach * unit * weights
    body = numpy.exp(-s * (s + 2 * z[..., None])) * slope
    gauss = 2 / float(np.sqrt(np.pi)) * numpy.exp(-(z**2))
    rows = []
    for k in (most, most - 1):
        powers = s**k / float(np.prod(np.arange(1, k + 1)))
        rows.append(gauss * numpy.sum(powers * body, axis=-1))
    for k in range(most, least + 1, -1):
        rows.append(2 * k * rows[-2] + 2 * z * rows[-1])
    return numpy.stack(rows[::-1], axis=-1)
