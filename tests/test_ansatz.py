"""Exact conditions: the ansatz meets the data for any network output whatever."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Expression
from pinnlab.problem.file import loads_problem
from pinnlab.sampling import sample
from pinnlab.system.system import build_system


def wild(point):
    """A stand-in for the network: smooth, and zero nowhere in particular."""
    phase = jnp.sum(point * jnp.arange(1.0, point.size + 1))
    return 1.3 + jnp.sin(phase + 0.4) + 0.3 * jnp.cos(2.1 * phase)


def partials(place, wanted):
    found = []
    for _, orders in wanted:
        f = wild
        for i, n in enumerate(orders):
            for _ in range(n):
                f = lambda p, f=f, i=i: jax.jacfwd(f)(p)[i]
        found.append(f(place))
    return found


def violation(system, term):
    """The largest residual of a term with the wild network in the ansatz."""
    assert isinstance(term.residual, Expression)
    residual = system.imposed(term.residual)
    points = jnp.asarray(sample(system.problem, term.place, 32, seed=1))

    def one(point):
        values = dict(zip(system.coordinates, point, strict=True))
        return jnp.asarray(evaluate((residual,), Surroundings(values, {}, partials))[0])

    return float(jnp.max(jnp.abs(jax.vmap(one)(points))))


HEAD = 'title = "t"\nfields = ["u"]\n'
CASES = {
    "values in time and space": """
coordinates = { t = [0, 2], x = [-1, 3] }
[equations]
e = "dt(u) = dxx(u)"
[conditions]
a = { on = "t = 0", equation = "u = (x + 1)*(3 - x)" }
b = { on = ["x = -1", "x = 3"], equation = "u = sin(t)" }
""",
    "value and velocity": """
coordinates = { t = [0, 2], x = [0, 1] }
[equations]
e = "dtt(u) = dxx(u)"
[conditions]
a = { on = "t = 0", equation = ["u = sin(pi*x)", "dt(u) = x*(1 - x)"] }
b = { on = ["x = 0", "x = 1"], equation = "u = 0" }
""",
    "clamped ends": """
coordinates = { x = [0, 2] }
[equations]
e = "dxxxx(u) = -1"
[conditions]
a = { on = ["x = 0", "x = 2"], equation = ["u = 1", "dn(u) = 2"] }
""",
    "hinged ends": """
coordinates = { x = [0, 2] }
[equations]
e = "dxxxx(u) = -1"
[conditions]
a = { on = ["x = 0", "x = 2"], equation = ["u = 1", "dxx(u) = 3"] }
""",
    "insulated ends of a heated rod": """
coordinates = { t = [0, 1], x = [0, 2] }
[equations]
e = "dt(u) = dxx(u)"
[conditions]
a = { on = "t = 0", equation = "u = cos(pi*x)" }
b = { on = ["x = 0", "x = 2"], equation = "dn(u) = 0" }
""",
    "a mixed rectangle": """
coordinates = { x = [0, 2], y = [0, 1] }
[equations]
e = "lap(u) = 1"
[conditions]
a = { on = ["y = 0", "y = 1"], equation = "u = x^2" }
b = { on = "x = 0", equation = "dn(u) = 0" }
c = { on = "x = 2", equation = "dx(u) = 4" }
""",
    "a cube": """
coordinates = { x = [0, 1], y = [0, 1], z = [0, 1] }
[equations]
e = "lap(u) = 1"
[conditions]
a = { on = "boundary", equation = "u = sin(x)*cos(y)*exp(z)" }
""",
}


@pytest.mark.parametrize("name", CASES)
def test_exact_conditions_hold_for_any_network(name):
    system = build_system(loads_problem(HEAD + CASES[name], name))
    assert all(c.enforced == "exact" for c in system.conditions), [
        (c.name, c.why) for c in system.conditions
    ]
    for term in system.conditions:
        assert violation(system, term) < 1e-11, term.name


@pytest.mark.parametrize("name", CASES)
def test_the_network_still_moves_the_solution(name):
    system = build_system(loads_problem(HEAD + CASES[name], name))
    residual = system.equations[0].residual
    assert isinstance(residual, Expression)
    assert system.imposed(residual) != system.imposed(residual, network=False)


def penalties(text):
    system = build_system(loads_problem(HEAD + text, "case"))
    return {c.name + "@" + c.place.text: c.why for c in system.penalties}


def test_data_that_disagree_at_a_corner_are_not_forced():
    found = penalties("""
