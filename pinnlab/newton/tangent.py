"""The derivative of a nonlinear term by the fields, as a linear form."""

from collections.abc import Sequence

import numpy as np

from pinnlab.newton.pointwise import Pointwise
from pinnlab.system.forms import LinearForm, Piece


def next_iterate(form: LinearForm, values: np.ndarray) -> LinearForm:
    """F'(u) w + F(u) - F'(u) u, a form in Newton's next iterate w.

    **Arguments:**

    - `form`: the tangent at u; `values`: of its partials there, [n, partials].
    """
    slopes = np.concatenate([p.coefficient for p in form.pieces], axis=1)
    return LinearForm(form.pieces, form.rest - np.sum(slopes * values, axis=1))


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
