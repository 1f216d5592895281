"""Pictures of a sweep: errors over the axes with seed bands, and against the time."""

import dataclasses
import math
from collections.abc import Callable

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from pinnlab.plotting.panels import log_across
from pinnlab.plotting.style import COLORS, GRAY, INK, LOGARITHMIC, RC, VERDICTS
from pinnlab.plotting.style import math as symbol
from pinnlab.sweep.dataset import SEED, SPREAD, Dataset, seed_statistics
from pinnlab.sweep.design import DRAW
from pinnlab.sweep.scattered import (
    MOST_LETTERS,
    SPAN,
    against,
    parallel,
    settings_of,
    shortened,
)
from pinnlab.sweep.search import TRIAL


WIDTH, HEIGHT = 4.6, 3.4
MOST_LINES = len(COLORS)
MOST_TICKS = 8
MOST_NUMBERS = 36
"""Cells of a heat map that still have room for their numbers."""
MOST_LYING = 6
"""Columns of a heat map in which numbers lie; in narrower ones they stand."""
EITHER = "error_or_estimate"
LABELS = {
    EITHER: "relative $L^2$ error or estimate",
    "rel_l2": "relative $L^2$ error",
    "estimate": "estimated relative $L^2$ error",
    "residual": "held-out residual",
}


def sweep_figure(dataset: Dataset) -> Figure:
    """The default picture of a sweep: its `panels` with its title.

    !!! example
        ```python
        sweep_figure(read_dataset(Path("study/sweep.h5"))).savefig("study.png")
        ```
    """
    cells = panels(dataset)
    columns = min(3, len(cells))
    rows = math.ceil(len(cells) / columns)
    with matplotlib.rc_context(RC):
        size = WIDTH * columns, HEIGHT * rows + 0.4
        picture = Figure(figsize=size, layout="constrained")
        axes = picture.subplots(rows, columns, squeeze=False).ravel()
        for ax, draw in zip(axes, cells, strict=False):
            draw(ax)
        for ax in axes[len(cells) :]:
            ax.set_visible(False)
        picture.suptitle(dataset.title, x=0.01, ha="left")
    return picture


def panel_figures(dataset: Dataset) -> list[Figure]:
    """The `panels`, each as a picture of its own."""
    found = []
    for draw in panels(dataset):
        with matplotlib.rc_context(RC):
            picture = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
            draw(picture.subplots())
        found.append(picture)
    return found


def panels(dataset: Dataset) -> list[Callable[[Axes], Axes]]:
    """What draws each panel on given axes.

    One axis gives a line with a band over the seeds; two give a heat map and lines;
    more give parallel coordinates, a line for each and a heat map of the first two,
    medians over the rest.
    Runs that were drawn or searched give parallel coordinates, and the error against
    each setting. The last panel has error against time, and the runs that no other
    beats in both.
    """
    dataset, name = measure(dataset)
    dims = [d for d in dataset.dims if d != SEED]
    cells: list[Callable[[Axes], Axes]] = []
    if {DRAW, TRIAL} & set(dims):
        label = LABELS[name]
        cells.append(lambda ax: parallel(dataset, name, ax, label))
        for setting in settings_of(dataset):
            cells.append(lambda ax, n=setting: against(dataset, name, n, ax, label))
        dims = []
    elif len(dims) >= 2:
        cells.append(lambda ax: heat_map(dataset, name, dims[0], dims[1], ax))
    if len(dims) > 2:
        cells.append(lambda ax: parallel(dataset, name, ax, LABELS[name]))
    if len(dims) == 2:
        cells.append(lambda ax: lines(dataset, name, dims[0], ax, split=dims[1]))
    elif not cells or dims:
        cells += [lambda ax, d=d: lines(dataset, name, d, ax) for d in dims or [SEED]]
    return [*cells, lambda ax: pareto(dataset, name, ax)]


def measure(dataset: Dataset) -> tuple[Dataset, str]:
    """What is shown: errors, or their estimates, or else the held-out residuals.

    Where only some errors are known, the others are replaced by their estimates: a run
    whose truth could not be found is often one of the worst.

    **Returns:** the dataset with what is shown as a variable, and its name.
    """
    errors, estimates = (dataset.variables.get(n) for n in ("rel_l2", "estimate"))
    if errors is not None and estimates is not None and np.isfinite(errors).any():
        either = np.where(np.isfinite(errors), errors, estimates)
        if np.isfinite(either).sum() > np.isfinite(errors).sum():
            variables = {**dataset.variables, EITHER: either}
            return dataclasses.replace(dataset, variables=variables), EITHER
    known = (n for n in LABELS if np.isfinite(dataset.variables.get(n, np.nan)).any())
    return dataset, next(known, "residual")


