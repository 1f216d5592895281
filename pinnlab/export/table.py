"""A result as a table: a column for each coordinate and variable, a row a point."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pinnlab.atomic import replacing
from pinnlab.hdf5 import LARGEST_GRID
from pinnlab.result import Result


def columns(result: Result) -> dict[str, np.ndarray]:
    """Coordinates and variables at every point of the grid, [points] each.

    The last coordinate runs fastest. What does not depend on a coordinate is repeated.
    """
    axes = list(result.axes.values())
    if len(axes) <= LARGEST_GRID:
        axes = np.meshgrid(*axes, indexing="ij")
    shape = axes[0].shape
    found = dict(zip(result.axes, (a.ravel() for a in axes), strict=True))
    for name, values in result.variables.items():
        found[name] = np.broadcast_to(values, shape).ravel()
    return found


def csv_text(columns: Mapping[str, np.ndarray]) -> str:
    """A CSV table whose numbers read back to the same bits (at most 17 digits)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    arrays = [np.asarray(c, float).tolist() for c in columns.values()]
    writer.writerows([repr(v) for v in row] for row in zip(*arrays, strict=True))
    return text.getvalue()


def write_csv(result: Result, path: Path, *, force: bool = False) -> None:
    """The grid of a result as a CSV table, a row for each point."""
    with replacing(path, force=force) as draft:
        draft.write_text(csv_text(columns(result)), encoding="utf-8", newline="")
