"""The tables of a sweep, statistics over seeds, pictures, and the commands."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray
from matplotlib.collections import LineCollection
from synthetic import make_result
from test_sweep_engine import saved
from typer.testing import CliRunner

from pinnlab.cli.main import app
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import write_result
from pinnlab.plotting.style import math
from pinnlab.result import FieldError
from pinnlab.sweep.dataset import Dataset, read_dataset, seed_statistics
from pinnlab.sweep.folder import files, record_error
from pinnlab.sweep.page import report_page
from pinnlab.sweep.pictures import pareto_front, sweep_figure
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.table import collect


RUNNER = CliRunner()
TARGET = 1e-3


def finished(folder: Path, plan: Plan, errors: list[float | None]) -> None:
    """Leave a result with this error for each run; None: a run that failed."""
    axes = {"t": np.linspace(0, 1, 9)}
    for run, error in zip(plan.runs, errors, strict=True):
        if error is None:
            record_error(folder, run.id, "ArithmeticError", "no <b>finite</b> loss")
            continue
        result = make_result(axes)
        report = dataclasses.replace(
            result.report,
            fields=(FieldError("u", error, error, "exact"),),
            verdict="pass" if error < TARGET else "fail",
        )
        result = dataclasses.replace(result, report=report)
        write_result(files(folder, run.id).result, result)


@pytest.fixture
def study(tmp_path: Path) -> tuple[Path, Plan]:
    """Two rates, three seeds; the last run failed."""
    plan = saved(tmp_path, "parameters.r = [1, 2]\nseed = [0, 1, 2]")
    finished(tmp_path / "out", plan, [1e-4, 3e-4, 2e-4, 1e-2, 3e-2, None])
    return tmp_path / "out", plan


def test_the_dimensions_of_the_table_are_the_axes(study: tuple[Path, Plan]):
    folder, plan = study
    collect(folder, plan)
    table = xarray.open_dataset(folder / "sweep.h5", engine="h5netcdf")
    assert dict(table.sizes) == {"r": 2, "seed": 3}
    assert table.rel_l2.dims == ("r", "seed")
    assert float(table.rel_l2.sel(r=2, seed=1)) == 3e-2
    assert np.isnan(table.rel_l2.sel(r=2, seed=2))
    assert str(table.verdict.sel(r=1, seed=0).item()) == "pass"
    assert str(table.state.sel(r=2, seed=2).item()) == "failed"
    assert table.rel_l2_median.values == pytest.approx([2e-4, 2e-2])
    assert table.rel_l2_q25.values == pytest.approx([1.5e-4, 1.5e-2])
    assert table.rel_l2_worst.values == pytest.approx([3e-4, 3e-2])


def test_the_table_has_a_row_for_each_run(study: tuple[Path, Plan]):
    folder, plan = study
    collect(folder, plan)
    with (folder / "sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["r"], r["seed"]) for r in rows] == [(r, s) for r in "12" for s in "012"]
    assert [r["rel_l2"] for r in rows] == ["0.0001", "0.0003", "0.0002", "0.01",
                                           "0.03", ""]  # fmt: skip
    assert rows[5]["error"] == "no <b>finite</b> loss"
    assert rows[0]["train_seconds"] == "41.25"


def test_the_seeds_have_a_table_of_their_own(study: tuple[Path, Plan]):
    folder, plan = study
    collect(folder, plan)
    with (folder / "sweep_seeds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["r"] for r in rows] == ["1", "2"]
    assert [float(r["rel_l2_median"]) for r in rows] == pytest.approx([2e-4, 2e-2])
    assert [float(r["rel_l2_q25"]) for r in rows] == pytest.approx([1.5e-4, 1.5e-2])
    assert [float(r["rel_l2_worst"]) for r in rows] == pytest.approx([3e-4, 3e-2])


def test_the_tables_are_rebuilt_from_the_runs(study: tuple[Path, Plan]):
    folder, plan = study
    collect(folder, plan)
    (folder / "sweep.csv").unlink()
    (folder / "sweep.h5").unlink()
    files(folder, plan.runs[0].id).result.unlink()
    files(folder, plan.runs[1].id).result.write_bytes(b"half a file")
    rows = collect(folder, plan)
    assert [r.state for r in rows] == ["missing", "failed", *["done"] * 3, "failed"]
    assert "damaged" in rows[1].error
    assert (folder / "sweep.csv").exists() and (folder / "sweep.h5").exists()


def test_holes_and_zipped_groups_keep_their_places(tmp_path: Path):
    text = """
