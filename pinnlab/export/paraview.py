"""A result for ParaView and other viewers of meshes: VTU and XDMF, by meshio."""

from pathlib import Path

import numpy as np

from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.export.extras import needed
from pinnlab.export.table import columns
from pinnlab.hdf5 import LARGEST_GRID
from pinnlab.result import Result


CELLS = {1: "line", 2: "quad", 3: "hexahedron"}
CORNERS = {
    1: ((0,), (1,)),
    2: ((0, 0), (1, 0), (1, 1), (0, 1)),
    3: (
        (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0),
        (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1),
    ),
}  # fmt: skip
"""The corners of a cell in VTK's order."""
TIME = "t"


def write_vtu(result: Result, path: Path, *, force: bool = False) -> None:
    """One mesh with every variable as point data.

    The coordinates are its directions, space first and time last, so that a result
    over t and x is a picture and one over t, x and y a block. Above three coordinates
    it holds points in space, and time is point data.
    """
    meshio = needed("meshio", "export")
    table = columns(result)
    data = {n: np.array(table[n]) for n in result.variables}
    if len(result.axes) <= LARGEST_GRID:
        names = _space_first(result)
        order = _order(result, names)
        data = {n: v[order] for n, v in data.items()}
        sizes = [len(result.axes[n]) for n in names]
        points = np.stack([table[n][order] for n in names], axis=1)
        cells = {CELLS[len(names)]: grid_cells(sizes)}
    else:
        space = [n for n in result.axes if n != TIME]
        if len(space) > 3:
            raise ProblemError(
                f"a mesh has three directions, not {len(space)} "
                f"({', '.join(space)}); csv and netcdf take any number"
            )
        data |= {n: table[n] for n in result.axes if n == TIME}
        points = np.stack([table[n] for n in space], axis=1)
        cells = {"vertex": np.arange(len(points))[:, None]}
    mesh = meshio.Mesh(padded(points), cells, point_data=data)
    with replacing(path, force=force) as draft:
        mesh.write(draft, file_format="vtu")


def write_xdmf(result: Result, path: Path, *, force: bool = False) -> None:
    """A mesh in space, and every variable at every time, in one file.

    A result without time is one step at time 0.
    """
    needed("meshio", "export")
    writer = needed("meshio.xdmf", "export").TimeSeriesWriter
    space = [n for n in result.axes if n != TIME]
    if len(result.axes) > LARGEST_GRID or not space:
        raise ProblemError(
            "XDMF needs a grid in one to three space coordinates; this result has "
            f"{', '.join(result.axes)}: use vtu, netcdf or csv"
        )
    mesh = np.meshgrid(*(result.axes[n] for n in space), indexing="ij")
    points = padded(np.stack([m.ravel() for m in mesh], axis=1))
    cells = {CELLS[len(space)]: grid_cells([len(result.axes[n]) for n in space])}
    times = result.axes.get(TIME, np.zeros(1))
    # XDMF has no small integers, as which the mask of a shape is kept.
    data = {n: _by_time(result, v).astype(float) for n, v in result.variables.items()}
    with (
        replacing(path, force=force) as draft,
        writer(draft, data_format="XML") as series,
    ):
        series.write_points_cells(points, cells)
        for step, time in enumerate(times):
            now = {n: v[step] for n, v in data.items()}
            series.write_data(float(time), point_data=now)


def grid_cells(sizes: list[int]) -> np.ndarray:
    """The cells of a grid whose last direction runs fastest, [cells, corners]."""
    numbers = np.arange(np.prod(sizes)).reshape(sizes)
    ends = [slice(0, -1), slice(1, None)]
    corners = [
        numbers[tuple(ends[side] for side in corner)].ravel()
        for corner in CORNERS[len(sizes)]
    ]
    return np.stack(corners, axis=1)


def padded(points: np.ndarray) -> np.ndarray:
    """The points with zeros as missing directions, [n, 3]."""
    missing = 3 - points.shape[1]
    return np.pad(points, ((0, 0), (0, missing)))


def _space_first(result: Result) -> list[str]:
    return sorted(result.axes, key=lambda n: n == TIME)


def _order(result: Result, names: list[str]) -> np.ndarray:
    """Where the points of the grid with these axes are in the result's order."""
    old = list(result.axes)
    sizes = [len(v) for v in result.axes.values()]
    numbers = np.arange(np.prod(sizes)).reshape(sizes)
    return np.transpose(numbers, [old.index(n) for n in names]).ravel()


def _by_time(result: Result, values: np.ndarray) -> np.ndarray:
    """A variable as [times, points in space]."""
    shape = tuple(len(v) for v in result.axes.values())
    full = np.broadcast_to(values, shape)
    if TIME not in result.axes:
        return full.reshape(1, -1)
    first = np.moveaxis(full, list(result.axes).index(TIME), 0)
    return first.reshape(len(first), -1)
