"""Conservation laws with jumps in their data: what is added, and what it does."""

import numpy as np
import pytest
from test_cases import FOLDER

from pinnlab import load_problem, loads_problem
from pinnlab.equation.calculus import differentiate
from pinnlab.equation.expression import Expression
from pinnlab.newton import route as newton
from pinnlab.system.arrays import array_values
from pinnlab.system.system import build_system
from pinnlab.system.terms import exact_solution
from pinnlab.verify.preflight import check
from pinnlab.viscosity import SHARPNESS, SHOCK, SPREAD, viscosities, viscous


BURGERS = """
coordinates = { t = [0, 1], x = [-1, 3] }
fields = ["u"]
[equations]
momentum = "EQUATION"
[conditions]
initial = { on = "t = 0", equation = "u = INITIAL" }
"""
CONSERVATIVE, STEP = "dt(u) + dx(u^2/2) = 0", "where(x < 0, 2, 0)"


def burgers(equation=CONSERVATIVE, initial=STEP):
    text = BURGERS.replace("EQUATION", equation).replace("INITIAL", initial)
    return build_system(loads_problem(text, "burgers.toml"))


def test_viscosity_follows_the_range_of_the_characteristic_speeds():
    shallow = build_system(load_problem(FOLDER / "dam_break.toml"))
    fastest = np.sqrt(9.81 * 0.005)
    expected = SHOCK * 10 * 2 * fastest / SHARPNESS
    assert viscosities(shallow) == pytest.approx((0.0, expected), rel=1e-6)
    # Lengths and speeds count, so units do not.
    assert viscosities(burgers()) == pytest.approx((0.0, SHOCK * 4 * 2 / SHARPNESS))
    assert viscosities(burgers(), 0.5)[1] == viscosities(burgers())[1] / 2
    assert viscosities(burgers(), 0.0) == (0.0, 0.0)


def test_no_march_is_announced_or_tried_where_initial_values_jump():
    text = BURGERS.replace("EQUATION", CONSERVATIVE)
    for initial, marched in ((STEP, False), ("2 - tanh(x)", True)):
        problem = loads_problem(text.replace("INITIAL", initial), "burgers.toml")
        assert newton.is_due(build_system(problem, "rows")) == marched
        assert ("separable" in check(problem).strategy) == marched


@pytest.mark.parametrize(
    ("equation", "initial"),
    [
        (CONSERVATIVE, "2 - tanh(x)"),
        ("dt(u) + 2*dx(u) = 0", STEP),
        ("dt(u) + dx(u^2/2) = 0.1*dxx(u)", STEP),
        ("dt(u) + dt(u^2) + dx(u^2/2) = 0", STEP),
    ],
    ids=["smooth", "linear", "viscous", "two rates"],
)
def test_other_problems_stay_as_they_are(equation, initial):
    system = burgers(equation, initial)
    assert viscosities(system) == (0.0, 0.0)
    assert viscous(system, (0.0, 0.0)) is system


@pytest.mark.parametrize(
    "equation", [CONSERVATIVE, "0 = dt(u) + u*dx(u)", "-dx(u^2)/2 - dt(u) = 0"]
)
def test_the_viscous_shock_solves_the_equations_of_training(equation):
    eps = 0.07
    front = f'[exact]\nu = "1 - tanh((x - t)/(2*{eps}))"'
    text = BURGERS.replace("EQUATION", equation).replace("INITIAL", STEP) + front
    problem = loads_problem(text, "front.toml")
    smooth = viscous(build_system(problem), (0.0, eps))
    points = np.random.default_rng(0).uniform((0, -0.5), (1, 1.5), (20, 2))

    def partial(field, orders, places):
        node = exact_solution(problem)[field]
        for letter in "t" * orders[0] + "x" * orders[1]:
            node = differentiate(node, letter)
        return array_values(problem, (node,), places)[:, 0]

    equation = smooth.equations[0].residual
    assert isinstance(equation, Expression)
    assert np.max(np.abs(array_values(problem, (equation,), points, partial))) < 1e-12


def test_a_step_in_the_data_is_spread_and_keeps_its_ends():
    smooth = viscous(burgers(), (0.0, 0.07))
    initial = smooth.conditions[0].residual
    assert isinstance(initial, Expression)
    width = SPREAD * 4
    x = np.array([-1.0, -width, 0.0, width, 3.0])
    points = np.stack([0 * x, x], axis=1)
    values = array_values(
        smooth.problem, (initial,), points, lambda f, orders, places: 0 * x
    )
    expected = -(1 - np.tanh(x / width))
    np.testing.assert_allclose(values[:, 0], expected, atol=1e-12)
