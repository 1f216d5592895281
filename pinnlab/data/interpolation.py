"""Values between the points of a grid."""

from collections.abc import Iterable

import numpy as np
from scipy.interpolate import NdBSpline, RegularGridInterpolator, make_interp_spline


def interpolate(
    grid: Iterable[np.ndarray], values: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Values on a grid at [n, dim] points, [n]: by a cubic spline in each coordinate.

    A point of the grid has its own value. Where values are missing (NaN) the others
    are linear, so that a gap stays where it is. Along a coordinate of which the array
    has one value it is constant.
    """
    varying = [i for i, size in enumerate(values.shape) if size > 1]
    axes = [g for i, g in enumerate(grid) if i in varying]
    values, points = np.squeeze(values), points[:, varying]
    if not varying:
        return np.full(len(points), float(values))
    between = _linear if not np.isfinite(values).all() else _cubic
    place = [_closest(axis, x) for axis, x in zip(axes, points.T, strict=True)]
    there = np.logical_and.reduce(
        [axis[i] == x for axis, i, x in zip(axes, place, points.T, strict=True)]
    )
    return np.where(there, values[tuple(place)], between(axes, values, points))


def _closest(axis: np.ndarray, x: np.ndarray) -> np.ndarray:
    right = np.clip(np.searchsorted(axis, x), 1, len(axis) - 1)
    return right - (x - axis[right - 1] < axis[right] - x)


def _linear(
    axes: list[np.ndarray], values: np.ndarray, points: np.ndarray
) -> np.ndarray:
    return RegularGridInterpolator(tuple(axes), values)(points)


def _cubic(
    axes: list[np.ndarray], values: np.ndarray, points: np.ndarray
) -> np.ndarray:
    orders = tuple(min(3, len(axis) - 1) for axis in axes)
    knots: list[np.ndarray] = []
    for i, (axis, order) in enumerate(zip(axes, orders, strict=True)):
        line = make_interp_spline(axis, np.moveaxis(values, i, 0), k=order)
        values = np.moveaxis(line.c, 0, i)
        knots.append(line.t)
    return NdBSpline(tuple(knots), values, orders)(points)
