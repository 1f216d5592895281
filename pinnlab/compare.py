"""Two results, or a result and data from elsewhere, compared at common points."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from pinnlab.data.arrays import Cloud, Grid, real_columns
from pinnlab.data.interpolation import interpolate
from pinnlab.errors import ProblemError, nearest
from pinnlab.metrics import maximum_error, relative_l2
from pinnlab.sources import Source


SLACK = 1e-9
"""A part of a coordinate's range that is taken for rounding."""


@dataclass(frozen=True)
class FieldDifference:
    """How far one field of A is from B.

    - `rel_l2`: |A - B| / |B| over the points, absolute (RMS) where B is zero.
    - `maximum`: the largest |A - B|, and `where` it is, by coordinate.
    - `values`: those of A and of B, [n] each.
    """

    field: str
    rel_l2: float
    maximum: float
    where: dict[str, float]
    values: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Comparison:
    """The differences of A from B, field by field.

    - `axes`: the coordinates of the points, on a grid if `gridded`, else [n] each.
    - `notes`: what was left out or assumed.
    """

    names: tuple[str, str]
    axes: dict[str, np.ndarray]
    gridded: bool
    fields: tuple[FieldDifference, ...]
    notes: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of points."""
        return len(self.fields[0].values[0])


def compare(a: Source, b: Source, match: Mapping[str, str] | None = None) -> Comparison:
    """The differences of A from B at common points.

    Fields and coordinates are matched by name. The points are those of B where A can
    be evaluated anywhere (it has a model or is a grid, which is interpolated by cubic
    splines, linearly where values are missing); else those of A; and where both are
    scattered, the points that they share.

    **Arguments:**

    - `match`: names of A's fields that have another name in B.

    Raises `ProblemError` where no field, coordinate or point is common.

    !!! example
        ```python
        found = compare(*load_pair("burgers.h5", "measured.csv"))
        print(found.fields[0].rel_l2)
        ```
    """
    names = _coordinates(a, b)
    box = _overlap(a, b, names)
    pairs = _fields(a, b, match or {})
    if _anywhere(a) or _anywhere(b):
        origin = b if _anywhere(a) else a
        axes, rows = _inside(origin.data, names, box)
        points = _points(origin.data, axes)
        left = _total(origin.data) - len(points)
        first, second = (_values(s, names, points, rows, box) for s in (a, b))
        gridded = isinstance(origin.data, Grid)
    else:
        axes, first, second = _shared(a, b, names)
        points, gridded = np.stack(list(axes.values()), 1), False
        left = _total(b.data) - len(points)
    notes = [f"{left} points outside the common range were left out"] if left else []
    found: list[FieldDifference] = []
    for ours, theirs in pairs:
        values = np.ravel(first[ours]), np.ravel(second[theirs])
        found.append(_difference(ours, values, names, points, notes))
    return Comparison((a.name, b.name), axes, gridded, tuple(found), tuple(notes))


def _difference(
    field: str,
    values: tuple[np.ndarray, np.ndarray],
    names: tuple[str, ...],
    points: np.ndarray,
    notes: list[str],
) -> FieldDifference:
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    if not known.any():
        raise ProblemError(f"the field '{field}' has no finite values in common")
    if not known.all():
        notes.append(f"{field}: {np.sum(~known)} points without a value were left out")
    a, b = values[0][known], values[1][known]
    place = points[known][np.argmax(np.abs(a - b))]
    where = dict(zip(names, place.tolist(), strict=True))
    return FieldDifference(field, relative_l2(a, b), maximum_error(a, b), where, values)


# ---------------------------------------------------------------- what is in common


def _anywhere(source: Source) -> bool:
    return source.solution is not None or isinstance(source.data, Grid)


def _total(data: Grid | Cloud) -> int:
    sizes = [len(v) for v in data.axes.values()]
    return int(np.prod(sizes)) if isinstance(data, Grid) else sizes[0]


def _coordinates(a: Source, b: Source) -> tuple[str, ...]:
    for source, other in ((a, b), (b, a)):
        for name in other.data.axes:
            if name not in source.data.axes:
                listing = ", ".join(source.data.axes)
                raise ProblemError(
                    f"{source.name}: no coordinate '{name}', which {other.name} has "
                    f"(its coordinates: {listing})",
                    hint=nearest(name, source.data.axes),
                )
    return tuple(a.data.axes)


def _fields(
    a: Source, b: Source, match: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    first, second = _field_names(a), _field_names(b)
    for source, wanted, known in ((a, match, first), (b, match.values(), second)):
        for name in wanted:
            if name not in known:
                raise _no_field(source, name, known)
    pairs = tuple((n, match.get(n, n)) for n in first if match.get(n, n) in second)
    if not pairs:
        raise _no_field(b, first[0] if first else "", second, f" that {a.name} has")
    return pairs


def _no_field(
    source: Source, name: str, known: tuple[str, ...], whose: str = ""
) -> ProblemError:
    listing = ", ".join(known) or "none"
    return ProblemError(
        f"{source.name}: no field '{name}'{whose} (its fields: {listing})",
        hint=nearest(name, known) or "name the pairs: --match u=usol",
    )


def _field_names(source: Source) -> tuple[str, ...]:
    if source.solution is None:
        return tuple(source.data.fields)
    start = np.array([[axis.lower for axis in source.solution.problem.axes]])
    return tuple(real_columns(source.solution.values(start)))


def _range(source: Source, name: str) -> tuple[float, float]:
    if source.solution is not None:
        axis = source.solution.problem.axis(name)
        return axis.lower, axis.upper
    values = source.data.axes[name]
    return float(np.min(values)), float(np.max(values))


Box = dict[str, tuple[float, float]]


def _overlap(a: Source, b: Source, names: tuple[str, ...]) -> Box:
    box: Box = {}
    for name in names:
        first, second = _range(a, name), _range(b, name)
        low, high = max(first[0], second[0]), min(first[1], second[1])
        slack = SLACK * max(np.ptp(first), np.ptp(second))
        if not low <= high + slack:
            raise ProblemError(
                f"no common range of '{name}': {a.name} has [{first[0]:g}, "
                f"{first[1]:g}], {b.name} has [{second[0]:g}, {second[1]:g}]"
            )
        box[name] = low - slack, high + slack
    return box


# --------------------------------------------------------------- points and values

Rows = tuple[np.ndarray, ...]
"""Which values of each coordinate (of a grid) or which points (once) are taken."""


def _inside(
    data: Grid | Cloud, names: tuple[str, ...], box: Box
) -> tuple[dict[str, np.ndarray], Rows]:
    """The coordinates of the data's points inside the box."""
    keep = [(data.axes[n] >= box[n][0]) & (data.axes[n] <= box[n][1]) for n in names]
    if isinstance(data, Cloud):
        keep = [np.logical_and.reduce(keep)] * len(names)
    rows = tuple(np.flatnonzero(k) for k in keep)
    if not all(len(r) for r in rows):
        raise ProblemError("no point of the one lies in the range of the other")
    return {n: data.axes[n][r] for n, r in zip(names, rows, strict=True)}, rows