def lines(
    dataset: Dataset, name: str, dim: str, ax: Axes, *, split: str | None = None
) -> Axes:
    """Medians along one axis with bands from the lower to the upper quartile.

    **Arguments:**

    - `split`: another axis, a line for each of its values; without it the quartiles
      are over everything else.
    """
    count = dataset.dims[split] if split else 1
    shown = np.unique(np.linspace(0, count - 1, min(count, MOST_LINES)).astype(int))
    places = _places(dataset, dim)
    for color, i in zip(COLORS, shown, strict=False):
        low, middle, high, _ = _along(dataset, name, dim, split, int(i))
        label = _labels(dataset, split)[i] if split else None
        if _numbers(dataset, dim) is None:
            # Nothing lies between two names.
            reach = [middle - low, high - middle]
            ax.errorbar(places, middle, reach, fmt="o", ms=5, color=color, label=label)
            continue
        ax.fill_between(places, low, high, color=color, alpha=0.2, lw=0)
        ax.plot(places, middle, "o-", ms=4, color=color, label=label)
    _across(ax, dataset, dim)
    ax.set_ylabel(LABELS[name])
    _log_up(ax, dataset.variables[name])
    if split:
        ax.legend(loc="best", title=_name(dataset, split))
    return ax


def heat_map(dataset: Dataset, name: str, first: str, second: str, ax: Axes) -> Axes:
    """Medians over everything else, a cell for each pair of values."""
    order = [first, second]
    values = _medians(dataset, name, order)
    known = values[np.isfinite(values) & (values > 0)]
    low, high = (known.min(), known.max()) if known.size else (1e-16, 1.0)
    norm = LogNorm(low, max(high, 10 * low))
    image = np.ma.masked_invalid(values.T)
    mesh = ax.pcolormesh(image, norm=norm, cmap=LOGARITHMIC, edgecolors="white", lw=0.5)
    ax.set_facecolor("#EEEEEE")  # Where there was no run.
    for axis, dim in ((ax.xaxis, first), (ax.yaxis, second)):
        labels = _labels(dataset, dim)
        step = math.ceil(len(labels) / MOST_TICKS)
        axis.set_ticks([i + 0.5 for i in range(0, len(labels), step)], labels[::step])
    _slant(ax)
    ax.spines[:].set_visible(False)
    names = (_name(dataset, dim) for dim in order)
    ax.set(title=LABELS[name], **dict(zip(("xlabel", "ylabel"), names, strict=True)))
    if values.size <= MOST_NUMBERS:
        _write_numbers(ax, values, norm)
    figure = ax.get_figure()
    if figure is not None:
        figure.colorbar(mesh, ax=ax, pad=0.02, aspect=22).outline.set_visible(False)
    return ax


def _write_numbers(ax: Axes, values: np.ndarray, norm: LogNorm) -> None:
    """The value of each cell in it, readable on its color."""
    turn = 90 if len(values) > MOST_LYING else 0
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "white" if norm(value) < 0.5 else INK
            ax.text(i + 0.5, j + 0.5, f"{value:.0e}", color=color, fontsize=7,
                    rotation=turn, ha="center", va="center")  # fmt: skip


def pareto(dataset: Dataset, name: str, ax: Axes) -> Axes:
    """Error against training time by verdict, and the front that no run is below."""
    errors = dataset.variables[name].ravel()
    seconds = dataset.variables["train_seconds"].ravel()
    verdicts = dataset.variables["verdict"].ravel()
    known = np.isfinite(errors) & np.isfinite(seconds) & (seconds > 0)
    for verdict, color in VERDICTS.items():
        chosen = known & np.array([str(v).startswith(verdict) for v in verdicts])
        if chosen.any():
            label = f"{verdict} ({chosen.sum()})"
            ax.plot(seconds[chosen], errors[chosen], "o", ms=4, color=color,
                    alpha=0.8, label=label)  # fmt: skip
    front = pareto_front(seconds[known], errors[known])
    ax.plot(*front, drawstyle="steps-post", color=GRAY, lw=1, zorder=0)
    ax.set(xlabel="training seconds", ylabel=LABELS[name])
    log_across(ax)
    _log_up(ax, errors)
    if known.any():
        ax.legend(loc="best")
    return ax


