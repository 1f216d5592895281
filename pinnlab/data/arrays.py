"""Named arrays put on the coordinates that they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pinnlab.errors import ProblemError, nearest


USUAL = ("t", "x", "y", "z", "r", "theta", "phi")
"""Names that are coordinates in a file that does not say what its coordinates are."""


@dataclass(frozen=True)
class Grid:
    """Real values on a product grid.

    - `axes`: each coordinate's increasing values.
    - `fields`: arrays over the axes in their order, of size 1 along those axes that
      the field does not depend on.
    """

    axes: dict[str, np.ndarray]
    fields: dict[str, np.ndarray]


@dataclass(frozen=True)
class Cloud:
    """Real values at scattered points: every array is [n]."""

    axes: dict[str, np.ndarray]
    fields: dict[str, np.ndarray]


@dataclass(frozen=True)
class Variable:
    """An array of a file with the names of its dimensions, where it has them."""

    values: np.ndarray
    dims: tuple[str, ...] | None = None


def real_columns(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of real numbers: a complex `h` becomes `h_real` and `h_imag`."""
    found: dict[str, np.ndarray] = {}
    for name, column in values.items():
        if np.iscomplexobj(column):
            found |= {f"{name}_real": np.real(column), f"{name}_imag": np.imag(column)}
        else:
            found[name] = column
    return found


def gridded(
    path: Path, variables: Mapping[str, Variable], names: tuple[str, ...]
) -> Grid | Cloud:
    axes = _axes(path, variables, names)
    fields = {k: v for k, v in variables.items() if k not in axes}
    lengths = {len(v) for v in axes.values()}
    flat = {k: np.ravel(v.values) for k, v in fields.items()}
    # Points in a list: every array is as long as every coordinate.
    if len(axes) > 1 and len(lengths) == 1 and not any(v.dims for v in fields.values()):
        size = lengths.pop()
        if flat and all(len(v) == size for v in flat.values()):
            return Cloud(axes, real_columns(flat))
    found: dict[str, np.ndarray] = {}
    for name, variable in fields.items():
        values = _placed(variable, axes)
        if values is not None:
            found[name] = values
    order = {k: np.argsort(v) for k, v in axes.items()}
    for name, values in found.items():
        for i, index in enumerate(order.values()):
            if values.shape[i] > 1:
                values = np.take(values, index, axis=i)
        found[name] = values
    ordered = {k: v[order[k]] for k, v in axes.items()}
    _check_axes(path, ordered)
    return Grid(ordered, real_columns(found))


def _axes(
    path: Path, variables: Mapping[str, Variable], names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """The coordinates: asked for, declared in the file, or the usual ones."""
    vectors = {
        k: np.ravel(v.values).astype(float)
        for k, v in variables.items()
        if np.size(v.values) == max(np.shape(v.values), default=0)
        and not np.iscomplexobj(v.values)
    }
    declared = [k for k, v in variables.items() if v.dims == (k,)]
    wanted = names or declared or [n for n in USUAL if n in vectors]
    missing = [n for n in wanted if n not in vectors]
    if missing or not wanted:
        name = missing[0] if missing else ""
        raise no_coordinate(path, name, list(variables))
    return {n: vectors[n] for n in wanted}


def _placed(variable: Variable, axes: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The array with one dimension for each axis; None if it is not on them."""
    values, names = variable.values, tuple(axes)
    dims = variable.dims
    if dims is None:
        values = np.squeeze(values)
        dims = _fitting(values.shape, {k: len(v) for k, v in axes.items()})
    if dims is None or not set(dims) <= set(names) or len(set(dims)) < len(dims):
        return None
    values = np.transpose(values, np.argsort([names.index(d) for d in dims]))
    shape = [len(axes[n]) if n in dims else 1 for n in names]
    return values.reshape(shape) if values.size == np.prod(shape) else None


def _fitting(
    shape: tuple[int, ...], lengths: Mapping[str, int]
) -> tuple[str, ...] | None:
    """Which coordinate runs along each dimension: in order, else in any order."""
    if not shape:
        return ()
    left = {k: n for k, n in lengths.items() if n > 1}
    if shape == tuple(left.values()):
        return tuple(left)
    dims: list[str] = []
    for size in shape:
        fits = [k for k, n in left.items() if n == size and k not in dims]
        if not fits:
            return None
        dims.append(fits[0])
    return tuple(dims)


def _check_axes(path: Path, axes: Mapping[str, np.ndarray]) -> None:
    for name, values in axes.items():
        if not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise ProblemError(
                f"{path}: the coordinate '{name}' repeats values or has gaps"
            )


def no_coordinate(path: Path, name: str, found: list[str]) -> ProblemError:
    listing = ", ".join(found) or "nothing"
    what = f"no coordinate '{name}'" if name else "no coordinates"
    hint = nearest(name, found) if name else "name them: --coordinates t,x"
    return ProblemError(f"{path}: {what} (found: {listing})", hint=hint)
