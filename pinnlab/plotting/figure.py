"""The default figure of a result, chosen by the number of its coordinates."""

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.plotting import maps, panels, view
from pinnlab.plotting.style import INK, RC, SEQUENTIAL, VERDICTS, scientific
from pinnlab.plotting.view import Quantity
from pinnlab.result import Result


Panel = Callable[[Axes], Axes]
Rows = list[list[Panel]]

WIDTH, HEIGHT, HEAD = 4.3, 3.0, 0.55
FRAME = 1.45, 0.8
"""What labels, title and color bar add to a map, across and up."""

MOST = 6
SIMILAR = 30.0


def figure(result: Result) -> Figure:
    """The default picture: solution, error, residual and history.

    Curves for one coordinate, color maps for two, planes for three, points above.

    !!! example
        ```python
        figure(read_result("burgers.h5")).savefig("burgers.png")
        ```
    """
    with matplotlib.rc_context(RC):
        dim = len(result.axes)
        kinds = {1: _curve_rows, 2: _map_rows, 3: _plane_rows}
        rows = kinds.get(dim, _cloud_rows)(result)
        return _compose(result, rows)


def glance(result: Result) -> Figure:
    """One small panel: the first field, or output, that varies."""
    with matplotlib.rc_context(RC):
        kinds = {1: _curve_rows, 2: _map_rows, 3: _plane_rows}
        first = kinds.get(len(result.axes), _cloud_rows)(result)[0][0]
        picture = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        first(picture.add_subplot())
        return picture