coordinates = { t = [0, 1], x = [0, 10] }
[equations]
e = "dt(u) = dxx(u) + dx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = 0" }
left = { on = "x = 0", equation = "u = 0" }
right = { on = "x = 10", equation = "u = 1" }
""")
    assert list(found) == ["right@x = 10"]
    assert "disagree" in found["right@x = 10"]


def test_only_the_lid_of_a_cavity_is_a_penalty():
    found = penalties("""
coordinates = { x = [0, 1], y = [0, 1] }
[equations]
e = "lap(u) = 0"
[conditions]
lid = { on = "y = 1", equation = "u = 1" }
rest = { on = ["y = 0", "x = 0", "x = 1"], equation = "u = 0" }
""")
    assert list(found) == ["lid@y = 1"]


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("dn(u) = -3*u", "combines"),
        ("u^2 = 1", "not linear"),
        ("u = abs(x - 0.3)", "kink"),
        ("dx(u) = 0", "along"),
        ("x*u = 0", "coefficient"),
    ],
)
def test_what_stays_a_penalty_says_why(equation, reason):
    found = penalties(f"""
coordinates = {{ x = [0, 1], y = [0, 1] }}
[equations]
e = "lap(u) = 0"
[conditions]
a = {{ on = "y = 1", equation = "{equation}" }}
b = {{ on = "y = 0", equation = "u = 0" }}
""")
    assert reason in found["a@y = 1"]


PERIODIC = """
coordinates = { t = [0, 1], x = [-1, 1] }
periodic = ["x"]
[equations]
e = "dt(u) = dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = INITIAL" }
"""


@pytest.mark.parametrize("initial", ["x^2*cos(pi*x)", "x", "2/cosh(5*x)"])
def test_data_with_a_kink_at_the_periodic_ends_are_not_built_in(initial):
    # The lift would keep the kink for all time: tiny residuals, and a wrong solution.
    found = penalties(PERIODIC.replace("INITIAL", initial))
    assert found == {
        "initial@t = 0": "the data are not smooth across the periodic ends"
    }


@pytest.mark.parametrize("initial", ["cos(pi*x)", "exp(sin(pi*x))"])
def test_smooth_periodic_data_are_built_in(initial):
    assert penalties(PERIODIC.replace("INITIAL", initial)) == {}


def test_a_second_neumann_axis_is_a_penalty():
    found = penalties("""
coordinates = { x = [0, 1], y = [0, 1] }
[equations]
e = "lap(u) = u"
[conditions]
a = { on = "boundary", equation = "dn(u) = 0" }
""")
    assert len(found) == 2
    assert all("Neumann" in why for why in found.values())


def test_a_penalty_can_be_asked_for():
    found = penalties("""
coordinates = { x = [0, 1] }
[equations]
e = "dxx(u) = 0"
[conditions]
a = { on = "x = 0", equation = "u = 0", enforce = "penalty" }
b = { on = "x = 1", equation = "u = 1" }
""")
    assert found == {"a@x = 0": "asked for"}


def test_derivatives_of_the_ansatz_agree_with_nested_ones():
    system = build_system(loads_problem(HEAD + CASES["clamped ends"], "beam"))
    ansatz = system.ansatz["u"]

    def field(v, order):
        expression = ansatz.derivative((order,), ("x",))
        around = Surroundings({"x": v}, {}, lambda p, w: partials(p, w))
        return jnp.asarray(evaluate((expression,), around)[0])

    for order in range(4):
        ours = field(jnp.asarray(0.7), order + 1)
        nested = jax.grad(lambda v, o=order: field(v, o))(0.7)
        np.testing.assert_allclose(ours, nested, rtol=1e-10)


def test_a_lift_over_many_axes_is_not_built():
    axes = [f"x{i}" for i in range(1, 7)]
    lines = ", ".join(f"{a} = [0, 1]" for a in axes)
    laplacian = " + ".join(f"d(u, {a}, {a})" for a in axes)
    system = build_system(
        loads_problem(
            f'coordinates = {{ {lines} }}\nfields = ["u"]\n[equations]\n'
            f'balance = "{laplacian} = 0"\n[conditions]\n'
            'walls = { on = "boundary", equation = "u = x1*x2" }\n'
        )
    )
    assert len(system.penalties) == 12
    assert {t.why for t in system.penalties} == {"faces of more than 4 coordinates"}
