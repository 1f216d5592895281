"""Comparing results and data files whose difference is known."""

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from synthetic import make_result
from typer.testing import CliRunner

from pinnlab import loads_problem, solve
from pinnlab.cli.main import app
from pinnlab.compare import compare
from pinnlab.data.arrays import Cloud, Grid
from pinnlab.data.files import read_data
from pinnlab.data.interpolation import interpolate
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import write_result
from pinnlab.sources import Source, load_pair


RUNNER = CliRunner()
T, X = np.linspace(0, 1, 31), np.linspace(-1, 1, 41)


def wave(t, x):
    return np.sin(2 * t + 3 * x)


def grid(function=wave, t=T, x=X):
    values = function(t[:, None], x[None, :])
    return Source("grid", Grid({"t": t, "x": x}, {"u": values}))


def cloud(function=wave, count=50):
    rng = np.random.default_rng(0)
    t, x = rng.uniform(0, 1, count), rng.uniform(-1, 1, count)
    return Source("cloud", Cloud({"t": t, "x": x}, {"u": function(t, x)}))


def test_a_known_factor_and_a_known_place():
    def bumped(t, x):
        return 1.01 * wave(t, x) + 0.5 * (np.abs(t - 0.5) + np.abs(x - 0.5) < 1e-9)

    (found,) = compare(grid(lambda t, x: 1.01 * wave(t, x)), grid()).fields
    assert found.rel_l2 == pytest.approx(0.01, rel=1e-9)
    (found,) = compare(grid(bumped), grid()).fields
    assert found.where == pytest.approx({"t": 0.5, "x": 0.5})
    assert found.maximum == pytest.approx(0.5 + 0.01 * wave(0.5, 0.5), rel=1e-9)


@pytest.mark.parametrize("swap", [False, True])
def test_a_grid_is_interpolated_at_scattered_points(swap: bool):
    sides = (cloud(), grid()) if swap else (grid(), cloud())
    found = compare(*sides)
    assert found.count == 50 and not found.gridded
    assert found.fields[0].rel_l2 < 2e-5


def test_cubic_interpolation_is_of_fourth_order():
    def error(count):
        axis = np.linspace(0, 1, count)
        at = np.random.default_rng(1).uniform(0, 1, (200, 1))
        return np.max(np.abs(interpolate([axis], np.exp(axis), at)[:] - np.exp(at.T)))

    assert 3.5 < np.log2(error(41) / error(81)) < 4.5


def test_a_cubic_is_reproduced_and_constant_directions_stay_constant():
    x, y = np.linspace(0, 2, 7), np.linspace(0, 1, 2)
    points = np.array([[0.3, 0.2], [1.7, 0.9]])
    values = (x**3)[:, None] * (1 + y)
    expected = points[:, 0] ** 3 * (1 + points[:, 1])
    np.testing.assert_allclose(interpolate([x, y], values, points), expected)
    found = interpolate([x, y], (x**3)[:, None], points)
    np.testing.assert_allclose(found, points[:, 0] ** 3)


def test_a_gap_in_a_grid_is_left_out_and_said():
    a = grid()
    a.data.fields["u"][10:12, 10:12] = np.nan
    found = compare(a, grid())
    assert found.fields[0].rel_l2 < 1e-12
    assert found.notes == ("u: 4 points without a value were left out",)


def test_only_the_common_range_is_compared():
    found = compare(grid(), grid(x=np.linspace(0, 3, 61)))
    assert found.axes["x"].max() == pytest.approx(1.0)
    assert found.fields[0].rel_l2 < 1e-4
    assert "outside the common range" in found.notes[0]


def test_clouds_are_compared_where_they_share_points():
    a, b = cloud(), cloud(lambda t, x: 2 * wave(t, x), count=50)
    order = np.random.default_rng(2).permutation(50)
    shuffled = Cloud(
        {k: v[order] for k, v in b.data.axes.items()}, {"u": b.data.fields["u"][order]}
    )
    assert compare(a, Source("b", shuffled)).fields[0].rel_l2 == pytest.approx(0.5)
    moved = Cloud({k: v + 1e-3 for k, v in b.data.axes.items()}, b.data.fields)
    with pytest.raises(ProblemError, match="none are common"):
        compare(a, Source("b", moved))


