"""One panel a function: `(data, ax) -> ax`, to be composed freely."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from pinnlab.plotting.maps import Axis
from pinnlab.plotting.style import COLORS, GRAY, math, tidy


WAYS = ("linear", "separable", "newton")
"""First words of the stages that are no training."""


def curves(
    data: tuple[Axis, Mapping[str, np.ndarray], Mapping[str, np.ndarray]],
    ax: Axes,
    *,
    log: bool = False,
) -> Axes:
    """Curves over one coordinate; the second mapping is drawn dashed, as the truth.

    **Arguments:**

    - `data`: `((coordinate, grid), {label: values}, {label: true values})`.
    - `log`: draw magnitudes on a logarithmic axis.
    """
    (name, grid), ours, truths = data
    for color, (label, values) in zip(_cycle(len(ours)), ours.items(), strict=True):
        shown = _magnitude(values) if log else values
        ax.plot(grid, shown, color=color, label=label, lw=1.2 if log else 2.0)
    for label, values in truths.items():
        ax.plot(grid, values, color="black", ls=(0, (4, 3)), lw=1.1, label=label)
    if log:
        log_axis(ax, [_magnitude(v) for v in ours.values()])
    ax.set_xlabel(math(name))
    ax.set_xlim(grid[0], grid[-1])
    if len(ours) + len(truths) > 1:
        ax.legend(loc="best", handlelength=2.2)
    tidy(ax)
    return ax


def parity(data: tuple[np.ndarray, np.ndarray], ax: Axes) -> Axes:
    """Our values against the true ones: `data` is `(truth, values)`."""
    truth, values = data
    ends = [np.nanmin(truth), np.nanmax(truth)]
    ax.plot(ends, ends, color=GRAY, lw=0.8, zorder=0)
    ax.plot(truth, values, ".", ms=2.5, color=COLORS[0], rasterized=True)
    ax.set_xlabel("truth")
    tidy(ax)
    return ax


def distribution(data: np.ndarray, ax: Axes) -> Axes:
    """A histogram of the sizes of the values."""
    sizes = np.abs(data[np.isfinite(data) & (data != 0)])
    ax.set_xscale("log")
    if sizes.size:
        low, high = np.quantile(sizes, 0.005), sizes.max()
        bins = np.geomspace(min(low, high / 10), high, 40)
        ax.hist(np.maximum(sizes, bins[0]), bins, color=COLORS[0], alpha=0.85)
    ax.set_ylabel("points")
    return ax


def history(data: tuple[Mapping[str, np.ndarray], Sequence[str]], ax: Axes) -> Axes:
    """Loss, held-out residual and error against the iterations, stage by stage.

    **Arguments:**

    - `data`: the columns of the history and the stage of each row.
    """
    columns, stages = data
    step = running(columns["step"])
    labels = {"loss": "loss", "heldout": "held-out residual", "error": "error"}
    shown = {
        k: np.asarray(columns[k], float)
        for k in labels
        if k in columns and np.isfinite(columns[k]).any()
    }
    for name, color in zip(labels, (GRAY, COLORS[0], COLORS[1]), strict=True):
        if name in shown:
            known = np.isfinite(shown[name])
            style = {"marker": ".", "ms": 4} if known.sum() < 40 else {}
            where = _breaks(np.asarray(stages)[known])
            ax.plot(
                np.insert(step[known], where, np.nan),
                np.insert(shown[name][known], where, np.nan),
                color=color,
                lw=1.4,
                label=labels[name],
                **style,
            )
    log_axis(ax, list(shown.values()), decades=1e-16)
    ax.set_xlabel("iteration")
    if len(step) and step[0] == step[-1]:
        ax.set_xlim(step[0] - 1, step[0] + 1)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.margins(x=0)
    tidy(ax)
    for i in range(1, len(stages)):
        if stages[i] != stages[i - 1]:
            ax.axvline(step[i], color=GRAY, lw=0.8, ls=":")
    ax.set_title(r" $\to$ ".join(dict.fromkeys(stages)))
    if shown:
        ax.legend(loc="best", handlelength=1.5)
    return ax


def _breaks(stages: np.ndarray) -> list[int]:
    """Where another way to solve begins: its numbers do not go on from those before."""
    words = [str(s).split(" ")[0] for s in stages]
    ways = [w if w in WAYS else "training" for w in words]
    return [i for i in range(1, len(ways)) if ways[i] != ways[i - 1]]


def running(step: np.ndarray) -> np.ndarray:
    """Iterations since the start, where each stage, or a try of it, counts from 0."""
    step = np.asarray(step, float)
    offset, found = 0.0, step.copy()
    for i in range(1, len(step)):
        if step[i] < step[i - 1]:
            offset = found[i - 1]
        found[i] = step[i] + offset
    return found


def log_axis(ax: Axes, arrays: Sequence[np.ndarray], *, decades: float = 1e-7) -> None:
    """A logarithmic vertical axis that a few zeros do not stretch."""
    positive = [a[np.isfinite(a) & (a > 0)] for a in arrays]
    positive = [a for a in positive if a.size]
    ax.set_yscale("log")
    if not positive:
        ax.set_ylim(1e-17, 1e-15)
        return
    high = max(float(a.max()) for a in positive)
    low = min(float(np.quantile(a, 0.01)) for a in positive)
    low = min(max(low, decades * high), high / 3)
    ax.set_ylim(low / 1.6, high * 1.8)
    few = high <= 100 * low
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=6))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y", color="#E6E6E6", lw=0.6)
    ax.set_axisbelow(True)


def log_across(ax: Axes) -> None:
    """A logarithmic horizontal axis with few plain numbers, for what is drawn."""
    ax.set_xscale("log")
    left, right = ax.get_xlim()
    ax.xaxis.set_major_locator(
        LogLocator(subs=(1, 2, 5) if right < 1e3 * left else (1,))
    )
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


# ----------------------------------------------------------------------------- parts


def _cycle(count: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(count)]


def _magnitude(values: np.ndarray) -> np.ndarray:
    size = np.abs(np.asarray(values, float))
    return np.where(size > 0, size, np.nan)
