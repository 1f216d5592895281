"""Panels of color: values and magnitudes over two coordinates."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize, TwoSlopeNorm
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

from pinnlab.plotting.style import (
    DIVERGING,
    INK,
    LOGARITHMIC,
    SEQUENTIAL,
    math,
    tidy,
)


Axis = tuple[str, np.ndarray]
"""A coordinate's name and its grid."""

DECADES = 1e-4
SIGNED = 0.1
COARSE = 150


def signed_map(
    data: tuple[Axis, Axis, np.ndarray], ax: Axes, *, norm: Normalize | None = None
) -> Axes:
    """A color map of values over two coordinates, centered at 0 if they change sign.

    **Arguments:**

    - `data`: `((coordinate, grid), (coordinate, grid), values)`, values `[n, m]`; the
      first coordinate runs to the right.
    - `norm`: the color scale, for several maps that share one.
    """
    norm = norm or value_norm(data[2])
    color_bar(colored(data, ax, norm, value_colors(norm)), ax)
    return ax


def magnitude_map(
    data: tuple[Axis, Axis, np.ndarray],
    ax: Axes,
    *,
    norm: Normalize | None = None,
    cmap: str = LOGARITHMIC,
) -> Axes:
    """A color map of |values| over two coordinates with logarithmic colors."""
    across, up, values = data
    norm = norm or magnitude_norm(values)
    shown = np.clip(np.abs(values), norm.vmin, None)
    color_bar(colored((across, up, shown), ax, norm, cmap), ax)
    return ax


def cloud(data: tuple[Axis, Axis, np.ndarray], ax: Axes) -> Axes:
    """Values at scattered points over two of their coordinates."""
    (first, across), (second, up), values = data
    norm = value_norm(values)
    # The largest on top, where the eye looks for them.
    order = np.argsort(np.abs(values))
    points = ax.scatter(
        across[order],
        up[order],
        c=values[order],
        s=5,
        lw=0,
        norm=norm,
        cmap=value_colors(norm),
        rasterized=True,
    )
    ax.set(xlabel=math(first), ylabel=math(second))
    ax.margins(0.01)
    tidy(ax)
    color_bar(points, ax)
    return ax


def collocation_points(data: tuple[Axis, Axis], ax: Axes) -> Axes:
    """Points over two of their coordinates, to be drawn on a map.

    **Arguments:**

    - `data`: `((coordinate, values [n]), (coordinate, values [n]))`.
    """
    (first, across), (second, up) = data
    # White with a dark edge is seen on every color.
    ax.plot(across, up, "o", ms=2.4, mfc="white", mec=INK, mew=0.4, clip_on=False)
    ax.set(xlabel=math(first), ylabel=math(second))
    return ax


def equal_scales(across: Axis, up: Axis) -> float | None:
    """Height over width where both are lengths of similar size, otherwise None."""
    ratio = float(np.ptp(up[1]) / np.ptp(across[1]))
    return ratio if "t" not in (across[0], up[0]) and 0.4 < ratio < 2.5 else None


def value_norm(values: np.ndarray) -> Normalize:
    """Colors for values: symmetric about 0 where both signs matter."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    largest = max(-low, high)
    if low < 0 < high and min(-low, high) > SIGNED * largest:
        return TwoSlopeNorm(0.0, -largest, largest)
    if high - low <= 1e-12 * abs(largest):  # A constant needs some range.
        return Normalize(low - 0.5 * abs(low) - 1e-12, high + 0.5 * abs(high) + 1e-12)
    return Normalize(low, high)


def magnitude_norm(*arrays: np.ndarray) -> LogNorm:
    """Logarithmic colors over the largest decades of |values|."""
    parts = [np.abs(a[np.isfinite(a)]).ravel() for a in arrays]
    largest = max((p.max() for p in parts if p.size), default=0.0)
    if not largest > 0:
        return LogNorm(1e-16, 1e-15)
    everything = np.concatenate(parts)
    low = float(np.quantile(everything, 0.05))
    low = max(low, DECADES * largest)
    # Down to a power of ten, at least one and a half below: two ticks or more.
    return LogNorm(10.0 ** np.floor(np.log10(min(low, largest / 30))), largest)


def value_colors(norm: Normalize) -> str:
    """Colors from both sides of 0 where the scale has both."""
    return DIVERGING if isinstance(norm, TwoSlopeNorm) else SEQUENTIAL


def colored(
    data: tuple[Axis, Axis, np.ndarray], ax: Axes, norm: Normalize, cmap: str
) -> QuadMesh:
    """The colors of a map in its frame, without a color bar."""
    (first, across), (second, up), values = data
    coarse = max(values.shape) < COARSE and not isinstance(norm, LogNorm)
    smooth = coarse and np.isfinite(values).all()
    mesh = ax.pcolormesh(
        across,
        up,
        np.ma.masked_invalid(values.T),
        norm=norm,
        cmap=cmap,
        shading="gouraud" if smooth else "nearest",
        rasterized=True,
    )
    ax.set_facecolor("#EEEEEE")  # Points outside the shape.
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    ax.set(xlabel=math(first), ylabel=math(second))
    if equal_scales(*data[:2]):
        ax.set_aspect("equal")
    tidy(ax)
    ax.spines[:].set_visible(False)
    return mesh


def color_bar(mesh: ScalarMappable, ax: Axes) -> None:
    """The scale of the colors, beside the axis."""
    figure = ax.get_figure()
    if figure is None:
        return
    bar = figure.colorbar(mesh, ax=ax, pad=0.02, aspect=22)
    bar.outline.set_visible(False)
    if isinstance(mesh.norm, LogNorm):
        bar.ax.yaxis.set_minor_locator(NullLocator())
    else:
        bar.ax.yaxis.set_major_locator(MaxNLocator(5))
        numbers = ScalarFormatter(useMathText=True)
        numbers.set_powerlimits((-3, 4))
        bar.ax.yaxis.set_major_formatter(numbers)
