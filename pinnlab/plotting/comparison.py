"""The picture of a comparison: A, B and their difference, a row for each field."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pinnlab.compare import Comparison, FieldDifference
from pinnlab.plotting import maps, panels
from pinnlab.plotting.figure import HEIGHT, WIDTH
from pinnlab.plotting.maps import Axis
from pinnlab.plotting.style import RC, math, scientific
from pinnlab.plotting.view import Quantity, slices


MOST_FIELDS = 6


def comparison_figure(found: Comparison) -> Figure:
    """Curves over one coordinate, color maps over two, planes over three.

    Points that are on no grid are drawn as they are, over two of their coordinates.
    """
    with matplotlib.rc_context(RC):
        rows = [row for f in found.fields[:MOST_FIELDS] for row in _rows(found, f)]
        columns = 2 if len(found.axes) == 1 else 3
        size = WIDTH * columns, HEIGHT * len(rows)
        picture = Figure(figsize=size, layout="constrained")
        grid = picture.subplots(len(rows), columns, squeeze=False)
        for axes, (draw, arguments) in zip(grid, rows, strict=True):
            draw(axes, *arguments)
        return picture


def _rows(found: Comparison, field: FieldDifference) -> list:
    a, b = field.values
    axes = list(found.axes.items())
    if len(axes) == 1:
        return [(_curves, (axes[0], field))]
    if not found.gridded:
        kept = [x for x in axes if x[0] != "t" or len(axes) == 2][:2]
        return [(_clouds, (kept, field))]
    varying = tuple(x for x in axes if len(x[1]) > 1)
    shape = [len(values) for _, values in varying]
    if len(varying) == 1:
        return [(_curves, (varying[0], field))]
    both = [
        Quantity(field.field, math(field.field), "value", varying, v.reshape(shape))
        for v in (a, b)
    ]
    if len(varying) == 3:
        return [(_maps, pair) for pair in zip(*map(slices, both), strict=True)]
    return [(_maps, tuple(both))]


def _curves(axes: np.ndarray, axis: Axis, field: FieldDifference) -> None:
    order = np.argsort(axis[1])
    line = axis[0], axis[1][order]
    a, b = (v[order] for v in field.values)
    name = math(field.field)
    panels.curves((line, {"A": a}, {"B": b}), axes[0]).set_title(name)
    panels.curves((line, {"A - B": a - b}, {}), axes[1])
    axes[1].set_title(_heading(field))


def _clouds(axes: np.ndarray, over: list[Axis], field: FieldDifference) -> None:
    a, b = field.values
    titles = (f"A: {math(field.field)}", f"B: {math(field.field)}", _heading(field))
    for ax, values, title in zip(axes, (a, b, a - b), titles, strict=True):
        maps.cloud((over[0], over[1], values), ax).set_title(title)


def _maps(axes: np.ndarray, a: Quantity, b: Quantity) -> None:
    first, second = a.axes
    norm = maps.value_norm(np.concatenate([a.values.ravel(), b.values.ravel()]))
    parts = (
        (f"A: {a.title}", a.values, norm),
        (f"B: {b.title}", b.values, norm),
        (f"A - B: {a.title}", a.values - b.values, None),
    )
    for ax, (title, values, colors) in zip(axes, parts, strict=True):
        data = (first, second, values)
        if second[0] == "t":  # Time runs to the right.
            data = (second, first, values.T)
        maps.signed_map(data, ax, norm=colors).set_title(title)


def _heading(field: FieldDifference) -> str:
    return f"A - B, relative $L^2$ {scientific(field.rel_l2)}"
