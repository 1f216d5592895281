"""The comparison with other libraries: its truth, its tables, what counts as a line."""

import math

import jax
import numpy as np
import pytest
from peers import (
    OTHERS,
    PRECISIONS,
    PROBLEMS,
    Curve,
    Look,
    exact,
    first,
    lines,
    markdown,
    picture,
)

from pinnlab import load_problem
from pinnlab.cli.gallery import find_problem
from pinnlab.system.arrays import array_values
from pinnlab.system.terms import exact_solution


LIBRARIES = ("pinnlab", *OTHERS)


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_are_measured_against_the_exact_solution_of_our_file(name: str):
    problem = load_problem(find_problem(name))
    rows = exact(name)[::7]
    truth = tuple(exact_solution(problem).values())
    with jax.enable_x64(True):
        values = array_values(problem, truth, rows[:, :2])[:, 0]
    assert np.ptp(values) > 0.9
    np.testing.assert_allclose(rows[:, 2], values, atol=1e-8)


def test_the_first_error_below_the_wanted_one_counts():
    falling = [Look(1, 5, 1e-2), Look(2, 5, 9e-4), Look(3, 5, 1e-5)]
    assert first(falling) == falling[1]
    assert first(falling[:1]) is None


def test_a_line_is_what_a_user_writes():
    # The problem as the README shows it has eleven lines that are not blank.
    assert lines("pinnlab", "burgers") == 10
    assert all(lines(o, p) > 15 for o in OTHERS for p in PROBLEMS)


def test_the_tables_have_medians_the_worst_and_failures():
    good: list[Curve] = [[Look(s, 0, 1e-4)] for s in (1.0, 2.0, 4.0)]
    late: list[Curve] = [[Look(9, 3, 0.5)], [Look(8, 3, 1e-3)], [Look(9, 3, 0.2)]]
    failed: list[Curve] = [[], [], []]
    kinds = dict(zip(LIBRARIES, (good, late, failed), strict=True))
    curves = {(p, o): kinds[o] for p in PROBLEMS for o in LIBRARIES}
    costs = {(o, p): 1.5 for o in LIBRARIES for p in PRECISIONS}
    costs["jinns", "float64"] = math.nan
    text = markdown(curves, costs, 60.0, "versions")
    assert "| burgers | pinnlab | 2.0 (4.0) | 0.0 | 1.0e-04 | 10 |" in text
    assert "| burgers | deepxde | above 60 (above 60) | 3.0 | 2.0e-01 | " in text
    assert "| burgers | jinns | the script failed | - | - | " in text
    assert "| jinns | 1.5 | nan |" in text
    assert len(picture(curves).axes) == 2
