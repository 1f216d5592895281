"""The result file: one HDF5 file per run that explains itself, written atomically."""

import datetime
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from pinnlab.atomic import check_writable, replacing
from pinnlab.errors import ProblemError
from pinnlab.report import report_json
from pinnlab.report_tables import (
    dataset,
    number,
    read_report,
    strings,
    subgroup,
    write_report,
)
from pinnlab.result import Result


FORMAT = "pinnlab"
VERSION = 1
RESERVED = ("solution", "model", "history", "report")
OWN = ("format", "version", "problem", "solver", "verdict", "rel_l2")
DAMAGE = (OSError, LookupError, RuntimeError, TypeError, ValueError, AttributeError)
"""What h5py raises where a file does not hold what it should."""
POINT = "point"
LARGEST_GRID = 3


def write_result(path: str | Path, result: Result, *, force: bool = False) -> Path:
    """Write a result so that `path` is never half a file.

    The file is written beside its final name, flushed to the disk and renamed. A file
    that is there already is first moved aside to `NAME.1.h5`, `NAME.2.h5`, ...

    **Arguments:**

    - `force`: overwrite an existing file instead.

    **Returns:** the path.

    Raises `ProblemError` where the folder cannot hold the file and `ValueError` for
    arrays that do not fit the axes.

    !!! example
        ```python
        write_result("burgers.h5", result)
        xarray.open_dataset("burgers.h5", engine="h5netcdf")["u"].plot()
        ```
    """
    path = Path(path)
    check_writable(path)
    _validate(result)
    # In memory first: the HDF5 library may crash where a disk is full.
    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        _write(file, result)
    with replacing(path, force=force) as draft:
        draft.write_bytes(content.getbuffer())
    return path


def read_result(path: str | Path) -> Result:
    """Read a result back, every array bit for bit.

    Raises `ProblemError` for a file that is missing, damaged, newer than this pinnlab
    or not a result.
    """
    with _opened(Path(path)) as file:
        return _read(file)


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    if not path.exists():
        raise ProblemError(f"{path}: no such file")
    if path.is_dir():
        raise ProblemError(f"{path}: is a folder, not a result file")
    try:
        if not h5py.is_hdf5(path):
            with path.open("rb"):  # A file that cannot be read at all says so.
                raise ProblemError(f"{path}: is not an HDF5 file")
        with h5py.File(path, "r", locking="best-effort") as file:
            _check_version(path, file)
            yield file
    except ProblemError:
        raise
    except BlockingIOError as error:
        raise ProblemError(f"{path}: another process is writing to it") from error
    except PermissionError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}") from error
    except DAMAGE as error:
        reason = str(error.args[0]) if error.args else type(error).__name__
        raise ProblemError(f"{path}: is damaged or cut short ({reason})") from error


def _check_version(path: Path, file: h5py.File) -> None:
    if _text(file.attrs.get("format")) != FORMAT:
        raise ProblemError(f"{path}: is not a pinnlab result file")
    version = int(number(file, "version"))
    if version > VERSION:
        raise ProblemError(
            f"{path}: has version {version} of the format; this pinnlab reads versions "
            f"up to {VERSION}: use a newer pinnlab"
        )


# ----------------------------------------------------------------------- the layout


def _write(file: h5py.File, result: Result) -> None:
    file.attrs["format"] = FORMAT
    file.attrs["version"] = VERSION
    file.attrs["problem"] = result.problem
    file.attrs["solver"] = result.solver
    file.attrs["verdict"] = result.report.verdict
    if result.report.rel_l2 is not None:
        file.attrs["rel_l2"] = result.report.rel_l2
    now = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
    for name, value in ({"created": now} | result.attributes).items():
        file.attrs[name] = value
    _write_grid(file, result)
    model = file.create_group("model", track_order=True)
    model.attrs["sha256"] = _digest(result.model)
    for name, array in result.model.items():
        model.create_dataset(name, data=array, track_order=True)
    history = file.create_group("history", track_order=True)
    for name, array in result.history.items():
        history[name] = array
    history.create_dataset(
        "stage", data=list(result.history_stage), dtype=h5py.string_dtype()
    )
    report = file.create_group("report", track_order=True)
    report["json"] = json.dumps(report_json(result.report), indent=2)
    write_report(report, result.report)


