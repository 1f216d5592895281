"""Weights of the rows of a steady problem: sums over nodes become integrals.

Chebyshev nodes are dense near the faces. Without weights a residual there counts more
than one inside, by (1 - z^2)^(-1/2) along each coordinate, and where corners are
singular it is large there.
"""

import numpy as np

from pinnlab.newton.pointwise import Weights
from pinnlab.system.system import System
from pinnlab.system.terms import Term


def row_weights(system: System, terms: tuple[Term, ...]) -> Weights:
    """The roots of the quadrature weights at the nodes of terms of one place."""
    problem, fixed = system.problem, dict(terms[0].place.fixed)
    free = [
        (i, a)
        for i, a in enumerate(problem.axes)
        if a.name not in fixed and a.name not in problem.periodic
    ]

    def weights(points: np.ndarray) -> np.ndarray:
        found = np.ones(len(points))
        for i, axis in free:
            z = (2 * points[:, i] - axis.lower - axis.upper) / (axis.upper - axis.lower)
            found *= np.maximum(1 - z**2, 0.0) ** 0.25
        return np.repeat(found[:, None], len(terms), axis=1)

    return weights
