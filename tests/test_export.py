"""Results in other formats, read back by other programs."""

import subprocess
import sys
from pathlib import Path

import meshio
import numpy as np
import pytest
import pyvista
import scipy.io
import xarray
from synthetic import make_result
from typer.testing import CliRunner
from untrained import make_solution

from pinnlab.cli.main import app
from pinnlab.errors import ProblemError
from pinnlab.export import (
    extras,
    write_csv,
    write_mat,
    write_netcdf,
    write_vtu,
    write_xdmf,
)
from pinnlab.export.paraview import grid_cells
from pinnlab.hdf5 import write_result
from pinnlab.result import Result


RUNNER = CliRunner()
PENDULUM = """
title = "A pendulum on a cart"
coordinates = { t = [0, 1], x = [0, 2] }
fields = ["u", { name = "h", complex = true }]
[equations]
first = "dt(u) = dxx(u) - sin(u)"
second = "1j*dt(h) = dxx(h) + u*h"
[conditions]
start = { on = "t = 0", equation = ["u = cos(x)", "h = 1j*x + 1"] }
[outputs]
slope = "dx(u)"
[solver]
network = { width = 6, depth = 1 }
"""


def axes(**sizes: int) -> dict[str, np.ndarray]:
    """Axes of different ranges, so that a mix-up cannot go unnoticed."""
    return {n: np.linspace(i, 2 * i + 1, s) for i, (n, s) in enumerate(sizes.items())}


def cloud() -> Result:
    rng = np.random.default_rng(3)
    return make_result({n: rng.random(30) for n in "txyz"})


GRIDS = {
    "t": axes(t=7),
    "t, x": axes(t=4, x=5),
    "x, t": axes(x=5, t=4),
    "t, x, y": axes(t=3, x=4, y=5),
    "x, y, z": axes(x=3, y=4, z=5),
}
each_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS.keys())


def truth(result: Result, points: dict[str, np.ndarray]) -> np.ndarray:
    """The exact field of `make_result` at points."""
    phase = sum((2 + i) * points[n] / 2 for i, n in enumerate(result.axes))
    return np.sin(np.pi * phase)


# ------------------------------------------------------------------------- ParaView


@each_grid
def test_a_vtu_mesh_has_each_value_at_its_point(
    grid: dict[str, np.ndarray], tmp_path: Path
):
    result = make_result(grid)
    write_vtu(result, tmp_path / "run.vtu")
    names = sorted(grid, key=lambda n: n == "t")
    seen = pyvista.read(tmp_path / "run.vtu")
    mesh = meshio.read(tmp_path / "run.vtu")
    for points, values in (
        (np.asarray(seen.points), np.asarray(seen.point_data["u_exact"])),
        (np.asarray(mesh.points), np.asarray(mesh.point_data["u_exact"])),
    ):
        at = {n: points[:, i] for i, n in enumerate(names)}
        np.testing.assert_allclose(values, truth(result, at), atol=1e-12)
    assert not np.asarray(mesh.points)[:, len(names) :].any()


@each_grid
def test_the_cells_fill_the_domain(grid: dict[str, np.ndarray], tmp_path: Path):
    write_vtu(make_result(grid), tmp_path / "run.vtu")
    sizes = pyvista.read(tmp_path / "run.vtu").compute_cell_sizes()
    measure = ("Length", "Area", "Volume")[len(grid) - 1]
    parts = sizes.cell_data[measure]
    assert (parts > 0).all()  # A wrong order of corners gives negative volumes.
    assert parts.sum() == pytest.approx(np.prod([np.ptp(v) for v in grid.values()]))


def test_a_cell_has_its_corners_in_turn():
    np.testing.assert_array_equal(grid_cells([2, 3]), [[0, 3, 4, 1], [1, 4, 5, 2]])


def test_above_three_coordinates_a_mesh_holds_points(tmp_path: Path):
    result = cloud()
    write_vtu(result, tmp_path / "run.vtu")
    seen = pyvista.read(tmp_path / "run.vtu")
    at = {n: np.asarray(seen.points)[:, i] for i, n in enumerate("xyz")}
    at["t"] = np.asarray(seen.point_data["t"])
    np.testing.assert_allclose(seen.point_data["u_exact"], truth(result, at))
    with pytest.raises(ProblemError, match="grid in one to three space"):
        write_xdmf(result, tmp_path / "run.xdmf")
    wide = make_result({n: np.zeros(3) for n in "xyzw"})
    with pytest.raises(ProblemError, match="three directions, not 4"):
        write_vtu(wide, tmp_path / "wide.vtu")


@pytest.mark.parametrize("name", ["t, x", "x, t", "t, x, y", "x, y, z"])
def test_xdmf_is_a_series_in_time(name: str, tmp_path: Path):
    result = make_result(GRIDS[name])
    path = tmp_path / "run.xdmf"
    write_xdmf(result, path)
    assert list(tmp_path.iterdir()) == [path]  # Nothing beside it, so never run.h5.
    space = [n for n in result.axes if n != "t"]
    with meshio.xdmf.TimeSeriesReader(path) as series:
        points = np.asarray(series.read_points_cells()[0])
        assert series.num_steps == len(result.axes.get("t", [0]))
        for step in range(series.num_steps):
            time, data, _ = series.read_data(step)
            at = {n: points[:, i] for i, n in enumerate(space)}
            at["t"] = np.full(len(points), time)
            np.testing.assert_allclose(data["u_exact"], truth(result, at), atol=1e-12)
            if "t" in result.axes:
                assert time == result.axes["t"][step]


# --------------------------------------------------------- tables and arrays


