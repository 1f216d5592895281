"""The scorecard: its problems are there, its tables say what the results hold."""

import dataclasses
from pathlib import Path

import h5py
import numpy as np
import pytest
import scorecard
from synthetic import make_report, make_result

from pinnlab import load_problem
from pinnlab.cli.gallery import find_problem
from pinnlab.hdf5 import write_result
from pinnlab.report_tables import dataset
from pinnlab.result import FieldError
from pinnlab.verify.preflight import check


FOLDER = Path(__file__).parent.parent / "experiments"
OWN = sorted((FOLDER / "problems").glob("*.toml"))


@pytest.mark.parametrize("goal", scorecard.GOALS, ids=lambda g: g.label)
def test_every_problem_is_found(goal):
    assert find_problem(scorecard.where(goal.problem)).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_its_own_problems_pass_preflight(path):
    assert check(load_problem(path)).errors == ()


def result_of(error, folder, seed, goal):
    """A result on a grid whose error is known, where a run would leave it."""
    x = np.linspace(-1, 1, 41)
    truth = 2 + np.sin(x)
    values = np.where(np.abs(x) <= 0.95, truth * (1 + error), 0)
    fields = (FieldError("u", 0.3, 0.3, "reference", 1e-9),)
    plain = make_result({"x": x}, truth=False)
    result = dataclasses.replace(
        plain,
        variables={"u": values, "u_reference": truth},
        report=dataclasses.replace(make_report(), fields=fields),
    )
    write_result(scorecard.place(goal, seed, folder), result)


def test_the_error_is_taken_where_the_goal_says(tmp_path):
    goal = next(g for g in scorecard.GOALS if g.inside is not None)
    runs = tmp_path / "runs"
    runs.mkdir()
    for seed, error in enumerate([1e-6, 3e-6, 2e-6]):
        result_of(error, runs, seed, goal)
    scorecard.write_tables(tmp_path, runs)
    (row,) = [
        line
        for line in (tmp_path / "scorecard.md").read_text().splitlines()
        if goal.label in line
    ]
    assert "2.0e-06 (3.0e-06, 3 seeds)" in row
    assert row.endswith("| yes |")
    with h5py.File(tmp_path / "scorecard.h5") as file:
        labels, errors = (np.asarray(dataset(file, n)) for n in ("problem", "error"))
    found = np.sort(errors[labels == goal.label.encode()])
    np.testing.assert_allclose(found, [1e-6, 2e-6, 3e-6], rtol=1e-6)
