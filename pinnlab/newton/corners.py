"""Corners of a steady problem that are not smooth, whether it is linear or not."""

import numpy as np

from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.tangent import tangent
from pinnlab.singular.corners import Corner, find_corners
from pinnlab.system.forms import LinearForm, linear_form
from pinnlab.system.system import System
from pinnlab.system.terms import Term


def singular_corners(system: System, compiled: Compiled) -> tuple[Corner, ...]:
    """Corners where no smooth fields satisfy all conditions and the equations, which
    are linearized to where the fields vanish."""

    def form_of(system: System, term: Term, points: np.ndarray) -> LinearForm:
        if term.is_affine:
            return linear_form(system, term, points)
        pointwise = compiled.of((term,))
        zero = np.zeros((len(points), len(pointwise.partials)))
        return tangent(pointwise, points, pointwise.locations(points), zero)

    return find_corners(system, form_of)