def pareto_front(
    seconds: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The runs that are better than every faster one, by time."""
    order = np.lexsort((errors, seconds))
    best = np.minimum.accumulate(errors[order])
    first = np.concatenate([[True], best[1:] < best[:-1]])[: len(order)]
    return seconds[order][first], errors[order][first]


def _along(
    dataset: Dataset, name: str, dim: str, split: str | None, index: int
) -> np.ndarray:
    """Quartiles, median and worst along an axis, [4, size]."""
    if split:
        statistics = seed_statistics(dataset, name)
        dims = [d for d in dataset.dims if d != SEED]
        parts = [statistics[part] for part in SPREAD]
        cut = [np.take(p, index, dims.index(split)) for p in parts]
        return np.array(cut)
    axis = list(dataset.dims).index(dim)
    values = np.moveaxis(dataset.variables[name], axis, 0)
    values = values.reshape(len(values), -1)
    found = np.full((4, len(values)), np.nan)
    for i, row in enumerate(values):
        row = row[np.isfinite(row)]
        if row.size:
            found[:, i] = *np.quantile(row, [0.25, 0.5, 0.75]), row.max()
    return found


def _medians(dataset: Dataset, name: str, order: list[str]) -> np.ndarray:
    """Medians of what is known over all axes but two, [first, second]."""
    axes = [list(dataset.dims).index(d) for d in order]
    values = np.moveaxis(dataset.variables[name], axes, [0, 1])
    values = values.reshape(*values.shape[:2], -1)
    known = np.any(np.isfinite(values), axis=-1)
    filled = np.where(known[..., None], values, 0.0)
    return np.where(known, np.nanmedian(filled, axis=-1), np.nan)


def _name(dataset: Dataset, dim: str) -> str:
    """An axis as pictures call it; a zipped group by the names of its settings."""
    found = [n for n, (over, _) in dataset.coordinates.items() if over == dim]
    return ", ".join(symbol(n) for n in found if n != dim) or symbol(dim)


def _labels(dataset: Dataset, dim: str | None) -> list[str]:
    """The values of an axis as texts; those of a zipped group together."""
    found = {n: v for n, (over, v) in dataset.coordinates.items() if over == dim}
    # A zipped group is numbered under its own name.
    columns = [v for n, v in found.items() if n != dim or len(found) == 1]
    texts = [", ".join(map(_text, row)) for row in zip(*columns, strict=True)]
    return list(map(shortened, texts))


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _numbers(dataset: Dataset, dim: str) -> np.ndarray | None:
    values = dataset.coordinates.get(dim, ("", np.array([], object)))[1]
    return None if values.dtype == object else values


def _places(dataset: Dataset, dim: str) -> np.ndarray:
    numbers = _numbers(dataset, dim)
    return np.arange(dataset.dims[dim]) if numbers is None else numbers


def _across(ax: Axes, dataset: Dataset, dim: str) -> None:
    """The axis to the right: logarithmic for wide ranges, few values as its ticks."""
    numbers, count = _numbers(dataset, dim), dataset.dims[dim]
    ax.set_xlabel(_name(dataset, dim))
    wide = numbers is not None and 0 < SPAN * numbers.min() <= numbers.max()
    if wide:
        log_across(ax)
    if numbers is None or (count <= MOST_TICKS and not wide):
        ax.set_xticks(_places(dataset, dim), _labels(dataset, dim))
        _slant(ax)


def _slant(ax: Axes) -> None:
    """Slanted names where they would run into each other."""
    names = [t.get_text() for t in ax.get_xticklabels()]
    longest = [max(map(len, n.splitlines()), default=0) for n in names]
    if sum(longest) > MOST_LETTERS:
        ax.tick_params("x", labelrotation=20)
        for text in ax.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")


def _log_up(ax: Axes, values: np.ndarray) -> None:
    if (values[np.isfinite(values)] > 0).any():
        ax.set_yscale("log")
