"""A loss that is not finite: the guilty sub-expression, its equation and the point."""

import jax
import jax.numpy as jnp
import pytest

from pinnlab import loads_problem, make_problem
from pinnlab.assembly import least_squares, network_of
from pinnlab.nonfinite import Fault, find
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system


DECAY = """
coordinates = { t = [0, 1] }
fields = ["u"]
[equations]
decay = "dt(u) = EQUATION"
[conditions]
start = { on = "t = 0", equation = "u = 1" }
[solver]
points = 64
sampler = "grid"
network = { width = 5, depth = 1 }
"""

ROD = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = cos(x)", enforce = "penalty" }
left = { on = "x = 0", equation = "EQUATION" }
[solver]
points = 16
condition_points = 8
network = { width = 5, depth = 1 }
"""


def objective_of(problem):
    if isinstance(problem, str):
        problem = loads_problem(problem)
    settings = read_settings(problem.solver)
    system = build_system(problem)
    full = plan(system, settings, 1e-3).settings
    ones = (1.0,) * len(system.fields)
    network = network_of(system, full, ones, jax.random.key(0))
    return least_squares(system, full, network, 0)


def slope(theta, value):
    """A network that is constant: u = 1 + value*t by the exact condition."""
    return jnp.zeros_like(theta).at[-1].set(value)


def decay(equation, value):
    objective, theta = objective_of(DECAY.replace("EQUATION", equation))
    return find(objective, slope(theta, value))


def test_nothing_is_found_where_everything_is_finite():
    assert decay("log(u)", 2.0) is None


def test_the_logarithm_of_a_negative_value_is_named_with_its_point():
    found = decay("exp(-u) + 3*(log(u) - 1)", -2.0)
    assert found is not None
    assert (found.expression, found.fault) == ("log(u)", Fault.VALUE)
    assert (found.term, found.kind) == ("decay", "equation")
    # u = 1 - 2t turns negative after t = 0.5; the grid has 64 cell centers.
    assert found.point == {"t": 32.5 / 64}
    assert found.arguments == pytest.approx({"u": 1 - 2 * 32.5 / 64})
    assert str(found) == (
        "log(u) has no finite value in the equation 'decay' at t = 0.5078 "
        "where u = -0.01562"
    )


@pytest.mark.parametrize(
    ("equation", "expression"),
    [
        ("u*sqrt(u)", "sqrt(u)"),
        ("d(u^1.5, t)", "u^1.5"),
        ("at(sqrt(u), t = 1)", "sqrt(u)|(t=1)"),
        ("where(u > -5, log(u), log(-9 + u))", "log(u)"),
        ("exp(1000*(2 - u)) - 1", "exp(1000 (2 - u))"),
        ("integral(log(u), s = [0, t])", "\N{INTEGRAL}[0, t] log(u) ds"),
    ],
)
def test_the_smallest_bad_part_is_named(equation, expression):
    found = decay(equation, -2.0)
    assert found is not None and found.expression == expression


def test_a_branch_that_is_not_taken_is_innocent():
    assert decay("where(u > 0, u, log(u^2))", -2.0) is None
    found = decay("where(u > 0, 1, log(u)) + log(1 + 2*(u - 1))", -0.75)
    assert found is not None
    # log(u) is finite everywhere here: u stays above 0.25.
    assert found.expression == "log(1 + 2 (u - 1))"


def test_a_gradient_that_blows_up_is_told_from_a_value():
    # Where u < 0 the root is not taken, but 0 times its NaN slope is NaN.
    found = decay("where(u > 0, u^0.3, 0)", -2.0)
    assert found is not None
    assert (found.expression, found.fault) == ("u^0.3", Fault.GRADIENT)
    assert found.point == {"t": 32.5 / 64}
    assert "no finite gradient" in str(found)


def test_zero_over_zero_at_a_boundary_names_the_condition():
    text = ROD.replace("EQUATION", "dx(u)*sin(x)/x = -u")
    objective, theta = objective_of(text)
    found = find(objective, theta)
    assert found is not None
    assert (found.term, found.kind) == ("left", "condition")
    assert found.expression in ("u_x sin(x)/x", "(u_x sin(x))/x")
    assert found.point["x"] == 0.0
    assert found.arguments["u_x sin(x)"] == 0.0


def test_a_broken_network_is_not_blamed_on_the_equation():
    objective, theta = objective_of(DECAY.replace("EQUATION", "-u"))
    found = find(objective, theta.at[0].set(jnp.nan))
    assert found is not None
    assert found.expression == "the network's part of u"


def test_data_that_are_not_finite_are_blamed_on_their_condition():
    text = DECAY.replace("[0, 1]", "[0, 1], x = [0, 1]").replace("EQUATION", "-u")
    objective, theta = objective_of(text.replace("u = 1", "u = log(x - 0.1)"))
    found = find(objective, theta)
    assert found is not None
    assert (found.expression, found.term) == ("log(x - 0.1)", "start")
    assert found.point["x"] < 0.1


def test_a_derivative_of_exact_data_names_the_data():
    text = ROD.replace("EQUATION", "dxx(u) = -u^2").replace("cos(x)", "x^1.5")
    objective, theta = objective_of(text.replace('"penalty"', '"exact"'))
    found = find(objective, theta)
    assert found is not None
    assert found.expression == "x^(-0.5) in the exact part of u_xx"
    assert found.term == "left" and found.arguments == {}


def test_a_residual_too_large_to_be_squared():
    found = decay("1e200*u", 1.0)
    assert found is not None
    assert found.fault is Fault.SIZE and found.point["t"] == pytest.approx(63.5 / 64)


def test_complex_fields_are_named_as_they_are_written():
    text = """
    coordinates = { t = [0, 1] }
    fields = [{ name = "h", complex = true }]
    [equations]
    wave = "1j*dt(h) = h/abs(h)^2"
    [conditions]
    start = { on = "t = 0", equation = "h = 0" }
    [solver]
    points = 8
    network = { width = 5, depth = 1 }
    """
    objective, theta = objective_of(text)
    found = find(objective, jnp.zeros_like(theta))
    assert found is not None and found.term == "wave.real"
    assert "abs(h)" in found.expression and found.arguments


def test_an_equation_given_as_a_function_is_named_by_its_point():
    def growth(u, point):
        return jax.grad(u)(point)[0] - jnp.log(u(point))

    table = {
        "coordinates": {"t": [0, 1]},
        "fields": ["u"],
        "equations": {"growth": growth},
        "conditions": {"start": {"on": "t = 0", "equation": "u = 1"}},
        "solver": {"points": 64, "sampler": "grid", "network": {"width": 5}},
    }
    objective, theta = objective_of(make_problem(table))
    found = find(objective, slope(theta, -2.0))
    assert found is not None
    assert (found.expression, found.term) == ("the residual", "growth")
    assert found.point == {"t": 32.5 / 64}
