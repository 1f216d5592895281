"""A data file that holds the solution: `[reference] file = "..."`."""

from pathlib import Path

import h5py
import numpy as np

from pinnlab.data.arrays import Cloud, Grid
from pinnlab.data.files import read_data
from pinnlab.data.interpolation import interpolate
from pinnlab.errors import ProblemError, located, nearest
from pinnlab.metrics import relative_l2
from pinnlab.system.system import System
from pinnlab.verify.against import Truth
from pinnlab.verify.findings import Findings


STATED = "reference_error"
"""The attribute of an HDF5 file that states its own relative L2 error."""
FEWEST = 10


def bad_reference_file(system: System) -> Findings:
    """An error where the file cannot judge this problem."""
    if not system.problem.reference.file:
        return Findings()
    try:
        _read(system)
    except ProblemError as error:
        return Findings(errors=(str(error),))
    return Findings()


def file_truth(system: System, grid: np.ndarray) -> Truth | None:
    """The solution in the problem's reference file, if it names one.

    Values on a grid are interpolated to the result's grid, [m, dim], and missing beyond
    the file's; scattered ones stay at their points. Its own error is what the file
    states plus the error of the interpolation.

    Raises `ProblemError` for a file that cannot be read or does not fit.
    """
    if not system.problem.reference.file:
        return None
    data = _read(system)
    path = system.problem.reference.file
    stated = _stated_error(path)
    names = [f for f in system.fields if f in data.fields]
    if isinstance(data, Cloud):
        points = np.stack([data.axes[n] for n in system.coordinates], axis=1)
        inside = _inside(system, points)
        values = {f: data.fields[f][inside] for f in names}
        return Truth("reference", values, dict.fromkeys(names, stated), points[inside])
    values = {f: _on_grid(data, f, system.coordinates, grid) for f in names}
    own = {f: stated + _coarseness(data, f, system.coordinates) for f in names}
    return Truth("reference", values, own)


def _read(system: System) -> Grid | Cloud:
    with located(key="reference.file"):
        path = system.problem.reference.file
        data = read_data(path, system.coordinates)
        if not any(f in data.fields for f in system.fields):
            listing = ", ".join(data.fields)
            raise ProblemError(
                f"{path}: holds none of the fields {', '.join(system.fields)} "
                f"(it has: {listing})",
                hint=nearest(system.fields[0], data.fields),
            )
        points = np.stack(np.meshgrid(*data.axes.values()), -1)
        if isinstance(data, Cloud):
            points = np.stack([data.axes[n] for n in system.coordinates], axis=1)
        if _inside(system, points.reshape(-1, len(data.axes))).sum() < FEWEST:
            raise ProblemError(
                f"{path}: fewer than {FEWEST} of its points are in the problem's domain"
            )
        return data


def _inside(system: System, points: np.ndarray) -> np.ndarray:
    lower = np.array([a.lower for a in system.problem.axes])
    upper = np.array([a.upper for a in system.problem.axes])
    slack = 1e-9 * (upper - lower)
    return np.all((points >= lower - slack) & (points <= upper + slack), axis=1)


def _on_grid(
    data: Grid, field: str, names: tuple[str, ...], points: np.ndarray
) -> np.ndarray:
    axes = [data.axes[n] for n in names]
    lower = np.array([a[0] for a in axes])
    upper = np.array([a[-1] for a in axes])
    slack = 1e-9 * (upper - lower)
    known = ((points >= lower - slack) & (points <= upper + slack)).all(axis=1)
    found = np.full(len(points), np.nan)
    inside = np.clip(points[known], lower, upper)
    found[known] = interpolate(axes, data.fields[field], inside)
    return found


def _coarseness(data: Grid, field: str, names: tuple[str, ...]) -> float:
    """The error of the interpolation: that from every second point, over 2^4."""
    axes = [data.axes[n] for n in names]
    values = data.fields[field]
    worst = 0.0
    for i, axis in enumerate(axes):
        if len(axis) < 5 or values.shape[i] == 1:
            continue
        last = len(axis) - (len(axis) + 1) % 2
        used = np.take(values, np.arange(last), axis=i)
        half = np.take(used, np.arange(0, last, 2), axis=i)
        lines = np.moveaxis(half, i, -1).reshape(-1, half.shape[i])
        between = np.array(
            [interpolate([axis[:last:2]], v, axis[:last, None]) for v in lines]
        )
        full = np.moveaxis(used, i, -1).reshape(between.shape)
        known = np.isfinite(between) & np.isfinite(full)
        worst = max(worst, relative_l2(between[known], full[known]) / 16)
    return worst


def _stated_error(path: str) -> float:
    if not h5py.is_hdf5(path):
        return 0.0
    with h5py.File(Path(path), "r", locking="best-effort") as file:
        stated = np.asarray(file.attrs.get(STATED, 0.0))
    return float(stated) if stated.shape == () and stated.dtype.kind == "f" else 0.0
