"""Grids and tables of numbers from HDF5, netCDF, MATLAB and CSV files, by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import h5py
import numpy as np
import scipy.io
from scipy.io.matlab import MatReadError

from pinnlab.data.arrays import Cloud, Grid, Variable, gridded
from pinnlab.data.table import read_table
from pinnlab.errors import ProblemError


KINDS = "HDF5, netCDF, MATLAB (.mat), CSV"
TEXTS = (".csv", ".tsv", ".txt", ".dat")


def read_data(path: str | Path, coordinates: Iterable[str] = ()) -> Grid | Cloud:
    """The numbers of a data file.

    The kind is known from the content, a text's columns from its first line. Where a
    file does not name the dimensions of its arrays (MATLAB, plain HDF5), an array
    belongs to those coordinates whose lengths fit its shape, transposed if need be.

    **Arguments:**

    - `coordinates`: the names that are coordinates; of the usual ones if empty.

    Raises `ProblemError` for a file that cannot be read or holds no coordinates.
    """
    path = Path(path)
    names = tuple(coordinates)
    head = _head(path)
    if h5py.is_hdf5(path):
        return gridded(path, _hdf5(path), names)
    if head.startswith(b"CDF"):
        return gridded(path, _classic_netcdf(path), names)
    if path.suffix.lower() == ".mat":
        return gridded(path, _matlab(path), names)
    if path.suffix.lower() in TEXTS:
        return read_table(path, names)
    raise ProblemError(f"{path}: unknown kind of file (known: {KINDS})")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError as error:
        raise ProblemError(f"{path}: {error.strerror}") from error


# ------------------------------------------------------------------ kinds of files


def _hdf5(path: Path) -> dict[str, Variable]:
    """The datasets at the root; also of netCDF-4 and of MATLAB from version 7.3."""
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            found = {str(k): v for k, v in file.items() if isinstance(v, h5py.Dataset)}
            return {k: _dataset(k, v) for k, v in found.items() if _is_number(v.dtype)}
    except (OSError, RuntimeError, ValueError) as error:
        raise ProblemError(f"{path}: is damaged or cut short ({error})") from error


def _is_number(kind: np.dtype) -> bool:
    return np.issubdtype(kind, np.number) or kind.names == ("real", "imag")


def _dataset(name: str, data: h5py.Dataset) -> Variable:
    values = np.asarray(data[()])
    if values.dtype.names:  # MATLAB's complex numbers.
        values = values["real"] + 1j * values["imag"]
    facts = {str(k): np.asarray(v) for k, v in data.attrs.items()}
    values = _decoded(values, facts)
    if data.is_scale:
        return Variable(values, (name,))
    scales = [list(dim.values()) for dim in data.dims]
    if not values.ndim or not all(scales):
        return Variable(values)
    return Variable(values, tuple(str(s[0].name).split("/")[-1] for s in scales))


def _classic_netcdf(path: Path) -> dict[str, Variable]:
    try:
        with scipy.io.netcdf_file(path, "r", mmap=False) as file:
            return {
                name: Variable(
                    _decoded(
                        np.array(v.data).astype(v.data.dtype.newbyteorder("=")),
                        {k: np.asarray(a) for k, a in vars(v)["_attributes"].items()},
                    ),
                    tuple(v.dimensions),
                )
                for name, v in file.variables.items()
                if _is_number(v.data.dtype)
            }
    except (OSError, TypeError, ValueError, IndexError) as error:
        raise ProblemError(f"{path}: is damaged or cut short ({error})") from error


def _matlab(path: Path) -> dict[str, Variable]:
    try:
        found = scipy.io.loadmat(path)
    except (MatReadError, OSError, TypeError, ValueError, LookupError) as error:
        raise ProblemError(f"{path}: is not a MATLAB file ({error})") from error
    return {
        name: Variable(value)
        for name, value in found.items()
        if isinstance(value, np.ndarray) and _is_number(value.dtype)
    }


def _decoded(values: np.ndarray, facts: Mapping[str, np.ndarray]) -> np.ndarray:
    """Values by the conventions of netCDF: missing ones are NaN, packed ones scaled."""
    missing = [facts[k] for k in ("_FillValue", "missing_value") if k in facts]
    gaps = np.isin(values, np.concatenate([m.ravel() for m in missing] or [[]]))
    if "scale_factor" in facts or "add_offset" in facts:
        scale, offset = facts.get("scale_factor", 1.0), facts.get("add_offset", 0.0)
        values = values * np.ravel(scale)[0] + np.ravel(offset)[0]
    return np.where(gaps, np.nan, values) if gaps.any() else values