[[zip]]
"solver.network.width" = [10, 20]
"solver.optimizer" = ["adam", "lbfgs"]
[[exclude]]
seed = 1
"solver.optimizer" = "adam"
"""
    plan, folder = saved(tmp_path, "seed = [0, 1]", text), tmp_path / "out"
    finished(folder, plan, [1e-1, 1e-2, 1e-3])
    collect(folder, plan)
    table = xarray.open_dataset(folder / "sweep.h5", engine="h5netcdf")
    assert dict(table.sizes) == {"seed": 2, "width_optimizer": 2}
    assert table.rel_l2.values == pytest.approx(
        np.array([[1e-1, 1e-2], [np.nan, 1e-3]]), nan_ok=True
    )
    assert set(table.coords) >= {"width", "optimizer"}
    assert [str(v) for v in table.optimizer.values] == ["adam", "lbfgs"]
    found = read_dataset(folder / "sweep.h5")
    assert found.coordinates["width"][0] == "width_optimizer"
    panel = sweep_figure(found).axes[0]
    ticks = panel.get_xticklabels()
    assert [t.get_text() for t in ticks] == ["10, adam", "20, lbfgs"]
    assert panel.get_xlabel() == f"{math('width')}, {math('optimizer')}"


def test_lists_and_tables_are_told_by_their_text(tmp_path: Path):
    axes = 'solver.network = [{ width = 8 }, { kind = "fbpinn", windows = [2] }]\n'
    plan = saved(tmp_path, axes + "coordinates.t = [[0, 1], [0, 2]]")
    folder = tmp_path / "out"
    finished(folder, plan, [1e-1, 1e-2, 1e-3, None])
    rows = collect(folder, plan)
    with (folder / "sweep.csv").open(newline="") as file:
        cells = [(r["network"], r["t"]) for r in csv.DictReader(file)]
    names = ["{ width = 8 }", '{ kind = "fbpinn", windows = [2] }']
    times = ["[0, 1]", "[0, 2]"]
    assert cells == [(n, t) for n in names for t in times]
    table = xarray.open_dataset(folder / "sweep.h5", engine="h5netcdf")
    assert float(table.rel_l2.sel(network=names[1], t=times[0])) == 1e-3
    sweep_figure(read_dataset(folder / "sweep.h5")).savefig(tmp_path / "picture.png")
    page = report_page(folder, plan, rows, pictures=0)
    text = (
        page.split('<script id="data"')[1].partition(">")[2].partition("</script>")[0]
    )
    assert [r["settings"] for r in json.loads(text)["runs"]] == [*map(list, cells)]
    found = RUNNER.invoke(app, ["sweep", "status", str(folder)])
    assert found.exit_code == 0 and "[0, 2]" in found.output


def test_a_setting_may_be_called_like_what_is_found_out(tmp_path: Path):
    plan, folder = saved(tmp_path, "solver.iterations = [5, 10]"), tmp_path / "out"
    finished(folder, plan, [1e-1, 1e-4])
    collect(folder, plan)
    table = xarray.open_dataset(folder / "sweep.h5", engine="h5netcdf")
    assert table["solver.iterations"].values.tolist() == [5, 10]
    assert table.iterations.dims == ("solver.iterations",)
    heads = (folder / "sweep.csv").read_text().splitlines()[0].split(",")
    assert len(set(heads)) == len(heads)
    assert sweep_figure(read_dataset(folder / "sweep.h5")).axes


def test_few_cells_of_a_heat_map_have_their_numbers(tmp_path: Path):
    plan = saved(tmp_path, "parameters.r = [1, 2]\nsolver.network.width = [4, 8]")
    finished(tmp_path / "out", plan, [1e-1, 2e-4, 3e-6, None])
    collect(tmp_path / "out", plan)
    panel = sweep_figure(read_dataset(tmp_path / "out" / "sweep.h5")).axes[0]
    texts = {t.get_text(): t.get_position() for t in panel.texts}
    assert texts == {"1e-01": (0.5, 0.5), "2e-04": (0.5, 1.5), "3e-06": (1.5, 0.5)}


def test_statistics_leave_out_what_is_not_known():
    values = np.array([[1.0, np.nan, 3.0], [np.nan] * 3])
    found = seed_statistics(
        Dataset("", {"nu": 2, "seed": 3}, {}, {"rel_l2": values}), "rel_l2"
    )
    assert found["median"][0] == 2.0 and found["worst"][0] == 3.0
    assert all(np.isnan(v[1]) for v in found.values())


def test_the_front_has_what_no_faster_run_beats():
    seconds = np.array([3.0, 1.0, 2.0, 4.0, 1.0])
    errors = np.array([0.1, 0.5, 0.6, 0.01, 0.9])
    front = pareto_front(seconds, errors)
    assert front[0].tolist() == [1.0, 3.0, 4.0]
    assert front[1].tolist() == [0.5, 0.1, 0.01]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pictures_have_a_panel_for_each_question(axes: int):
    sizes: dict[str, int] = {"r": 3, "width": 2, "depth": 2}
    dims = {name: sizes[name] for name in list(sizes)[:axes]} | {"seed": 2}
    shape = tuple(dims.values())
    random = np.random.default_rng(0)
    dataset = Dataset(
        "study",
        dims,
        {d: (d, 1.0 + np.arange(n)) for d, n in dims.items()},
        {
            "rel_l2": random.lognormal(size=shape),
            "train_seconds": random.lognormal(size=shape),
            "verdict": np.full(shape, "pass", object),
        },
    )
    found = [a for a in sweep_figure(dataset).axes if a.get_visible()]
    # Lines and the front; with more axes a map with its bar, and a line for each.
    assert len(found) == {1: 2, 2: 4, 3: 7}[axes]
    line = found[0 if axes == 1 else 2].lines[0]
    if axes == 1:
        medians = np.median(dataset.variables["rel_l2"], axis=-1)
        assert np.asarray(line.get_ydata()) == pytest.approx(medians)


def test_a_run_without_a_truth_is_shown_with_its_estimate():
    errors, estimates = np.array([1e-3, np.nan]), np.array([np.nan, 2.0])
    variables = {"rel_l2": errors, "estimate": estimates, "train_seconds": np.ones(2)}
    variables["verdict"] = np.array(["pass", "fail"], object)
    dataset = Dataset("", {"r": 2}, {"r": ("r", np.array([1.0, 2.0]))}, variables)
    first, last = sweep_figure(dataset).axes
    assert np.asarray(first.lines[0].get_ydata()).tolist() == [1e-3, 2.0]
    assert first.get_ylabel() == "relative $L^2$ error or estimate"
    shown = [line.get_label() for line in last.lines]
    assert shown[:2] == ["pass (1)", "fail (1)"]


def test_names_on_an_axis_are_not_joined_by_lines():
    names = np.array(["burgers", "klein_gordon", "allen_cahn"], object)
    rows = np.array([[1e-1, 1e-2, 1e-3], [1e-2, 1e-3, 1e-4]]).T
    dims = {"problem": 3, "seed": 2}
    coordinates = {"problem": ("problem", names), "seed": ("seed", np.arange(2))}
    verdicts = np.full((3, 2), "pass", object)
    found = {"rel_l2": rows, "train_seconds": np.ones((3, 2)), "verdict": verdicts}
    panel = sweep_figure(Dataset("", dims, coordinates, found)).axes[0]
    marks = panel.lines[0]
    assert np.asarray(marks.get_ydata()) == pytest.approx(rows.mean(axis=1))
    assert marks.get_linestyle() == "None" and marks.get_marker() == "o"
    assert {t.get_rotation() for t in panel.get_xticklabels()} == {20.0}


def drawn_study(kind: str) -> Dataset:
    """Six runs of three settings, the third of which is the best."""
    errors = np.array([3e-1, 1e-2, 1e-4, 2e-3, np.nan, 5e-2])
    return Dataset(
        "study",
        {kind: 6},
        {
            kind: (kind, np.arange(6)),
            "nu": (kind, np.geomspace(1e-3, 1.0, 6)),
            "width": (kind, np.array([4, 4, 8, 8, 6, 6])),
            "optimizer": (kind, np.array(["adam", "lbfgs"] * 3, object)),
        },
        {
            "rel_l2": errors,
            "train_seconds": np.arange(1.0, 7.0),
            "verdict": np.array(["pass"] * 4 + ["", "fail"], object),
        },
    )


@pytest.mark.parametrize("kind", ["draw", "trial"])
def test_parallel_coordinates_have_a_line_for_each_run(kind: str):
    panels = sweep_figure(drawn_study(kind)).axes
    shown = [a for a in panels if a.get_visible()]
    assert len(shown) == 5  # Beside them a panel for each setting, and the front.
    (collection,) = shown[0].collections
    assert isinstance(collection, LineCollection)
    lines = np.array(collection.get_segments())
    assert lines.shape == (5, 4, 2)  # The run without a result has none.
    # The best is drawn last: nu and width on their scales, the error at the bottom.
    assert lines[-1, :, 1] == pytest.approx([0.4, 1.0, 0.0, 0.0])
    labels = [t.get_text() for t in shown[0].get_xticklabels()]
    assert labels[:3] == [math("nu"), math("width"), math("optimizer")]
    assert labels[3] == "relative $L^2$ error"
    assert "adam" in {t.get_text() for t in shown[0].texts}
    assert shown[1].get_xscale() == "log" and shown[2].get_xscale() == "linear"


def test_the_commands_show_plot_and_report(
    study: tuple[Path, Plan], monkeypatch: pytest.MonkeyPatch
):
    folder, plan = study
    monkeypatch.chdir(folder.parent)
    found = RUNNER.invoke(app, ["sweep", "status", "out", "--json"])
    table = json.loads(found.stdout)
    assert table["states"] == {"done": 5, "failed": 1} and table["passed"] == 3
    assert table["rows"][5]["rel_l2"] is None
    found = RUNNER.invoke(app, ["sweep", "status", "out"])
    assert "5 done, 1 failed; 3 of 6 passed" in found.stdout
    found = RUNNER.invoke(app, ["sweep", "logs", "out"])
    assert plan.runs[5].id in found.stdout and "finite" in found.stdout
    assert plan.runs[0].id not in found.stdout
    found = RUNNER.invoke(app, ["plot", "out/sweep.h5", "--dpi", "40"])
    assert found.exit_code == 0, found.stderr
    assert Path("sweep.png").read_bytes().startswith(b"\x89PNG")
    found = RUNNER.invoke(app, ["report", "out", "--pictures", "0"])
    assert found.exit_code == 0, found.stderr
    page = Path("report.html").read_text()
    assert "</html>" in page and "http://" not in page and "https://" not in page


@pytest.mark.parametrize(
    "command",
    [
        ["sweep", "missing.toml"],
        ["sweep", "status", "."],
        ["sweep", "growth.toml", "--on", "moon"],
        ["sweep", "growth.toml", "-o", "logistic.toml"],
        ["sweep", "logs", "out", "zzz"],
        ["report", "missing"],
    ],
    ids=lambda c: " ".join(c),
)
def test_wrong_input_is_status_2_and_a_message(
    command: list[str], study: tuple[Path, Plan], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(study[0].parent)
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 2
    assert found.stderr and "Traceback" not in found.stderr


def test_a_dry_run_says_the_size_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    saved(tmp_path, "parameters.r = [1, 2]\nseed = { lin = [0, 4], n = 5 }")
    monkeypatch.chdir(tmp_path)
    command = ["sweep", "growth.toml", "--dry-run", "--workers", "2", "-o", "new"]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 0
    assert "10 runs, 0 done; 2 at one time, at most about 6:15" in found.stderr
    assert not Path("new").exists()


def test_a_file_that_is_no_table_is_refused(tmp_path: Path):
    path = tmp_path / "a.h5"
    with pytest.raises(ProblemError, match="no such file"):
        read_dataset(path)
    path.write_text("text")
    with pytest.raises(ProblemError, match="damaged"):
        read_dataset(path)
