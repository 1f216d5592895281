"""Newton steps over random features: a nonlinear problem as several linear ones."""

import numpy as np
import pytest

from pinnlab import Solution, loads_problem, solve
from pinnlab.equation.structure import partials
from pinnlab.linear.box import Box
from pinnlab.linear.features import draw
from pinnlab.linear.gauss_newton import (
    GaussNewton,
    Iterate,
    Linearization,
    is_due,
    suits,
)
from pinnlab.newton.pointwise import Compiled, Pointwise
from pinnlab.system.system import build_system


BRATU = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
explosion = "dxx(u) + exp(u) = 0"
[conditions]
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
"""
COUPLED = """
coordinates = { x = [0, 1], y = [0, 2] }
fields = ["u", "v"]
[equations]
first = "u*dx(v) + dyy(u)^2 = sin(x)"
second = "dxy(u) + exp(v) = 0"
[conditions]
left = { on = "x = 0", equation = ["u = 0", "v = 0"] }
"""


def quiet(phase, tried, elapsed, worst):
    return False


def build(text):
    return build_system(loads_problem(text, "problem.toml"), "rows")


def test_a_solution_is_found_from_nothing():
    system = build(BRATU)
    found = GaussNewton(system, 60.0, 0, quiet).run(1e-9)
    assert found is not None
    x = np.linspace(0, 1, 33)[:, None]
    values = found.solved.features.values(x, found.solved.coefficients[None])[:, 0]
    theta = 1.5171645990507543  # theta = sqrt(2) cosh(theta / 4)
    exact = 2 * np.log(np.cosh(theta / 4) / np.cosh((x[:, 0] - 0.5) * theta / 2))
    assert np.max(np.abs(values - exact)) < 1e-8


def test_a_run_that_asks_for_it_is_saved_and_read_again(tmp_path):
    text = BRATU + '[solver]\nstrategy = "newton"\n'
    solution = solve(loads_problem(text, "bratu.toml"), target=1e-8, budget=60)
    assert solution.report.verdict == "pass"
    assert "Newton's method" in solution.report.strategy
    again = Solution.load(solution.save(tmp_path / "run.h5"))
    x = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(again(x=x), solution(x=x))


def test_it_is_tried_where_separable_features_are_not():
    assert not is_due(build(BRATU))
    axes = "{ t = [0, 1], x = [0, 1], y = [0, 1] }"
    text = BRATU.replace("{ x = [0, 1] }", axes).replace("dxx(u)", "dt(u) - lap(u)")
    assert is_due(build(text))
    linear = BRATU.replace("exp(u)", "u")
    assert not suits(build(linear))


def test_time_that_is_up_leaves_what_there_is():
    found = GaussNewton(build(BRATU), 1e-9, 0, quiet).run(1e-9)
    assert found is None


def iterate(system, seed):
    box, rng = Box(np.zeros(2), np.full(2, 3.0)), np.random.default_rng(seed)
    lower, upper = np.zeros(2), np.array([1.0, 2.0])
    features = draw(6, box, lower, upper, np.random.default_rng(0))
    return Iterate(system, features, rng.normal(size=12))


@pytest.mark.parametrize("i", [0, 1])
def test_a_linearization_has_the_values_and_slopes_of_the_residual(i):
    system = build(COUPLED)
    term = system.equations[i]
    points = np.random.default_rng(1).uniform((0, 0), (1, 2), (7, 2))
    here, there = iterate(system, 1), iterate(system, 2)
    form = Linearization(here, Compiled(system)).form(system, term, points)
    assert here.features is not None
    rows = here.features.matrix(form, system.fields)
    pointwise = Pointwise(system, (term,))

    def residual(at):
        own = partials(term.residual)
        return pointwise(points, at.values(own, [points] * len(own)))[0][:, 0]

    value = rows @ here.coefficients + form.rest
    np.testing.assert_allclose(value, residual(here), rtol=1e-12, atol=1e-12)
    step = 1e-6
    ends = residual(here.between(there, step)), residual(here.between(there, -step))
    slope = rows @ (there.coefficients - here.coefficients)
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), slope, rtol=1e-6)


def test_integrals_and_many_coordinates_do_not_suit():
    assert suits(build(BRATU))
    memory = BRATU.replace("exp(u)", "integral(u, x)*u")
    assert not suits(build(memory))
    wide = BRATU.replace(
        "{ x = [0, 1] }", "{ a = [0, 1], b = [0, 1], c = [0, 1], x = [0, 1] }"
    )
    assert not suits(build(wide))
