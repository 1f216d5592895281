"""The table of a sweep: one row for each run, made from the runs' own files."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from pinnlab.atomic import replacing
from pinnlab.hdf5 import DAMAGE
from pinnlab.report_tables import number, read_report, subgroup
from pinnlab.sweep.columns import NUMBERS, TEXTS, short_names
from pinnlab.sweep.dataset import (
    OVER_SEEDS,
    SEED,
    Dataset,
    make_dataset,
    seed_statistics,
    write_dataset,
)
from pinnlab.sweep.folder import State, files, read_error, state
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.values import Settings, label


@dataclass(frozen=True)
class Row:
    """One run as a row. What is not known is NaN or "".

    - `rel_l2`: the worst field's error, `estimate` where there is no truth;
      `residual`: the worst equation's on fresh points, relative to its terms.
    - `error`: why there is no result.
    """

    id: str
    settings: Settings
    state: str
    verdict: str = ""
    error: str = ""
    rel_l2: float = math.nan
    estimate: float = math.nan
    residual: float = math.nan
    train_seconds: float = math.nan
    compile_seconds: float = math.nan
    verify_seconds: float = math.nan
    iterations: float = math.nan
    parameters: float = math.nan
    peak_memory_mb: float = math.nan

    @property
    def passed(self) -> bool:
        """Whether the verdict is `pass`, or `pass (estimated)`."""
        return self.verdict.startswith("pass")


def collect(folder: Path, plan: Plan) -> tuple[Row, ...]:
    """The rows of all runs; leaves `sweep.csv` and `sweep.h5` in the folder.

    Where seeds vary `sweep_seeds.csv` has their statistics.
    """
    rows = tuple(read_row(folder, run) for run in plan.runs)
    with replacing(folder / "sweep.csv", force=True) as draft:
        draft.write_text(csv_table(plan, rows), encoding="utf-8", newline="")
    numbers = {n: np.array([getattr(r, n) for r in rows], float) for n in NUMBERS}
    texts = {n: np.array([getattr(r, n) for r in rows], object) for n in TEXTS}
    settings = [r.settings for r in rows]
    dataset = make_dataset(plan, settings, numbers | texts)
    write_dataset(folder / "sweep.h5", dataset)
    if SEED in dataset.dims:
        with replacing(folder / "sweep_seeds.csv", force=True) as draft:
            draft.write_text(seeds_table(dataset), encoding="utf-8", newline="")
    return rows


def read_row(folder: Path, run: Run) -> Row:
    """The row of one run. A result that is damaged counts as failed."""
    found = state(folder, run.id)
    if found is not State.DONE:
        error = read_error(folder, run.id) if found is State.FAILED else ""
        return Row(run.id, run.settings, found.value, error=error)
    path = files(folder, run.id).result
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            number(file, "version")
            return _row(run, file)
    except DAMAGE as error:
        message = f"{path.name}: damaged: {error}"
        return Row(run.id, run.settings, State.FAILED.value, error=message)


def csv_table(plan: Plan, rows: tuple[Row, ...]) -> str:
    """The rows as CSV: the settings under their short names, then what was found."""
    names = short_names(plan.axes)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names.values(), *TEXTS, *NUMBERS])
    for row in rows:
        settings = [label(row.settings[key]) for key in names]
        cells = [getattr(row, n) for n in (*TEXTS, *NUMBERS)]
        writer.writerow([*settings, *map(_cell, cells)])
    return text.getvalue()


def seeds_table(dataset: Dataset) -> str:
    """Statistics over the seeds as CSV: a row for each combination of the others."""
    dims = [d for d in dataset.dims if d != SEED]
    varied = {n: at for n, at in dataset.coordinates.items() if at[0] != SEED}
    columns = {
        f"{name}_{part}": values
        for name in OVER_SEEDS
        for part, values in seed_statistics(dataset, name).items()
    }
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*varied, *columns])
    for index in np.ndindex(*(dataset.dims[d] for d in dims)):
        at = dict(zip(dims, index, strict=True))
        settings = [values[at[dim]] for dim, values in varied.values()]
        found = (_cell(float(values[index])) for values in columns.values())
        writer.writerow([*settings, *found])
    return text.getvalue()


def _row(run: Run, file: h5py.File) -> Row:
    report = read_report(subgroup(file, "report"))
    cost = report.cost
    return Row(
        run.id,
        run.settings,
        State.DONE.value,
        verdict=report.verdict,
        rel_l2=math.nan if report.rel_l2 is None else report.rel_l2,
        estimate=max((e.rel_l2 for e in report.estimates), default=math.nan),
        residual=max((e.heldout for e in report.equations), default=math.nan),
        train_seconds=cost.train_seconds,
        compile_seconds=cost.compile_seconds,
        verify_seconds=cost.verify_seconds,
        iterations=cost.iterations,
        parameters=cost.parameters,
        peak_memory_mb=cost.peak_memory_mb,
    )


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value.replace("\n", " ")
    return "" if math.isnan(value) else f"{value:.10g}"
