"""Where the linear route begins: the data's frequencies, few coordinates together."""

import numpy as np
import pytest

from pinnlab import loads_problem, solve
from pinnlab.linear.bands import MARGIN, bands, centers
from pinnlab.linear.box import Box
from pinnlab.linear.features import draw
from pinnlab.linear.search import Search
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
    box = Box(np.zeros(6), np.full(6, 3.0))
    rng = np.random.default_rng(0)
    features = draw(200, box, np.zeros(6), np.ones(6), rng)
    used = features.frequencies != 0
    assert (used.sum(axis=1) == 2).all()
    pairs = {tuple(np.flatnonzero(row)) for row in used}
    assert len(pairs) == 15
    assert np.abs(features.frequencies).max() <= 3


def test_a_product_of_many_coordinates_is_solved_by_features_of_all():
    axes = [f"x{i}" for i in range(1, 5)]
    problem = loads_problem(
        f"coordinates = {{ {', '.join(f'{a} = [0, 1]' for a in axes)} }}\n"
        'fields = ["u"]\n[definitions]\n'
        f'truth = "{"*".join(f"sin(pi*{a})" for a in axes)}"\n[equations]\n'
        'poisson = "-lap(u) = 4*pi^2*truth"\n'
        '[conditions]\nwalls = { on = "boundary", equation = "u = 0" }\n'
        '[exact]\nu = "truth"\n[solver]\nstrategy = "linear"\n'
    )
    solution = solve(problem, target=1e-2, budget=3, reference=False)
    assert solution.report.fields[0].rel_l2 < 2e-2


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("source", "initial", "expected"),
    [
        ("0", "sin(20*pi*x)*sin(pi*y)", (0, 10 * np.pi, 0)),
        ("0", "sin(20*pi*x) + sin(4*pi*x)", (0, 0, 0)),
        ("sin(40*x)", "sin(60*x)", (0, 0, 0)),
        ("cos(20*t)", "sin(12*y) + 0*x", (20, 0, 0)),
    ],
)
def test_a_band_is_taken_where_all_data_have_one_high_frequency(
    source, initial, expected
):
    text = PLATE.format(source=source, initial=initial)
    found = centers(build_system(loads_problem(text), "rows"), 0)
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_a_box_widens_its_bands_until_they_begin_at_zero():
    box = Box(np.array([0.0, 20.0]), np.array([2.0, 3.0]))
    assert box.text == "(2, 20 +- 3)"
    wider = [b.text for b in box.widened(2.0)]
    assert wider == ["(4, 20 +- 3)", "(2, 20 +- 6)", "(4, 20 +- 6)"]
    assert box.times(10.0).text == "(20, 50)"


def test_features_of_a_band_have_its_frequencies_with_both_signs():
    box = Box(np.array([0.0, 20.0]), np.array([2.0, 3.0]))
    rates = draw(
        300, box, np.zeros(2), np.ones(2), np.random.default_rng(0)
    ).frequencies
    assert np.abs(rates[:, 0]).max() <= 2
    assert np.abs(rates[:, 1]).min() >= 17 and np.abs(rates[:, 1]).max() <= 23
    assert 0.3 < np.mean(rates[:, 1] > 0) < 0.7


WAVES = """
coordinates = { x = [-1, 1], y = [-1, 1] }
fields = ["u"]
[equations]
waves = "lap(u) + u = (1 - 2*36*pi^2)*sin(6*pi*x)*sin(6*pi*y)"
[conditions]
walls = { on = "boundary", equation = "u = 0" }
"""


def test_a_solution_in_the_band_of_its_data_needs_few_features():
    system = build_system(loads_problem(WAVES), "rows")
    found = Search(system, 30.0, 0, lambda *row: False).run(1e-9)
    assert found.solved.features.count < 700
    assert found.solved.worst < 1e-9


@pytest.mark.parametrize("straight", ["1 + x", "1e-6 + 1e-6*x", "5"])
def test_a_residual_of_rounding_errors_ends_the_search(straight):
    system = build_system(
        loads_problem(
            'coordinates = { x = [0, 1] }\nfields = ["u"]\n'
            '[equations]\nline = "dxx(u) = 0"\n'
            f'[conditions]\nends = {{ on = "boundary", equation = "u = {straight}" }}\n'
        ),
        "rows",
    )
    found = Search(system, 60.0, 0, lambda *row: False).run(1e-8)
    assert found.solved.worst < 1e-8
    assert found.tried <= 3


CARRIED = """
coordinates = { t = [0, 1], x = [0, "2*pi"] }
fields = ["u"]
periodic = ["x"]
[equations]
transport = "dt(u) + 50*dx(u) = 0"
[conditions]
initial = { on = "t = 0", equation = "u = sin(x)" }
"""


def test_a_small_search_evaluates_the_terms_at_few_numbers_of_points():
    system = build_system(loads_problem(CARRIED), "rows")
    search = Search(system, 60.0, 0, lambda *row: False)
    found = search.run(1e-10)
    assert found.solved.worst < 1e-10
    assert found.tried > 2 * len(search.sheets)
    # Three harmonics or five times what t needs.
    assert found.solved.features.count < 500
