"""Where the linear route begins: the data's frequencies, few coordinates together."""

import numpy as np
import pytest

from pinnlab import loads_problem, solve
from pinnlab.linear.bands import MARGIN, bands
from pinnlab.linear.features import draw
from pinnlab.system.system import build_system


PLATE = """
coordinates = {{ t = [0, 2], x = [0, 1], y = [0, 1] }}
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u) + dyy(u) + {source}"
[conditions]
initial = {{ on = "t = 0", equation = "u = {initial}" }}
walls = {{ on = ["x = 0", "x = 1", "y = 0", "y = 1"], equation = "u = 0" }}
"""


@pytest.mark.parametrize(
    ("source", "initial", "expected"),
    [
        ("0", "0", (0, 0, 0)),
        ("0", "sin(20*pi*x)*sin(pi*y)", (0, 10 * np.pi, np.pi / 2)),
        ("cos(9*t)", "3", (9, 0, 0)),
        ("sin(12*y)", "sin(7*y)", (0, 0, 6)),
    ],
)
def test_bands_are_the_frequencies_of_the_data(source, initial, expected):
    system = build_system(
        loads_problem(PLATE.format(source=source, initial=initial)), "rows"
    )
    np.testing.assert_allclose(
        bands(system, 0), MARGIN * np.array(expected), rtol=0.15, atol=1e-9
    )


def test_features_of_many_coordinates_depend_on_two_of_them():
    box = np.full(6, 3.0)
    rng = np.random.default_rng(0)
    features = draw(200, box, np.zeros(6), np.ones(6), rng)
    used = features.frequencies != 0
    assert (used.sum(axis=1) == 2).all()
    pairs = {tuple(np.flatnonzero(row)) for row in used}
    assert len(pairs) == 15
    assert np.abs(features.frequencies).max() <= 3


def test_a_sum_over_five_coordinates_is_solved_by_features():
    axes = [f"x{i}" for i in range(1, 6)]
    problem = loads_problem(
        f"coordinates = {{ {', '.join(f'{a} = [0, 1]' for a in axes)} }}\n"
        'fields = ["u"]\n[definitions]\n'
        f'truth = "{" + ".join(f"cos({a})" for a in axes)}"\n[equations]\n'
        f'balance = "{" + ".join(f"d(u, {a}, {a})" for a in axes)} = -u"\n'
        '[conditions]\nwalls = { on = "boundary", equation = "u = truth" }\n'
        '[exact]\nu = "truth"\n[solver]\nstrategy = "linear"\n'
    )
    solution = solve(problem, target=1e-6, budget=20, reference=False)
    assert solution.report.verdict == "pass"
