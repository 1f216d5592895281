"""The least squares of the linear route: rows piece by piece, parts by symmetry."""

import numpy as np
import pytest

from pinnlab import loads_problem
from pinnlab.linear import solver, triangle
from pinnlab.linear.box import Box
from pinnlab.linear.features import draw
from pinnlab.linear.parity import Parity
from pinnlab.linear.search import Search
from pinnlab.linear.solver import folded, sheet, solve_features
from pinnlab.linear.space import Space, find_space
from pinnlab.linear.symmetry import find_mirrors, needed, parts_of_data
from pinnlab.linear.triangle import Triangle
from pinnlab.system.forms import linear_form
from pinnlab.system.system import build_system


def build(equation, conditions, axes="{ t = [0, 1], x = [-1, 3] }"):
    lines = [f'c{i} = {{ on = {on}, equation = "{e}" }}' for i, (on, e) in conditions]
    text = f"""
coordinates = {axes}
fields = ["u"]
[equations]
balance = "{equation}"
[conditions]
"""
    return build_system(loads_problem(text + "\n".join(lines)), "rows")


def string(initial="sin(x) + cos(2*x)", ends=("u = 1", "u = 2"), speed="1"):
    conditions = [
        ('"t = 0"', f"u = {initial}"),
        ('"t = 0"', "dt(u) = x"),
        ('"x = -1"', ends[0]),
        ('"x = 3"', ends[1]),
    ]
    return build(f"dtt(u) = ({speed})*dxx(u) + x*t", enumerate(conditions))


def test_rows_in_pieces_give_the_solution_of_all_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    matrix, vector = rng.normal(size=(300, 20)), rng.normal(size=300)
    monkeypatch.setattr(triangle, "MOST_NUMBERS", 0)
    monkeypatch.setattr(triangle, "LEAST_ROWS", 17)
    pieces = Triangle(20)
    assert pieces.waiting.shape == (17, 21)
    for start, end in ((0, 5), (5, 120), (120, 300)):
        pieces.add(matrix[start:end], vector[start:end])
    expected = np.linalg.lstsq(matrix, vector)[0]
    found = pieces.solve(np.zeros(20, bool))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_a_solve_in_pieces_is_that_of_the_whole_to_rounding(monkeypatch):
    system = string()
    space = Space(system, find_space(system).partition, ())
    features = space.draw(
        30, Box(np.zeros(2), np.full(2, 6.0)), np.random.default_rng(0)
    )
    train, test = sheet(space, 200, 0), sheet(space, 100, 1, False)
    whole = solve_features(system, features, train, test)
    monkeypatch.setattr(solver, "AT_ONCE", 300)
    monkeypatch.setattr(triangle, "MOST_NUMBERS", 600)
    monkeypatch.setattr(triangle, "LEAST_ROWS", 7)
    pieces = solve_features(system, features, train, test)
    np.testing.assert_allclose(
        pieces.coefficients, whole.coefficients, rtol=1e-8, atol=1e-10
    )


def test_columns_that_depend_on_each_other_keep_their_coefficients_moderate():
    x = np.linspace(-1, 1, 200)
    matrix = np.cos(np.outer(x, np.linspace(0, 6, 60)))
    rows = Triangle(60)
    rows.add(matrix, np.exp(-(x**2)))
    found = rows.solve(np.zeros(60, bool))
    assert np.linalg.norm(found) < 1
    assert np.abs(matrix @ found - np.exp(-(x**2))).max() < 1e-13


@pytest.mark.parametrize(
    ("system", "axes"),
    [
        (string(), [1]),
        (string(speed="1 + (x - 1)^2"), [1]),
        (string(speed="1 + x^2"), []),
        (string(ends=("dx(u) = 1", "dx(u) = 2")), [1]),
        (string(ends=("u = 1", "dx(u) = 2")), []),
        (build("dt(u) + dx(u) = 0", enumerate([('"t = 0"', "u = x")])), []),
        (
            build(
                "lap(u) = 1",
                enumerate([('"boundary"', "u = x*y")]),
                "{ x = [0, 1], y = [0, 2] }",
            ),
            [0, 1],
        ),
    ],
)
def test_reflections_of_the_equations_are_found(system, axes):
    assert [m.axis for m in find_mirrors(system)] == axes


def test_data_are_split_into_even_and_odd_parts():
    system = string("cos(x - 1) + 3*sin(x - 1)")
    mirrors = find_mirrors(system)
    x = np.linspace(-1, 3, 9)
    points = np.stack([np.zeros(9), x], axis=1)
    even, odd = parts_of_data(system, mirrors, len(system.equations), points)
    np.testing.assert_allclose(even, -np.cos(x - 1), atol=1e-14)
    np.testing.assert_allclose(odd, -3 * np.sin(x - 1), atol=1e-14)
    assert needed([np.stack([even, 0 * odd])]).tolist() == [True, False]
    assert needed([0 * np.stack([even, odd])]).tolist() == [True, False]


def test_rows_of_a_parity_are_sums_over_reflected_features():
    system = string(speed="1 + (x - 1)^2")
    lower, upper = np.array([0.0, -1.0]), np.array([1.0, 3.0])
    box, rng = Box(np.zeros(2), np.full(2, 5.0)), np.random.default_rng(0)
    features = draw(14, box, lower, upper, rng, (1,))
    points = lower + (upper - lower) * np.random.default_rng(1).random((9, 2))
    form = linear_form(system, system.equations[0], points)
    parity = Parity((1,), np.array([[False], [True]]))
    plain, turned = np.split(features.matrix(form, ("u",)), 2, axis=1)
    even, odd = parity.matrices(features, form, ("u",))
    np.testing.assert_allclose(even, plain + turned, atol=1e-12)
    np.testing.assert_allclose(odd, plain - turned, atol=1e-12)


def test_solving_part_by_part_satisfies_all_equations():
    conditions = [
        ('"t = 0"', "u = cos(x) + sin(2*x)"),
        ('"t = 0"', "dt(u) = 0"),
        ('"x = -1"', "u = cos(1)*cos(t) - sin(2)*cos(2*t)"),
        ('"x = 3"', "u = cos(3)*cos(t) + sin(6)*cos(2*t)"),
    ]
    system = build("dtt(u) = dxx(u)", enumerate(conditions))
    space = find_space(system)
    box, rng = Box(np.zeros(2), np.full(2, 8.0)), np.random.default_rng(0)
    features = space.draw(600, box, rng)
    train, test = folded(space, 600, 0), sheet(space, 400, 1, False)
    assert len(train.parity.odd) == 2
    assert solve_features(system, features, train, test).worst < 1e-9


def test_a_search_compiles_nothing(monkeypatch):
    import jax

    def fail(*arguments, **options):
        raise AssertionError("compiled")

    monkeypatch.setattr(jax, "jit", fail)
    monkeypatch.setattr(jax, "vmap", fail)
    system = build(
        "lap(u) = -2*sin(x)*sin(y)",
        enumerate([('"boundary"', "u = sin(x)*sin(y)")]),
        "{ x = [0, 1], y = [0, 2] }",
    )
    assert Search(system, 20.0, 0, lambda *row: False).run(1e-9).solved.worst < 1e-9
