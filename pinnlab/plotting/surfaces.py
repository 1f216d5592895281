"""Surfaces on which values over three coordinates have one value."""

import itertools

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from pinnlab.plotting.maps import Axis, value_colors, value_norm
from pinnlab.plotting.style import math


LEVELS = 4
MOST = 40
"""Points of a coordinate that are looked at; more would draw for minutes."""


def isosurfaces(
    data: tuple[Axis, Axis, Axis, np.ndarray],
    ax: Axes3D,
    *,
    levels: tuple[float, ...] = (),
    norm: Normalize | None = None,
) -> Axes3D:
    """Surfaces of equal value, in a 3-D axis.

    **Arguments:**

    - `data`: three coordinates and the values [n, m, k].
    - `ax`: from `figure.add_subplot(projection="3d")`.
    - `levels`: the values; four between the smallest and the largest if missing.
    - `norm`: the color scale, for several times that share one.
    """
    *axes, values = data
    steps = [-(-n // MOST) for n in values.shape]
    cut = tuple(slice(None, None, s) for s in steps)
    names = [name for name, _ in axes]
    grids = [grid[::s] for (_, grid), s in zip(axes, steps, strict=True)]
    norm = norm or value_norm(values)
    if not levels:
        low, high = np.nanmin(values), np.nanmax(values)
        levels = tuple(np.linspace(low, high, LEVELS + 2)[1:-1])
    colors = ScalarMappable(norm, value_colors(norm))
    for level in levels:
        triangles = triangulated(grids, values[cut], level)
        color = colors.to_rgba(np.array(level), alpha=0.45)
        surface = Poly3DCollection(triangles, facecolors=color, lw=0, zsort="average")
        ax.add_collection3d(surface)
    for name, grid, letter in zip(names, grids, "xyz", strict=True):
        ax.set(**{f"{letter}label": math(name), f"{letter}lim": (grid[0], grid[-1])})
    figure = ax.get_figure()
    if figure is not None:
        label = "at " + ", ".join(f"{level:.3g}" for level in levels)
        figure.colorbar(colors, ax=ax, pad=0.12, shrink=0.7, aspect=22, label=label)
    return ax


def triangulated(
    grids: list[np.ndarray], values: np.ndarray, level: float
) -> np.ndarray:
    """The surface `values = level` as triangles [count, corner, coordinate].

    Marching tetrahedra (Doi and Koide, 1991): each cell of the grid is cut into six,
    in each of which the values are linear. Cells with an unknown value have none.
    """
    places = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1)
    found = [np.empty((0, 3, 3))]
    for order in itertools.permutations(range(3)):
        # The path from a cell's lowest corner to its highest along the three axes.
        corners = np.zeros((4, 3), int)
        for i, axis in enumerate(order):
            corners[i + 1] = corners[i]
            corners[i + 1, axis] += 1
        shape = values.shape
        cut = [
            tuple(slice(c, n - 1 + c) for c, n in zip(corner, shape, strict=True))
            for corner in corners
        ]
        heights = np.stack([values[c].ravel() for c in cut], axis=1) - level
        points = np.stack([places[c].reshape(-1, 3) for c in cut], axis=1)
        above = (heights > 0).sum(axis=1)
        crossed = np.isfinite(heights).all(axis=1) & (above > 0) & (above < 4)
        found += _faces(points[crossed], heights[crossed])
    return np.concatenate(found)


def _faces(points: np.ndarray, heights: np.ndarray) -> list[np.ndarray]:
    """Triangles in tetrahedra, points [n, 4, 3], that the value 0 crosses."""
    # The corners above come first.
    order = np.argsort(heights <= 0, axis=1, kind="stable")
    heights = np.take_along_axis(heights, order, axis=1)
    points = np.take_along_axis(points, order[..., None], axis=1)
    above = (heights > 0).sum(axis=1)

    def between(rows: np.ndarray, a: int, b: int) -> np.ndarray:
        up, down = heights[rows, a, None], heights[rows, b, None]
        return points[rows, a] + (points[rows, b] - points[rows, a]) * up / (up - down)

    found = []
    for count, edges in EDGES.items():
        rows = above == count
        corners = [between(rows, a, b) for a, b in edges]
        found.append(np.stack(corners[:3], axis=1))
        if len(edges) == 4:
            found.append(np.stack([corners[0], corners[2], corners[3]], axis=1))
    return found


EDGES = {
    1: ((0, 1), (0, 2), (0, 3)),
    2: ((0, 2), (0, 3), (1, 3), (1, 2)),
    3: ((0, 3), (1, 3), (2, 3)),
}
"""The edges that are crossed, around the face, by the number of corners above."""