def _write_grid(file: h5py.File, result: Result) -> None:
    names = tuple(result.axes)
    cloud = len(names) > LARGEST_GRID
    if cloud:
        count = len(next(iter(result.axes.values())))
        index = file.create_dataset(POINT, data=np.arange(count))
        index.make_scale(POINT)
        index.attrs["coordinates"] = " ".join(names)
    for name, values in result.axes.items():
        axis = file.create_dataset(name, data=values)
        if cloud:
            axis.dims[0].attach_scale(file[POINT])
        else:
            axis.make_scale(name)
    for name, array in result.variables.items():
        dims = _dims(result, name)
        kept = tuple(d for d in dims if d is not None)
        shape = tuple(n for n, d in zip(array.shape, dims, strict=True) if d)
        variable = file.create_dataset(name, data=array.reshape(shape))
        for dim, scale in enumerate(kept):
            variable.dims[dim].attach_scale(file[scale])
        if cloud:  # The convention by which xarray knows coordinates.
            variable.attrs["coordinates"] = " ".join(names)
    for check in result.report.equations:
        name = f"residual_{check.name}"
        if name in result.variables:
            file[name].attrs["long_name"] = f"residual of {check.text}"


def _dims(result: Result, variable: str) -> tuple[str | None, ...]:
    """The dimension names; None where the variable does not depend on a coordinate."""
    sizes = {n: len(v) for n, v in result.axes.items()}
    if len(sizes) > LARGEST_GRID:
        sizes = {POINT: next(iter(sizes.values()))}
    shape = result.variables[variable].shape
    if len(shape) != len(sizes) or any(
        n not in (1, size) for n, size in zip(shape, sizes.values(), strict=True)
    ):
        raise ValueError(f"variable '{variable}' is {shape}, the grid is {sizes}")
    return tuple(
        name if n == size else None
        for n, (name, size) in zip(shape, sizes.items(), strict=True)
    )


def _validate(result: Result) -> None:
    """Complain about what cannot be written before anything is."""
    names = [*result.axes, *result.variables]
    for name in names:
        taken = name in RESERVED or names.count(name) > 1 or "/" in name or not name
        if taken or (name == POINT and len(result.axes) > LARGEST_GRID):
            raise ValueError(f"'{name}' cannot name a variable of a result file")
    for name in result.variables:
        _dims(result, name)
    for name in OWN:
        if name in result.attributes:
            raise ValueError(f"attribute '{name}' is written by pinnlab itself")


def _read(file: h5py.File) -> Result:
    attributes = {k: _plain(v) for k, v in file.attrs.items() if k not in OWN}
    datasets = {k: v for k, v in file.items() if isinstance(v, h5py.Dataset)}
    names = [k for k, v in datasets.items() if v.is_scale]
    cloud = "coordinates" in file[names[0]].attrs
    if cloud:
        names = _text(datasets.pop(POINT).attrs["coordinates"]).split()
    axes = {n: datasets.pop(n)[()] for n in names}
    model: dict[str, np.ndarray] = {}

    def collect(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset):
            model[name] = np.asarray(node[()])

    group = subgroup(file, "model")
    group.visititems(collect)
    if group.attrs.get("sha256", _digest(model)) != _digest(model):
        raise ProblemError(
            f"{file.filename}: damaged: the model's numbers have changed"
        )
    columns = subgroup(file, "history")
    names_in = [str(k) for k in columns if k != "stage"]
    history = {k: np.asarray(dataset(columns, k)[()]) for k in names_in}
    return Result(
        problem=_text(file.attrs["problem"]),
        solver=_text(file.attrs["solver"]),
        axes=axes,
        variables={n: _restored(d, names, cloud) for n, d in datasets.items()},
        model=model,
        history=history,
        history_stage=strings(dataset(columns, "stage")),
        report=read_report(subgroup(file, "report")),
        attributes=attributes,
    )


def _digest(model: Mapping[str, np.ndarray]) -> str:
    """A checksum of the model: a wrong number in it would go unnoticed."""
    total = hashlib.sha256()
    for name in sorted(model):
        array = np.ascontiguousarray(model[name])
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _restored(dataset: h5py.Dataset, names: list[str], cloud: bool) -> np.ndarray:
    """The array with size 1 in the coordinates that it does not depend on."""
    present = [d.keys()[0] for d in dataset.dims]
    wanted = [POINT] if cloud else names
    array = np.asarray(dataset[()])
    shape = iter(array.shape)
    return array.reshape([next(shape) if n in present else 1 for n in wanted])


def _plain(value: object) -> str | int | float:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, int | float) else _text(value)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