def save_figure(picture: Figure, path: str | Path, *, dpi: int = 160) -> Path:
    """Write a figure; the format is that of the name's end (png, pdf, svg, ...)."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    known = sorted(picture.canvas.get_supported_filetypes())
    if kind not in known:
        raise ProblemError(
            f"cannot write {path}: a figure's name ends in one of "
            + ", ".join(f".{k}" for k in known)
        )
    content = io.BytesIO()
    with matplotlib.rc_context(RC):
        picture.savefig(content, format=kind, dpi=dpi)
    with replacing(path, force=True) as draft:
        draft.write_bytes(content.getvalue())
    return path


# -------------------------------------------------------------- rows by dimension


def _curve_rows(result: Result) -> Rows:
    found = view.fields(result)
    together = [found] if _similar(found) else [[f] for f in found[:MOST]]
    cells: list[Panel] = [_values_panel(group) for group in together]
    errors = [e for f in found if (e := view.error(result, f)) is not None]
    for what, group in (("|error|", errors), ("|residual|", view.residuals(result))):
        if group:
            cells.append(_sizes_panel(what, group))
    return _wrapped([*cells, _history_panel(result)])


def _map_rows(result: Result) -> Rows:
    found, residual = view.fields(result)[:MOST], view.residuals(result)
    errors = [view.error(result, f) for f in found]
    if len(found) == 1:
        every = [*found, *(e for e in errors if e), *residual]
        return _wrapped([*map(_panel, every), _history_panel(result)])
    rows: Rows = []
    for i in range(max(len(found), len(residual))):
        row = [found[i], errors[i]] if i < len(found) else []
        row += residual[i : i + 1]
        rows.append([_panel(q) for q in row if q is not None])
    return _with_history(rows, result)


def _plane_rows(result: Result) -> Rows:
    rows: Rows = []
    found = view.fields(result)[: MOST // 2]
    for quantity in (*found, *view.residuals(result)[: MOST // 2]):
        wanted = [quantity, view.error(result, quantity)]
        for one in wanted:
            if one is not None and len(one.axes) == 3:
                planes = view.slices(one)
                norm = _norm(one.kind, *(p.values for p in planes))
                rows.append([_panel(p, norm) for p in planes])
            elif one is not None:
                rows.append([_panel(one)])
    return _with_history(rows, result)


def _cloud_rows(result: Result) -> Rows:
    residual = view.residuals(result)
    rows: Rows = []
    for i, field in enumerate(view.fields(result)[:MOST]):
        row = [_cloud_panel(field)]
        if field.truth is not None:
            row.append(_parity_panel(field, field.truth))
        row += [_spread_panel(r) for r in residual[i : i + 1]]
        rows.append(row)
    return _with_history(rows, result)


def _similar(found: list[Quantity]) -> bool:
    """Whether the fields can share one axis."""
    sizes = [np.nanmax(np.abs(f.values), initial=0.0) for f in found]
    return len(found) <= MOST and max(sizes) <= SIMILAR * min(sizes)


def _wrapped(cells: list[Panel]) -> Rows:
    columns = 2 if len(cells) in (2, 4) else 3
    return [cells[i : i + columns] for i in range(0, len(cells), columns)]


def _with_history(rows: Rows, result: Result) -> Rows:
    """The history in a free cell of the last row, or in a row of its own."""
    if rows and len(rows[-1]) < max(map(len, rows)):
        return [*rows[:-1], [*rows[-1], _history_panel(result)]]
    return [*rows, [_history_panel(result)]]


# ---------------------------------------------------------------------- the panels


def _panel(quantity: Quantity, norm: Normalize | None = None) -> Panel:
    """A map of a quantity of two coordinates, a curve of one."""
    size = quantity.kind != "value"
    if len(quantity.axes) != 2:
        return _sizes_panel("", [quantity]) if size else _values_panel([quantity])

    def draw(ax: Axes) -> Axes:
        first, second, values = *quantity.axes, quantity.values
        if second[0] == "t":  # Time runs to the right.
            first, second, values = second, first, values.T
        if size:
            cmap = {"cmap": SEQUENTIAL} if quantity.kind == "error" else {}
            maps.magnitude_map((first, second, values), ax, norm=norm, **cmap)
        else:
            maps.signed_map((first, second, values), ax, norm=norm)
        ax.set_title(quantity.title)
        return ax

    return draw


def _norm(kind: str, *arrays: np.ndarray) -> Normalize:
    if kind == "value":
        return maps.value_norm(np.concatenate([a.ravel() for a in arrays]))
    return maps.magnitude_norm(*arrays)


def _values_panel(group: list[Quantity]) -> Panel:
    def draw(ax: Axes) -> Axes:
        ours = {q.title: q.values for q in group}
        known = [q.truth for q in group if q.truth is not None]
        label = "exact" if len(known) == 1 else "exact "
        truths = {label if i == 0 else f"_{i}": v for i, v in enumerate(known)}
        panels.curves((group[0].axes[0], ours, truths), ax)
        ax.set_title(", ".join(q.title for q in group))
        return ax

    return draw


def _sizes_panel(what: str, group: list[Quantity]) -> Panel:
    def draw(ax: Axes) -> Axes:
        labels = [q.title.split(" of ", 1)[-1] for q in group]
        values = [q.values for q in group]
        ours = dict(zip(labels, values, strict=True))
        panels.curves((group[0].axes[0], ours, {}), ax, log=True)
        ax.set_title(what or group[0].title)
        return ax

    return draw


def _history_panel(result: Result) -> Panel:
    def draw(ax: Axes) -> Axes:
        panels.history((result.history, result.history_stage), ax)
        return ax

    return draw


def _cloud_panel(field: Quantity) -> Panel:
    def draw(ax: Axes) -> Axes:
        space = [a for a in field.axes if a[0] != "t"]
        maps.cloud((space[0], space[1], field.values), ax)
        ax.set_title(field.title)
        return ax

    return draw


def _parity_panel(field: Quantity, truth: np.ndarray) -> Panel:
    def draw(ax: Axes) -> Axes:
        panels.parity((truth, field.values), ax)
        ax.set(ylabel=field.title, title=f"{field.title} against the truth")
        return ax

    return draw


def _spread_panel(residual: Quantity) -> Panel:
    def draw(ax: Axes) -> Axes:
        panels.distribution(residual.values, ax)
        ax.set_title(residual.title)
        return ax

    return draw


# --------------------------------------------------------------------- the assembly


def _compose(result: Result, rows: Rows) -> Figure:
    columns = max(len(r) for r in rows)
    heights = [HEAD, *[HEIGHT] * len(rows)]
    if len(rows[-1]) == 1 < columns:  # The history alone, over the whole width.
        heights[-1] *= 0.75
    size = (_panel_width(result) * columns, sum(heights))
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.03)
    picture = Figure(figsize=size, layout=layout)
    grid = picture.add_gridspec(len(heights), columns, height_ratios=heights)
    _headline(result, picture.add_subplot(grid[0, :]))
    for i, row in enumerate(rows, 1):
        for j, panel in enumerate(row):
            last = j == len(row) - 1
            wide = last and len(row) < columns and i == len(rows)
            panel(picture.add_subplot(grid[i, j:] if wide else grid[i, j]))
    return picture


def _panel_width(result: Result) -> float:
    """Narrower where the maps have equal scales, so that they fill their cells."""
    ratios = [
        ratio
        for quantity in view.fields(result)[:1]
        if len(result.axes) in (2, 3) and len(quantity.axes) == len(result.axes)
        for one in (view.slices(quantity) if len(result.axes) == 3 else [quantity])
        if (ratio := maps.equal_scales(*one.axes)) is not None
    ]
    if not ratios:
        return WIDTH
    return min(max((HEIGHT - FRAME[1]) / min(ratios) + FRAME[0], 3.3), 5.5)


def _headline(result: Result, ax: Axes) -> None:
    """The title, and below it the verdict in its color with the error."""
    report = result.report
    ax.set_axis_off()
    where = {"transform": ax.transAxes, "va": "center", "ha": "left"}
    ax.text(
        0, 0.85, view.title_of(result) or "solution", fontsize=13.5, color=INK,
        weight="bold", **where,
    )  # fmt: skip
    color = VERDICTS.get(report.verdict.split(" ")[0], VERDICTS["fail"])
    line = report.verdict
    if report.rel_l2 is not None:
        against = report.fields[0].against
        line += f":  relative $L^2$ error {scientific(report.rel_l2)} ({against})"
    elif report.equations:
        worst = max(e.heldout for e in report.equations)
        line += f":  held-out residual {scientific(worst)} of the terms"
    ax.text(0, 0.2, line, fontsize=10.5, color=color, **where)
