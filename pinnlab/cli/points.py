"""Tables of points: read and checked against the domain."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pinnlab.errors import ProblemError, nearest


ROUNDING = 1e-12


def read_points(path: Path, ranges: Mapping[str, tuple[float, float]]) -> np.ndarray:
    """The points of a CSV file, `[n, dim]` in the order of `ranges`.

    The first line names the columns, in any order; other columns are ignored. Raises
    `ProblemError` with the line for what is missing, not a number or outside.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = [name.strip() for name in next(lines, [])]
            columns = _columns(path, header, tuple(ranges))
            points = [
                _point(f"{path}: line {lines.line_num}", cells, columns, ranges)
                for cells in lines
                if any(c.strip() for c in cells)
            ]
    except OSError as error:
        raise ProblemError(f"{path}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: is not a CSV file ({error})") from error
    if not points:
        raise ProblemError(f"{path}: has no points")
    return np.array(points, float)


def _columns(
    path: Path, header: Sequence[str], names: tuple[str, ...]
) -> dict[str, int]:
    wanted = ", ".join(names)
    for name in names:
        if header.count(name) > 1:
            raise ProblemError(f"{path}: there are two columns '{name}'")
        if name not in header:
            found = ", ".join(header) or "nothing"
            raise ProblemError(
                f"{path}: no column '{name}' (needed: {wanted}; found: {found})",
                hint=nearest(name, header),
            )
    return {name: header.index(name) for name in names}


def _point(
    place: str,
    cells: Sequence[str],
    columns: Mapping[str, int],
    ranges: Mapping[str, tuple[float, float]],
) -> list[float]:
    point: list[float] = []
    for name, column in columns.items():
        text = cells[column] if column < len(cells) else ""
        try:
            value = float(text)
        except ValueError:
            what = repr(text) if text.strip() else "nothing"
            message = f"{place}: {name} is {what}, expected a number"
            raise ProblemError(message) from None
        lower, upper = ranges[name]
        slack = ROUNDING * (upper - lower)
        if not lower - slack <= value <= upper + slack:
            raise ProblemError(
                f"{place}: {name} = {text.strip()} is outside the domain "
                f"[{lower:g}, {upper:g}]"
            )
        point.append(value)
    return point
