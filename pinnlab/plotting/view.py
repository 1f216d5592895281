"""What there is to see in a result: fields, truths, errors, residuals, slices."""

import tomllib
from dataclasses import dataclass

import numpy as np

from pinnlab.plotting.maps import Axis
from pinnlab.plotting.style import math
from pinnlab.result import MASK, Result


RESIDUAL = "residual_"
TRUTHS = ("_exact", "_reference")
SUFFIXES = (*TRUTHS, "_error_estimate", "_spread")


@dataclass(frozen=True)
class Quantity:
    """An array over those coordinates that it depends on, with its title.

    `kind` is "value", "error" or "residual".
    """

    name: str
    title: str
    kind: str
    axes: tuple[Axis, ...]
    values: np.ndarray
    truth: np.ndarray | None = None


def title_of(result: Result) -> str:
    """The title of the problem."""
    title = str(result.attributes.get("title", ""))
    if title or not result.problem:
        return title
    try:
        return str(tomllib.loads(result.problem).get("title", ""))
    except tomllib.TOMLDecodeError:
        return ""


def fields(result: Result) -> list[Quantity]:
    """Every field and output that varies, with its truth where one is known."""
    return [
        _quantity(result, n, math(n), "value", v, _truth(result, n))
        for n, v in result.variables.items()
        if not _derived(result, n) and n != MASK and v.size > 1
    ]


def error(result: Result, field: Quantity) -> Quantity | None:
    """The error of a field, None where no truth is known."""
    if field.truth is None:
        return None
    title = f"|error| of {field.title}"
    values = field.values - field.truth
    return Quantity(field.name, title, "error", field.axes, values)


def residuals(result: Result) -> list[Quantity]:
    """The residual of every equation."""
    return [
        _quantity(result, n, f"|residual| of {_words(n)}", "residual", v, None)
        for n, v in result.variables.items()
        if n.startswith(RESIDUAL)
    ]


def slices(quantity: Quantity) -> list[Quantity]:
    """Three planes of a quantity over three coordinates.

    With time they are its start, middle and end; without, the middle planes.
    """
    names = [n for n, _ in quantity.axes]
    if "t" in names:
        time = names.index("t")
        last = len(quantity.axes[time][1]) - 1
        return [_plane(quantity, time, i) for i in (0, last // 2, last)]
    return [_plane(quantity, i, len(quantity.axes[i][1]) // 2) for i in (2, 1, 0)]


def _plane(quantity: Quantity, axis: int, index: int) -> Quantity:
    name, grid = quantity.axes[axis]
    return Quantity(
        quantity.name,
        f"{quantity.title} at {math(name)} = {grid[index]:.3g}",
        quantity.kind,
        quantity.axes[:axis] + quantity.axes[axis + 1 :],
        np.take(quantity.values, index, axis),
    )


def _quantity(
    result: Result,
    name: str,
    title: str,
    kind: str,
    values: np.ndarray,
    truth: np.ndarray | None,
) -> Quantity:
    axes = tuple(result.axes.items())
    if values.ndim == len(axes):  # Not a cloud of points.
        axes = tuple(a for a, n in zip(axes, values.shape, strict=True) if n > 1)
        values = np.squeeze(values)
        truth = None if truth is None else np.squeeze(truth)
    return Quantity(name, title, kind, axes, values, truth)


def _derived(result: Result, name: str) -> bool:
    return name.startswith(RESIDUAL) or any(
        name.endswith(s) and name.removesuffix(s) in result.variables for s in SUFFIXES
    )


def _truth(result: Result, name: str) -> np.ndarray | None:
    for suffix in TRUTHS:
        if name + suffix in result.variables:
            return result.variables[name + suffix]
    return None


def _words(name: str) -> str:
    return name.removeprefix(RESIDUAL).replace("_", " ")