def _points(data: Grid | Cloud, axes: Mapping[str, np.ndarray]) -> np.ndarray:
    """[n, dim], the last coordinate of a grid running fastest."""
    columns = list(axes.values())
    if isinstance(data, Grid):
        columns = [m.ravel() for m in np.meshgrid(*columns, indexing="ij")]
    return np.stack(columns, axis=1)


def _values(
    source: Source, names: tuple[str, ...], points: np.ndarray, rows: Rows, box: Box
) -> dict[str, np.ndarray]:
    """All fields of a source at points in the box."""
    limits = np.array([_range(source, n) for n in names])
    points = np.clip(points, limits[:, 0], limits[:, 1])
    if source.solution is not None:
        own = [names.index(c) for c in source.solution.system.coordinates]
        return real_columns(source.solution.values(points[:, own]))
    if isinstance(source.data, Cloud):
        return {k: v[rows[0]] for k, v in source.data.fields.items()}
    grid = [source.data.axes[n] for n in names]
    order = [list(source.data.axes).index(n) for n in names]
    return {
        k: interpolate(grid, np.transpose(v, order), points)
        for k, v in source.data.fields.items()
    }


def _shared(
    a: Source, b: Source, names: tuple[str, ...]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Two clouds at the points that both have: coordinates, values of both."""
    columns = [np.stack([s.data.axes[n] for n in names], 1) for s in (a, b)]
    size = np.maximum(np.ptp(np.concatenate(columns), axis=0), 1e-300)
    near = KDTree(columns[0] / size).query(columns[1] / size)
    distance, found = (np.asarray(part) for part in near)
    there = distance <= SLACK
    if not there.any():
        raise ProblemError(
            f"{a.name} and {b.name} are scattered points, of which none are common: "
            "one of them must be a result or a grid"
        )
    first, second = found[there], np.flatnonzero(there)
    return (
        {n: b.data.axes[n][second] for n in names},
        {k: v[first] for k, v in a.data.fields.items()},
        {k: v[second] for k, v in b.data.fields.items()},
    )
