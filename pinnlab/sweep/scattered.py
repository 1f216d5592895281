"""Pictures of runs that were drawn or searched: errors against each setting."""

import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm

from pinnlab.plotting.style import COLORS, GRAY, LOGARITHMIC, math
from pinnlab.sweep.dataset import SEED, Dataset, seed_statistics


MOST_LETTERS = 24
"""Letters in a line of what stands beside an axis."""

SPAN = 20.0
"""Largest over smallest value from which an axis is logarithmic."""


@dataclass(frozen=True)
class _Column:
    """An upright axis: places from 0 to 1 for each run, and what its ticks say."""

    label: str
    places: np.ndarray
    ticks: dict[float, str]


def settings_of(dataset: Dataset) -> list[str]:
    """The names of what varies, without the seeds and the numbers of groups."""
    dims = [dim for dim, _ in dataset.coordinates.values()]
    return [
        n
        for n, (dim, _) in dataset.coordinates.items()
        if dim != SEED and (n != dim or dims.count(dim) == 1)
    ]


def parallel(dataset: Dataset, name: str, ax: Axes, label: str) -> Axes:
    """Parallel coordinates: a line for each run through its settings to its error.

    Lines are colored by the error, medians over the seeds, the best on top; axes are
    logarithmic where their values are wide (Inselberg, 1985).

    **Arguments:**

    - `label`: of the last axis, which has the error.
    """
    errors = _errors(dataset, name)
    known = np.isfinite(errors) & (errors > 0)
    columns = [
        _column(math(n), _spread(dataset, n)[known]) for n in settings_of(dataset)
    ]
    errors = errors[known]
    ax.set_ylim(-0.05, 1.05)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    if not errors.size:
        return ax
    columns.append(_column(label, errors))
    order = np.argsort(-errors)
    across = np.arange(len(columns))
    heights = np.stack([c.places for c in columns], axis=-1)
    lines = [np.column_stack([across, heights[i]]) for i in order]
    low, high = errors.min(), errors.max()
    collection = LineCollection(
        lines,
        cmap=LOGARITHMIC,
        norm=LogNorm(low, max(high, 10 * low)),
        linewidths=1.2,
        alpha=0.8,
    )
    collection.set_array(errors[order])
    ax.add_collection(collection)
    ax.set_xlim(-0.1, len(columns) - 0.6)
    ax.set_xticks(across, [c.label for c in columns])
    for i, column in enumerate(columns):
        ax.axvline(i, color=GRAY, lw=0.8, zorder=0)
        for height, text in column.ticks.items():
            ax.annotate(
                text, (i, height), (3, 0), textcoords="offset points", fontsize=7,
                va="center", bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1},
            )  # fmt: skip
    return ax


def against(dataset: Dataset, name: str, setting: str, ax: Axes, label: str) -> Axes:
    """The error of every run against one setting.

    **Arguments:**

    - `label`: of the upright axis.
    """
    values = _spread(dataset, setting)
    errors = _errors(dataset, name)
    ax.set(xlabel=math(setting), ylabel=label)
    if values.dtype == object:
        names = sorted(set(values))
        ax.set_xticks(range(len(names)), [shortened(n) for n in names])
        values = np.array([names.index(v) for v in values], float)
    elif _wide(values):
        ax.set_xscale("log")
    ax.plot(values, errors, "o", ms=4, color=COLORS[0], alpha=0.7)
    if (errors[np.isfinite(errors)] > 0).any():
        ax.set_yscale("log")
    return ax


def shortened(name: str) -> str:
    """A value's name on several lines where it is long, as that of a table is."""
    return textwrap.fill(name, MOST_LETTERS)


def _errors(dataset: Dataset, name: str) -> np.ndarray:
    return seed_statistics(dataset, name)["median"].ravel()


def _spread(dataset: Dataset, setting: str) -> np.ndarray:
    """The value of a setting for each run, in the order of `_errors`."""
    dim, values = dataset.coordinates[setting]
    shape = {d: n for d, n in dataset.dims.items() if d != SEED}
    places = np.indices(tuple(shape.values()))[list(shape).index(dim)]
    return values[places.ravel()]


def _column(label: str, values: np.ndarray) -> _Column:
    if values.dtype == object:
        names = sorted(set(values))
        steps = max(len(names) - 1, 1)
        heights = {n: i / steps for i, n in enumerate(names)}
        places = np.array([heights[v] for v in values])
        return _Column(label, places, {h: shortened(n) for n, h in heights.items()})
    low, high = values.min(), values.max()
    shown = np.log(values) if _wide(values) else values.astype(float)
    width = np.ptp(shown) or 1.0
    ticks = {0.0: f"{low:.4g}"} | ({1.0: f"{high:.4g}"} if high > low else {})
    return _Column(label, (shown - shown.min()) / width, ticks)


def _wide(values: np.ndarray) -> bool:
    return bool(0 < SPAN * values.min() <= values.max())
