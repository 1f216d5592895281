"""What can be compared: results with their models, and data from other programs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import h5py

from pinnlab.data.arrays import Cloud, Grid
from pinnlab.data.files import read_data
from pinnlab.hdf5 import FORMAT, LARGEST_GRID, read_result
from pinnlab.result import MASK
from pinnlab.solution import Solution


@dataclass(frozen=True)
class Source:
    """One side of a comparison: a file's numbers, and its model if it has one."""

    name: str
    data: Grid | Cloud
    solution: Solution | None = None


def load_pair(
    a: str | Path, b: str | Path, coordinates: Iterable[str] = ()
) -> tuple[Source, Source]:
    """Both sides; a result says which names are coordinates in a data file."""
    names = tuple(coordinates)
    if not names and not _is_result(Path(a)) and _is_result(Path(b)):
        second = load_source(b)
        return load_source(a, second.data.axes), second
    first = load_source(a, names)
    return first, load_source(b, names or first.data.axes)


def load_source(path: str | Path, coordinates: Iterable[str] = ()) -> Source:
    """A result file with its model, or a data file.

    Raises `ProblemError` for a file that is neither.
    """
    path = Path(path)
    if not _is_result(path):
        return Source(str(path), read_data(path, coordinates))
    result = read_result(path)
    solution = Solution.load(path) if result.problem and result.model else None
    fields = {
        k: v for k, v in result.variables.items() if k[:9] != "residual_" and k != MASK
    }
    kind = Cloud if len(result.axes) > LARGEST_GRID else Grid
    return Source(str(path), kind(result.axes, fields), solution)


def _is_result(path: Path) -> bool:
    try:
        if not h5py.is_hdf5(path):
            return False
        with h5py.File(path, "r", locking="best-effort") as file:
            return file.attrs.get("format") == FORMAT
    except OSError:
        return False