# ------------------------------------------------------------------------- files


def write_csv(path: Path) -> None:
    t, x = (m.ravel() for m in np.meshgrid(T, X, indexing="ij"))
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["x", "label", "u", "t"])
        rows.writerows([a, "p", wave(b, a), b] for b, a in zip(t, x, strict=True))


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:  # No dimension scales: shapes must do.
        file["x"], file["t"] = X, T
        file["u"] = wave(T[:, None], X).T


def write_netcdf4(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, values in (("t", T), ("x", X)):
            file[name] = values
            file[name].make_scale(name)  # pyright: ignore
        values = file.create_dataset("u", data=wave(T[:, None], X[::-1]).T)
        values.dims[0].attach_scale(file["x"])
        values.dims[1].attach_scale(file["t"])
        file["x"][...] = X[::-1]  # pyright: ignore


def write_netcdf3(path: Path) -> None:
    with scipy.io.netcdf_file(path, "w") as file:
        for name, values in (("t", T), ("x", X)):
            file.createDimension(name, len(values))
            file.createVariable(name, "d", (name,))[:] = values
        packed = file.createVariable("u", "i", ("t", "x"))
        packed.scale_factor, packed.add_offset = np.float64(1e-8), np.float64(1)
        packed[:] = np.round((wave(T[:, None], X) - 1) / 1e-8)


def write_matlab(path: Path) -> None:
    values = {"t": T[:, None], "x": X[:, None], "u": wave(T[:, None], X).T}
    scipy.io.savemat(path, values)


def write_matlab73(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        file["t"], file["x"] = T[None], X[None]
        file["u"] = wave(T[:, None], X)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")


@pytest.mark.parametrize(
    ("name", "write", "precision"),
    [
        ("a.csv", write_csv, 1e-15),
        ("a.h5", write_hdf5, 1e-15),
        ("a.nc", write_netcdf4, 1e-15),
        ("b.nc", write_netcdf3, 1e-8),
        ("a.mat", write_matlab, 1e-15),
        ("b.mat", write_matlab73, 1e-15),
    ],
)
def test_every_kind_of_file_gives_the_same_numbers(name, write, precision, tmp_path):
    write(tmp_path / name)
    data = read_data(tmp_path / name)
    assert set(data.axes) == {"t", "x"} and set(data.fields) == {"u"}
    (found,) = compare(Source(name, data), grid()).fields
    assert found.maximum < max(precision, 1e-13)
    assert found.values[0].size == T.size * X.size


def test_complex_values_are_two_fields(tmp_path: Path):
    h = np.exp(1j * (T[:, None] + X))
    scipy.io.savemat(tmp_path / "h.mat", {"t": T, "x": X, "h": h})
    found = read_data(tmp_path / "h.mat").fields
    np.testing.assert_array_equal(found["h_real"], np.real(h))
    np.testing.assert_array_equal(found["h_imag"], np.imag(h))


def test_results_without_a_model_are_compared_on_their_grids(tmp_path: Path):
    axes = {"t": np.linspace(0, 1, 5), "x": np.linspace(-1, 1, 6)}
    result = make_result(axes)
    result.model.clear()
    first = write_result(tmp_path / "a.h5", result)
    result.variables["u"] = 1.5 * result.variables["u"]
    second = write_result(tmp_path / "b.h5", result)
    found = compare(*load_pair(first, second))
    errors = {f.field: f.rel_l2 for f in found.fields}
    assert errors == pytest.approx({"u": 1 / 3, "u_exact": 0.0})


# -------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result whose model is u = sin(x) to 1e-7 and better."""
    text = (
        'coordinates = { x = [0, 1] }\nfields = ["u"]\n'
        '[equations]\nm = "dxx(u) = -u"\n[conditions]\n'
        'a = { on = "x = 0", equation = "u = 0" }\n'
        'b = { on = "x = 1", equation = "u = sin(1)" }\n'
    )
    return solve(loads_problem(text, "line")).save(
        tmp_path_factory.mktemp("line") / "line.h5"
    )


def test_a_result_is_evaluated_by_its_model(line: Path, tmp_path: Path):
    at = [0.0, 0.123456, 1.0]
    rows = "".join(f"{x},{np.sin(x) + 0.25 * (x == 1)}\n" for x in at)
    (tmp_path / "points.csv").write_text("x,u\n" + rows)
    command = ["compare", str(line), str(tmp_path / "points.csv"), "--json"]
    command += ["-o", str(tmp_path / "fig.png")]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 0, found.stderr
    answer = json.loads(found.stdout)
    assert answer["points"] == 3
    assert answer["fields"]["u"]["maximum"] == pytest.approx(0.25, rel=1e-6)
    assert answer["fields"]["u"]["where"] == {"x": 1.0}
    size = np.linalg.norm([np.sin(0.123456), np.sin(1) + 0.25])
    assert answer["fields"]["u"]["rel_l2"] == pytest.approx(0.25 / size, rel=1e-6)
    assert (tmp_path / "fig.png").read_bytes().startswith(b"\x89PNG")


def test_a_field_with_another_name_is_matched_by_hand(line: Path, tmp_path: Path):
    (tmp_path / "d.csv").write_text("x,temp\n0.5,2\n")
    command = ["compare", str(line), str(tmp_path / "d.csv")]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 2 and "--match" in found.stderr
    found = RUNNER.invoke(app, [*command, "--match", "u=temp"])
    assert found.exit_code == 0
    assert "at 1 points" in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.csv", "z,u\n0,1\n", "no coordinate 'x'"),
        ("d.csv", "xx,u\n0,1\n", "did you mean 'xx'?"),
        ("d.csv", "x,v\n0,1\n", "no field 'u'"),
        ("d.csv", "x,u\n5,1\n", "no common range of 'x': .* has \\[5, 5\\]"),
        ("d.csv", "x,u\n", "no rows"),
        ("d.csv", "x,u\n0\n", "row 2 has 1 cells"),
        ("d.csv", "x,u,u\n0,1,2\n", "two columns 'u'"),
        ("d.csv", "x,u\n0,\n", "no finite values"),
        ("d.docx", "x,u\n0,1\n", "unknown kind of file"),
        ("d.mat", "hello", "not a MATLAB file"),
    ],
)
def test_wrong_input_is_status_2_and_says_what(line, name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    found = RUNNER.invoke(app, ["compare", str(line), str(tmp_path / name)])
    assert found.exit_code == 2 and found.stdout == ""
    pattern = pytest.raises(ProblemError, match=message)
    with pattern:
        raise ProblemError(found.stderr)


def test_a_missing_file_and_a_bad_pair_are_status_2(line: Path):
    assert RUNNER.invoke(app, ["compare", str(line), "no.csv"]).exit_code == 2
    more = ["compare", str(line), str(line), "--match", "u"]
    assert RUNNER.invoke(app, more).exit_code == 2
    more = ["compare", str(line), str(line), "--match", "w=u"]
    found = RUNNER.invoke(app, more)
    assert found.exit_code == 2 and "no field 'w'" in found.stderr


@pytest.mark.parametrize("kind", ["map", "planes", "cloud"])
def test_pictures_have_a_bar_for_each_map(kind: str):
    from pinnlab.plotting.comparison import comparison_figure

    if kind == "cloud":
        found = compare(grid(lambda t, x: 1.1 * wave(t, x)), cloud())
        panels = 3
    elif kind == "map":
        found, panels = compare(grid(), grid()), 3
    else:
        axes = {n: np.linspace(0, 1, 6) for n in "txy"}
        values = np.random.default_rng(0).random((6, 6, 6))
        source = Source("cube", Grid(axes, {"u": values}))
        found, panels = compare(source, source), 9
    picture = comparison_figure(found)
    assert len(picture.axes) == 2 * panels
    picture.canvas.draw()
