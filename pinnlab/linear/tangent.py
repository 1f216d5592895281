"""The derivative of a nonlinear term by the fields, as a linear form."""

from collections.abc import Sequence

import numpy as np

from pinnlab.linear.forms import LinearForm, Piece
from pinnlab.newton.pointwise import Pointwise


def tangent(
    pointwise: Pointwise,
    points: np.ndarray,
    places: Sequence[np.ndarray],
    values: np.ndarray,
) -> LinearForm:
    """F'(u) as pieces; `rest` is the residual F(u).

    **Arguments:**

    - `pointwise`: of one term.
    - `places`: [n, dim] for each of its partials; `values`: of them, [n, partials].
    """
    residual, slopes = pointwise(points, values)
    pieces = tuple(
        Piece(p.field, p.orders, slopes[:, 0, j, None], place[:, None, :])
        for j, (p, place) in enumerate(zip(pointwise.partials, places, strict=True))
    )
    return LinearForm(pieces, residual[:, 0])
