"""Weights of the rows of a steady problem: sums over nodes become integrals.

Chebyshev nodes are dense near the faces. Without weights a residual there counts more
than one inside, by (1 - z^2)^(-1/2) along each coordinate, and where corners are
singular it is large there.
"""

from collections.abc import Sequence

import numpy as np

from pinnlab.singular.corners import Corner
from pinnlab.singular.weights import singular_weights
from pinnlab.system.system import System
from pinnlab.system.terms import Term


NEAR_CORNERS = 0.5
"""What all nodes near corners count together, relative to all others."""


def row_weights(
    system: System,
    terms: tuple[Term, ...],
    points: np.ndarray,
    corners: Sequence[Corner] = (),
    graded: int = 0,
) -> np.ndarray:
    """The roots of the quadrature weights of terms of one place: [n, terms].

    **Arguments:**

    - `points`: [n, dim], the nodes.
    - `graded`: how many of them, the last ones, are those near the corners.
    """
    problem, fixed = system.problem, dict(terms[0].place.fixed)
    found = np.ones(len(points))
    for i, axis in enumerate(problem.axes):
        if axis.name not in fixed and axis.name not in problem.periodic:
            z = (2 * points[:, i] - axis.lower - axis.upper) / (axis.upper - axis.lower)
            found *= np.maximum(1 - z**2, 0.0) ** 0.25
    if graded:
        found[-graded:] = NEAR_CORNERS * np.sqrt(len(points) / graded - 1)
    return np.stack(
        [found * singular_weights(corners, t, points) for t in terms], axis=1
    )
