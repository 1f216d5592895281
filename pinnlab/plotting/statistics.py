"""Panels of many solutions: bands over members, intervals, convergence."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from pinnlab.plotting.maps import Axis
from pinnlab.plotting.panels import log_axis
from pinnlab.plotting.style import COLORS, GRAY, math, tidy


INNER, OUTER = 0.5, 0.9
"""Shares of the members that the dark and the light part of a band hold."""

MOST_TICKS = 8


def band(
    data: tuple[Axis, np.ndarray, Mapping[str, np.ndarray]],
    ax: Axes,
    *,
    log: bool = False,
) -> Axes:
    """The median of an ensemble over one coordinate, in bands of its members.

    The dark band holds half of the members at each place, the light one nine tenths.
    It says how far members are apart, not how far they are from the truth.

    **Arguments:**

    - `data`: `((coordinate, grid [n]), members [count, n], {label: true values [n]})`.
    - `log`: draw magnitudes on a logarithmic axis.
    """
    (name, grid), members, truths = data
    shown = np.abs(members) if log else np.asarray(members)
    for share, alpha in ((OUTER, 0.18), (INNER, 0.35)):
        ends = np.quantile(shown, [(1 - share) / 2, (1 + share) / 2], axis=0)
        label = f"{share:.0%} of {len(shown)}"
        ax.fill_between(grid, *ends, color=COLORS[0], alpha=alpha, lw=0, label=label)
    middle = np.median(shown, axis=0)
    ax.plot(grid, middle, color=COLORS[0], lw=1.6, label="median")
    for label, values in truths.items():
        ax.plot(grid, values, color="black", ls=(0, (4, 3)), lw=1.1, label=label)
    if log:
        log_axis(ax, [shown])
    ax.set_xlabel(math(name))
    ax.set_xlim(grid[0], grid[-1])
    ax.legend(loc="best", handlelength=1.8)
    tidy(ax)
    return ax


def intervals(
    data: tuple[Mapping[str, tuple[float, float, float]], Mapping[str, float]], ax: Axes
) -> Axes:
    """Values with their intervals, one below the other; truths are black bars.

    **Arguments:**

    - `data`: `({label: (value, lower, upper)}, {label: true value})`.
    """
    found, truths = data
    for row, (label, (value, lower, upper)) in enumerate(found.items()):
        ax.plot([lower, upper], [row, row], color=COLORS[0], lw=2.2, alpha=0.5)
        ax.plot(value, row, "o", ms=5, color=COLORS[0])
        if label in truths:
            ax.plot(truths[label], row, "|", ms=16, mew=1.6, color="black", zorder=3)
    tidy(ax)
    ax.set_yticks(range(len(found)), list(found))
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.grid(axis="x", color="#E6E6E6", lw=0.6)
    ax.set_axisbelow(True)
    return ax


def convergence(
    data: tuple[Axis, Mapping[str, np.ndarray]],
    ax: Axes,
    *,
    orders: tuple[float, ...] = (),
) -> Axes:
    """Errors against a size on logarithmic axes.

    **Arguments:**

    - `data`: `((what is refined, sizes [n]), {label: errors})`, errors [n], or
        [n, runs], whose medians are joined and whose worst ends a thin line.
    - `orders`: slopes `size**-order`, drawn dashed from twice the first error.
    """
    (name, sizes), lines = data
    sizes = np.asarray(sizes, float)
    columns = {
        n: np.asarray(e, float).reshape(len(sizes), -1) for n, e in lines.items()
    }
    for i, (label, errors) in enumerate(columns.items()):
        color = COLORS[i % len(COLORS)]
        middle = np.median(errors, axis=1)
        ax.plot(sizes, middle, "o-", ms=4, color=color, label=label, lw=1.4)
        ax.vlines(sizes, middle, errors.max(axis=1), color=color, lw=0.9)
    start = 2 * np.median(next(iter(columns.values()))[0])
    for order, dashes in zip(orders, ((5, 2), (2, 2), (1, 2), (7, 2)), strict=False):
        slope = start * (sizes / sizes[0]) ** -order
        style = {"color": GRAY, "ls": (0, dashes), "lw": 1.0, "zorder": 0}
        ax.plot(sizes, slope, label=f"order {order:g}", **style)
    ax.set_xscale("log")
    shown = sizes[:: -(-len(sizes) // MOST_TICKS)]
    ax.set_xticks(shown, [f"{size:g}" for size in shown])
    ax.xaxis.set_minor_locator(NullLocator())
    log_axis(ax, list(columns.values()), decades=1e-16)
    ax.set(xlabel=name, ylabel="relative $L^2$ error")
    if len(lines) + len(orders) > 1:
        ax.legend(loc="best", handlelength=2.2)
    return ax
