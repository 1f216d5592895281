"""Scattered points from a text with a line of names."""

import csv
from pathlib import Path

import numpy as np

from pinnlab.data.arrays import USUAL, Cloud, no_coordinate
from pinnlab.errors import ProblemError


def read_table(path: Path, names: tuple[str, ...]) -> Cloud:
    """The columns of a text; those that are no numbers are left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            sample = file.readline()
            file.seek(0)
            rows = [r for r in csv.reader(file, delimiter=_delimiter(sample)) if r]
    except OSError as error:
        raise ProblemError(f"{path}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: is not a CSV file ({error})") from error
    header = [c.strip() for c in rows[0]] if rows else []
    repeated = [c for c in header if header.count(c) > 1]
    if repeated:
        raise ProblemError(f"{path}: there are two columns '{repeated[0]}'")
    if len(rows) < 2:
        raise ProblemError(f"{path}: has no rows of numbers below a line of names")
    for line, row in enumerate(rows, 1):
        if len(row) != len(header):
            message = f"row {line} has {len(row)} cells, the first has {len(header)}"
            raise ProblemError(f"{path}: {message}")
    cells = dict(zip(header, zip(*rows[1:], strict=True), strict=True))
    columns: dict[str, np.ndarray] = {}
    for name, column in cells.items():
        try:
            columns[name] = np.array([c or "nan" for c in column], float)
        except ValueError:
            continue
    wanted = names or tuple(n for n in USUAL if n in columns)
    missing = [n for n in wanted if n not in columns]
    if missing or not wanted:
        raise no_coordinate(path, missing[0] if missing else "", header)
    return Cloud(
        {n: columns[n] for n in wanted},
        {n: v for n, v in columns.items() if n not in wanted},
    )


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count) if any(c in line for c in ",;\t") else " "
