"""Panels of amplitudes by wave number."""

from collections.abc import Mapping

import numpy as np
import scipy.fft
from matplotlib.axes import Axes

from pinnlab.plotting.maps import Axis
from pinnlab.plotting.panels import log_axis
from pinnlab.plotting.style import COLORS, math


def amplitudes(grid: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wave numbers (cycles per unit) and amplitudes of values on a uniform grid.

    Under a Hann window, so that ends that do not match are no spectrum of their own; a
    wave a cos(2 pi k x + b) of whole periods has the amplitude a at k, a/2 beside it.
    """
    window = np.hanning(len(grid))[:-1]
    found = np.asarray(scipy.fft.rfft(values[:-1] * window))
    sizes = 2 * np.abs(found) / window.sum()
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    return scipy.fft.rfftfreq(len(grid) - 1, step), sizes


def spectrum(data: tuple[Axis, Mapping[str, np.ndarray]], ax: Axes) -> Axes:
    """Amplitudes by wave number on logarithmic axes.

    **Arguments:**

    - `data`: `((coordinate, grid), {label: values})` on a uniform grid that includes
        both ends.
    """
    (name, grid), lines = data
    shown = []
    for i, (label, values) in enumerate(lines.items()):
        waves, sizes = amplitudes(grid, values)
        shown.append(sizes[1:])
        ax.plot(
            waves[1:], sizes[1:], color=COLORS[i % len(COLORS)], label=label, lw=1.4
        )
    ax.set_xscale("log")
    log_axis(ax, shown, decades=1e-16)
    ax.set_xlabel(f"wave number along {math(name)} (cycles per unit)")
    ax.set_ylabel("amplitude")
    if len(lines) > 1:
        ax.legend(loc="best", handlelength=1.5)
    return ax
