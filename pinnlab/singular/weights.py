"""Weights of rows near singular points."""

from collections.abc import Sequence

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.singular.around import Around
from pinnlab.singular.corners import Corner
from pinnlab.system.terms import Term


def singular_weights(
    corners: Sequence[Corner | Around], term: Term, points: np.ndarray
) -> np.ndarray:
    """What keeps the residual of a term bounded at [n, dim] points, [n]: the weights of
    all corners for the term's highest derivative."""
    weights = np.ones(len(points))
    if not isinstance(term.residual, Expression):
        return weights
    for corner in corners:
        orders = (corner.principal.order(p.orders) for p in partials(term.residual))
        weights *= corner.weights(points, max(orders, default=0))
    return weights
