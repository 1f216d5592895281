"""A sweep as arrays over its axes: `sweep.h5`, for xarray and for pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.sweep.axes import Axis
from pinnlab.sweep.columns import short_names
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.values import Settings, label


FORMAT = "pinnlab sweep"
VERSION = 1
SEED = "seed"
SPREAD = ("q25", "median", "q75", "worst")
OVER_SEEDS = ("rel_l2", "estimate", "residual", "train_seconds")
"""Variables whose statistics over the seeds are in the file."""


@dataclass(frozen=True)
class Dataset:
    """Arrays over the axes of a sweep.

    - `dims`: names and sizes, in the order of the experiment.
    - `coordinates`: values by name, each along one dimension; a zipped group is one
      dimension with several.
    - `variables`: arrays over all dimensions; NaN and "" where there was no run.
    """

    title: str
    dims: dict[str, int]
    coordinates: dict[str, tuple[str, np.ndarray]]
    variables: dict[str, np.ndarray]


def make_dataset(
    plan: Plan, settings: Sequence[Settings], columns: Mapping[str, np.ndarray]
) -> Dataset:
    """Rows put in their places on the grid of the axes."""
    names = short_names(plan.axes)
    dims = {_dimension(a, names): len(a.values) for a in plan.axes}
    coordinates: dict[str, tuple[str, np.ndarray]] = {}
    for axis, dim in zip(plan.axes, dims, strict=True):
        for key, values in zip(axis.keys, zip(*axis.values, strict=True), strict=True):
            coordinates[names[key]] = dim, _values(values)
    places = [_place(plan.axes, s) for s in settings]
    index = tuple(np.array(places).T)
    variables = {}
    for name, column in columns.items():
        text = column.dtype == object
        grid = np.full(tuple(dims.values()), "" if text else np.nan, column.dtype)
        grid[index] = column
        variables[name] = grid
    return Dataset(plan.title, dims, coordinates, variables)


def seed_statistics(dataset: Dataset, name: str) -> dict[str, np.ndarray]:
    """Median, quartiles and worst of a variable over the seeds, unknown ones left out.

    Without an axis `seed` each is the variable itself.
    """
    values = dataset.variables[name]
    if SEED in dataset.dims:
        axis = list(dataset.dims).index(SEED)
        values = np.moveaxis(values, axis, 0)
    else:
        values = values[None]
    known = np.isfinite(values).any(axis=0)
    filled = np.where(known, values, 0.0)
    quartiles = np.nanquantile(filled, [0.25, 0.5, 0.75], axis=0)
    parts = dict(zip(SPREAD, (*quartiles, np.nanmax(filled, axis=0)), strict=True))
    return {k: np.where(known, v, np.nan) for k, v in parts.items()}


def write_dataset(path: Path, dataset: Dataset) -> None:
    """Write `sweep.h5`: `xarray.open_dataset(path, engine="h5netcdf")` reads it."""
    with (
        replacing(path, force=True) as draft,
        h5py.File(draft, "w", track_order=True) as file,
    ):
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        file.attrs["title"] = dataset.title
        _write(file, dataset)


def read_dataset(path: Path) -> Dataset:
    """Read `sweep.h5` back, without the statistics.

    Raises `ProblemError` where the file is none.
    """
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            if file.attrs.get("format") != FORMAT:
                raise ProblemError(f"{path}: is not the table of a sweep (sweep.h5)")
            return _read(file)
    except FileNotFoundError:
        raise ProblemError(f"{path}: no such file") from None
    except (OSError, KeyError) as error:
        raise ProblemError(f"{path}: is damaged ({error})") from error


def is_dataset(path: Path) -> bool:
    """Whether a file is the table of a sweep."""
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            return file.attrs.get("format") == FORMAT
    except OSError:
        return False


def _dimension(axis: Axis, names: Mapping[str, str]) -> str:
    return axis.name or "_".join(names[key] for key in axis.keys)


def _place(axes: tuple[Axis, ...], settings: Settings) -> tuple[int, ...]:
    return tuple(a.values.index(tuple(settings[k] for k in a.keys)) for a in axes)


def _values(values: tuple) -> np.ndarray:
    """Numbers as numbers; anything else as its label."""
    plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return np.array(values) if plain else np.array([label(v) for v in values], object)


def _write(file: h5py.File, dataset: Dataset) -> None:
    for dim, size in dataset.dims.items():
        values = dataset.coordinates.get(dim, (dim, np.arange(size)))[1]
        _create(file, dim, values).make_scale(dim)
    for name, (dim, values) in dataset.coordinates.items():
        if name not in dataset.dims:
            _write_variable(file, name, values, [dim])
    for name, values in dataset.variables.items():
        _write_variable(file, name, values, list(dataset.dims))
    if SEED in dataset.dims:
        rest = [d for d in dataset.dims if d != SEED]
        for name in OVER_SEEDS:
            for part, values in seed_statistics(dataset, name).items():
                _write_variable(file, f"{name}_{part}", values, rest)
    # The convention by which xarray knows the coordinates of a zipped group.
    zipped = [n for n in dataset.coordinates if n not in dataset.dims]
    if zipped:
        file.attrs["coordinates"] = " ".join(zipped)


def _write_variable(
    file: h5py.File, name: str, values: np.ndarray, dims: Sequence[str]
) -> None:
    variable = _create(file, name, values)
    for i, dim in enumerate(dims):
        variable.dims[i].attach_scale(file[dim])


def _create(file: h5py.File, name: str, values: np.ndarray) -> h5py.Dataset:
    dtype = h5py.string_dtype() if values.dtype == object else values.dtype
    return file.create_dataset(name, data=values, dtype=dtype)


def _read(file: h5py.File) -> Dataset:
    found = {n: d for n, d in file.items() if isinstance(d, h5py.Dataset)}
    over = {
        n: [s.keys()[0] for s in d.dims] for n, d in found.items() if not d.is_scale
    }
    scales = [n for n, d in found.items() if d.is_scale]
    zipped = str(file.attrs.get("coordinates", "")).split()
    coordinates = {n: (n, _array(found[n])) for n in scales}
    coordinates |= {n: (over[n][0], _array(found[n])) for n in zipped}
    variables = {
        n: _array(found[n])
        for n, dims in over.items()
        if dims == scales and n not in zipped
    }
    dims = {n: len(found[n]) for n in scales}
    return Dataset(str(file.attrs["title"]), dims, coordinates, variables)


def _array(data: h5py.Dataset) -> np.ndarray:
    text = h5py.check_string_dtype(data.dtype)
    return np.asarray(data.asstr()[()] if text else data[()])
