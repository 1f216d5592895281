"""The result file keeps everything, opens everywhere, and is never half a file."""

import dataclasses
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from synthetic import make_result

import pinnlab.hdf5
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import check_writable, read_result, write_result
from pinnlab.result import Result


def grid(*sizes: int) -> dict[str, np.ndarray]:
    return {n: np.linspace(0, 1, s) for n, s in zip("txyz", sizes, strict=False)}


def cloud() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {n: random.random(20) for n in ("t", "x", "y", "z")}


AXES = [grid(5), grid(4, 6), grid(3, 3, 3), cloud()]
IDS = ["1-D", "2-D", "3-D", "4-D"]


@pytest.fixture
def result() -> Result:
    return make_result(grid(4, 6))


def node(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset; h5py's own types do not say which kind of node a name has."""
    found = file[name]
    assert isinstance(found, h5py.Dataset)
    return found


def text(file: h5py.File, name: str) -> list[str]:
    return node(file, name).asstr()[()].tolist()  # pyright: ignore


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Same names in the same order, the same types, shapes and bits."""
    return list(a) == list(b) and all(
        a[n].dtype == b[n].dtype
        and a[n].shape == b[n].shape
        and a[n].tobytes() == b[n].tobytes()
        for n in a
    )


@pytest.mark.parametrize("axes", AXES, ids=IDS)
def test_a_result_comes_back_bit_for_bit(axes: dict[str, np.ndarray], tmp_path: Path):
    written = make_result(axes, ("u", "v"))
    read = read_result(write_result(tmp_path / "run.h5", written))
    for name in ("axes", "variables", "history"):
        assert same(getattr(written, name), getattr(read, name))
    assert {n: a.tobytes() for n, a in written.model.items()} == {
        n: a.tobytes() for n, a in read.model.items()
    }
    for name in ("problem", "solver", "history_stage", "report", "attributes"):
        assert getattr(written, name) == getattr(read, name)


@pytest.mark.parametrize("axes", AXES[:3], ids=IDS[:3])
def test_xarray_sees_named_dimensions(axes: dict[str, np.ndarray], tmp_path: Path):
    result = make_result(axes)
    path = write_result(tmp_path / "run.h5", result)
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert set(data.data_vars) == set(result.variables)
        assert data["u"].dims == tuple(axes)
        np.testing.assert_array_equal(data["u"].values, result.variables["u"])
        np.testing.assert_array_equal(data["t"].values, axes["t"])
        assert data.attrs["verdict"] == "pass"
        assert data.attrs["problem"] == result.problem


def test_xarray_sees_a_cloud_of_points_with_coordinates(tmp_path: Path):
    path = write_result(tmp_path / "run.h5", make_result(cloud()))
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data["u"].dims == ("point",)
        assert {"t", "x", "y", "z"} <= set(data["u"].coords)


def test_plain_h5py_finds_everything_by_name(result: Result, tmp_path: Path):
    with h5py.File(write_result(tmp_path / "run.h5", result)) as file:
        assert file.attrs["format"] == "pinnlab"
        assert file.attrs["version"] == 1
        assert file.attrs["rel_l2"] == result.report.rel_l2
        assert node(file, "u").dims[1][0].name == "/x"
        assert node(file, "model/network/layers/0/weight").dtype == np.float32
        assert text(file, "history/stage")[0] == "adam"
        assert node(file, "report/equations/heldout")[0] == 3.1e-5
        assert text(file, "report/conditions/place") == ["t = 0", "x = 1"]
        report = json.loads(str(node(file, "report/json").asstr()[()]))
        assert report["fields"]["u"]["rel_l2"] == result.report.rel_l2


def test_a_variable_of_fewer_coordinates_has_fewer_dimensions(
    result: Result, tmp_path: Path
):
    flux = {"flux": np.arange(4.0)[:, None], "total": np.full((1, 1), 7.0)}
    changed = dataclasses.replace(result, variables=result.variables | flux)
    path = write_result(tmp_path / "run.h5", changed)
    with h5py.File(path) as file:
        assert node(file, "flux").shape == (4,)
        assert node(file, "flux").dims[0][0].name == "/t"
        assert node(file, "total")[()] == 7.0
    assert same(changed.variables, read_result(path).variables)


def test_a_long_problem_and_an_empty_report_are_kept(result: Result, tmp_path: Path):
    report = dataclasses.replace(
        result.report, equations=(), conditions=(), fields=(), warnings=()
    )
    long = dataclasses.replace(result, problem="# é\n" * 250_000, report=report)
    read = read_result(write_result(tmp_path / "run.h5", long))
    assert read.problem == long.problem and read.report == report


def test_existing_files_are_moved_aside_unless_forced(result: Result, tmp_path: Path):
    path = tmp_path / "run.h5"
    for seed in range(3):
        write_result(path, dataclasses.replace(result, attributes={"seed": seed}))
    seeds = {p.name: read_result(p).attributes["seed"] for p in tmp_path.iterdir()}
    assert seeds == {"run.1.h5": 0, "run.2.h5": 1, "run.h5": 2}
    write_result(path, dataclasses.replace(result, attributes={"seed": 9}), force=True)
    assert len(list(tmp_path.iterdir())) == 3
    assert read_result(path).attributes["seed"] == 9


def test_a_crash_while_writing_keeps_the_old_file(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write_result(tmp_path / "run.h5", result)
    before = path.read_bytes()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pinnlab.hdf5, "write_report", crash)
    with pytest.raises(KeyboardInterrupt):
        write_result(path, result)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_has_the_permissions_of_any_new_file(result: Result, tmp_path: Path):
    (tmp_path / "plain").touch()
    path = write_result(tmp_path / "run.h5", result)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("place", ["missing/run.h5", "file/run.h5", "folder"])
def test_unwritable_places_are_refused_before_work(place: str, tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProblemError, match="cannot write"):
        check_writable(tmp_path / place)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(ProblemError, match="Permission denied"):
        check_writable(tmp_path / "run.h5")


def test_reading_says_what_is_wrong_with_a_file(result: Result, tmp_path: Path):
    path = tmp_path / "run.h5"
    with pytest.raises(ProblemError, match="no such file"):
        read_result(path)
    with pytest.raises(ProblemError, match="is a folder"):
        read_result(tmp_path)
    path.write_text("u = 1")
    with pytest.raises(ProblemError, match="is not an HDF5 file"):
        read_result(path)
    with h5py.File(path, "w") as file:
        file["u"] = 1
    with pytest.raises(ProblemError, match="not a pinnlab result"):
        read_result(path)
    write_result(path, result)
    with h5py.File(path, "r+") as file:
        file.attrs["version"] = 99
    with pytest.raises(ProblemError, match=r"version 99.*newer pinnlab"):
        read_result(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_an_error(part: float, result: Result, tmp_path: Path):
    path = write_result(tmp_path / "run.h5", result)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ProblemError, match="damaged"):
        read_result(path)


@pytest.mark.parametrize("name", ["model", "history", "u/v", "x", ""])
def test_names_that_clash_are_refused(name: str, result: Result, tmp_path: Path):
    variables = result.variables | {name: result.variables["u"]}
    changed = dataclasses.replace(result, variables=variables)
    with pytest.raises(ValueError, match="cannot name a variable"):
        write_result(tmp_path / "run.h5", changed)
    assert not list(tmp_path.iterdir())