def test_netcdf_follows_the_conventions(tmp_path: Path):
    result = make_result(GRIDS["t, x, y"])
    mean = {"mean": np.arange(3.0)[:, None, None]}
    result.variables.update(mean)
    write_netcdf(result, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as found:
        assert found.attrs["Conventions"].startswith("CF-1.")
        assert found.attrs["title"] == "A made-up problem"
        assert "pass" in found.attrs["comment"]
        assert [found[n].attrs["axis"] for n in "txy"] == ["T", "X", "Y"]
        assert found["u"].dims == ("t", "x", "y")
        assert found["mean"].dims == ("t",)
        assert found["u_exact"].attrs["long_name"] == "exact solution of u"
        for name, values in {**result.axes, **result.variables}.items():
            np.testing.assert_array_equal(found[name].values, np.squeeze(values))


def test_netcdf_above_three_coordinates_holds_points(tmp_path: Path):
    result = cloud()
    write_netcdf(result, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as found:
        assert found.attrs["featureType"] == "point"
        assert found["u"].dims == ("point",)
        assert set(found["u"].coords) == set("txyz")
        np.testing.assert_array_equal(found["u"].values, result.variables["u"])


def test_csv_has_a_row_for_each_point(tmp_path: Path):
    result = make_result(GRIDS["t, x"])
    result.variables["mean"] = np.arange(4.0)[:, None]
    write_csv(result, tmp_path / "run.csv")
    table = np.genfromtxt(tmp_path / "run.csv", delimiter=",", names=True)
    assert table.dtype.names is not None
    assert table.dtype.names[:2] == ("t", "x") and len(table) == 20
    at = {"t": table["t"], "x": table["x"]}
    np.testing.assert_allclose(table["u_exact"], truth(result, at), atol=1e-15)
    np.testing.assert_array_equal(table["mean"], np.repeat(np.arange(4.0), 5))
    assert np.array_equal(table["u"], result.variables["u"].ravel())


def test_matlab_arrays_have_the_same_bits(tmp_path: Path):
    result = make_result(GRIDS["t, x, y"])
    long = "residual_" + "a_long_name_" * 6
    result.variables[long] = np.ones((3, 1, 1))
    write_mat(result, tmp_path / "run.mat")
    found = scipy.io.loadmat(tmp_path / "run.mat")
    for name in ("u", "u_exact", "residual_u_balance"):
        np.testing.assert_array_equal(found[name], result.variables[name])
    np.testing.assert_array_equal(found["x"][:, 0], result.axes["x"])
    assert found[long[:63]].shape[0] == 3
    assert found["coordinates"][0] == "t,x,y"


# ---------------------------------------------------------------------- StableHLO

READER = """
import sys
import jax
import numpy as np
jax.config.update("jax_enable_x64", True)
with open(sys.argv[1], "rb") as file:
    program = jax.export.deserialize(bytearray(file.read()))
t, x = np.loadtxt(sys.argv[2]).T
found = dict(program.call(t=t, x=x))
slope = lambda x: program.call(t=t, x=x)["u"].sum()
found["gradient"] = jax.grad(slope)(x)
assert program.platforms == ("cpu", "cuda"), program.platforms
assert program.call(t=t[:3], x=x[:3])["u"].shape == (3,)
assert not [m for m in sys.modules if m.startswith(("pinnlab", "equinox"))]
np.savez(sys.argv[3], **found)
"""


def test_a_stablehlo_program_needs_jax_alone(tmp_path: Path):
    small = {"t": np.linspace(0, 1, 3), "x": np.linspace(0, 2, 4)}
    solution = make_solution(PENDULUM, small)
    run = solution.save(tmp_path / "run.h5")
    program = tmp_path / "run.stablehlo"
    arguments = ["export", str(run), "--to", "stablehlo", "-o", str(program)]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    points = np.random.default_rng(0).uniform(0, 1, (11, 2))
    np.savetxt(tmp_path / "points.txt", points)
    files = [program, tmp_path / "points.txt", tmp_path / "values.npz"]
    command = [sys.executable, "-I", "-c", READER, *map(str, files)]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=120)
    found, expected = np.load(files[2]), solution.values(points)
    for name in ("u", "slope"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
    h = found["h_real"] + 1j * found["h_imag"]
    np.testing.assert_allclose(h, expected["h"], rtol=1e-12)
    np.testing.assert_allclose(found["gradient"], expected["slope"], rtol=1e-11)


# ----------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("vtu", "run.vtu"),
        ("xdmf", "run.xdmf"),
        ("netcdf", "run.nc"),
        ("csv", "run.csv"),
        ("mat", "run.mat"),
    ],
)
def test_the_command_names_the_file_and_moves_an_old_one_aside(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    run = write_result(tmp_path / "run.h5", make_result(GRIDS["t, x"]))
    before = run.read_bytes()
    for _ in range(2):
        found = RUNNER.invoke(app, ["export", "run.h5", "--to", kind])
        assert found.exit_code == 0 and found.stderr.strip() == name
    stem, _, suffix = name.partition(".")
    files = {p.name for p in tmp_path.iterdir()}
    assert files == {"run.h5", name, f"{stem}.1.{suffix}"}
    assert run.read_bytes() == before


def test_a_missing_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named '{name}'")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extras, "import_module", missing)
    write_result(tmp_path / "run.h5", make_result(GRIDS["t, x"]))
    for kind, package in (("vtu", "meshio"), ("netcdf", "h5netcdf")):
        found = RUNNER.invoke(app, ["export", "run.h5", "--to", kind])
        assert found.exit_code == 2
        assert package in found.stderr and "pinnlab-jax[export]" in found.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
