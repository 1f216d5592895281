"""Panels of vectors over two coordinates, and of planes through three."""

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d import Axes3D

from pinnlab.plotting.maps import Axis, equal_scales, value_colors, value_norm
from pinnlab.plotting.style import INK, math, tidy


Vectors = tuple[Axis, Axis, np.ndarray, np.ndarray]
"""Two coordinates and two components [n, m], in the order of the coordinates."""
ARROWS = 18
UNEVEN = 1e-6


def arrows(data: Vectors, ax: Axes) -> Axes:
    """Arrows at some points of the grid; the longest fills its cell."""
    (_, across), (_, up), u, v = data
    i = _some(len(across), ARROWS)
    j = _some(len(up), ARROWS)
    u, v = u[np.ix_(i, j)], v[np.ix_(i, j)]
    longest = float(np.nanmax(np.hypot(u, v), initial=0.0)) or 1.0
    cell = min(np.ptp(across) / max(len(i) - 1, 1), np.ptp(up) / max(len(j) - 1, 1))
    ax.quiver(
        across[i], up[j], u.T, v.T, color=INK, angles="xy", scale_units="xy",
        scale=longest / cell, width=0.004, pivot="mid",
    )  # fmt: skip
    return _framed(data, ax)


def streamlines(data: Vectors, ax: Axes) -> Axes:
    """Streamlines, thicker where the flow is faster.

    Raises `ValueError` for a grid that is not uniform.
    """
    (_, across), (_, up), u, v = data
    for grid in (across, up):
        steps = np.diff(grid)
        if np.ptp(steps) > UNEVEN * abs(steps).max():
            raise ValueError("streamlines need a uniform grid")
    speed = np.hypot(u, v)
    width = 0.4 + 1.4 * speed / (float(np.nanmax(speed, initial=0.0)) or 1.0)
    ax.streamplot(
        across, up, u.T, v.T, color=INK, linewidth=width.T, arrowsize=0.7, density=1.1
    )
    return _framed(data, ax)


def planes(data: tuple[Axis, Axis, Axis, np.ndarray], ax: Axes3D) -> Axes3D:
    """The three middle planes of values over three coordinates, in a 3-D axis.

    **Arguments:**

    - `data`: three coordinates and the values [n, m, k].
    - `ax`: from `figure.add_subplot(projection="3d")`.
    """
    *axes, values = data
    names, grids = zip(*axes, strict=True)
    norm = value_norm(values)
    colors = ScalarMappable(norm, value_colors(norm))
    middle = [len(g) // 2 for g in grids]
    # In quarters, because the drawing sorts whole surfaces by their distance.
    halves = [(slice(0, m + 1), slice(m, None)) for m in middle]
    for normal in range(3):
        cuts = [h if k != normal else (slice(middle[k], middle[k] + 1),)
                for k, h in enumerate(halves)]  # fmt: skip
        for cut in itertools.product(*cuts):
            part = [g[c] for g, c in zip(grids, cut, strict=True)]
            mesh = [m.squeeze(normal) for m in np.meshgrid(*part, indexing="ij")]
            face = colors.to_rgba(values[cut].squeeze(normal)[:-1, :-1])
            ax.plot_surface(*mesh, facecolors=face, rstride=1, cstride=1, shade=False)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_major_locator(MaxNLocator(3))
    ax.set(xlabel=math(names[0]), ylabel=math(names[1]), zlabel=math(names[2]))
    figure = ax.get_figure()
    if figure is not None:
        figure.colorbar(colors, ax=ax, pad=0.12, shrink=0.7, aspect=22)
    return ax


def _some(count: int, most: int) -> np.ndarray:
    """Evenly spaced indices, at most so many."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _framed(data: Vectors, ax: Axes) -> Axes:
    (first, across), (second, up), _, _ = data
    ax.set(xlabel=math(first), ylabel=math(second))
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    if equal_scales(*data[:2]):
        ax.set_aspect("equal")
    tidy(ax)
    return ax
