"""Separable features: derivatives, slabs, Gauss-Newton, and the route as a whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab import Solution, loads_problem, solve
from pinnlab.equation.expression import Expression, terms
from pinnlab.equation.jets import jets
from pinnlab.equation.structure import partials
from pinnlab.evaluation import Evaluator, field_expressions
from pinnlab.fields import Model
from pinnlab.network import Separable
from pinnlab.network.basis import chebyshev, harmonics, tail
from pinnlab.newton import route
from pinnlab.newton.memory import localized
from pinnlab.newton.space import Space, radau_nodes
from pinnlab.newton.structure import evolution_of
from pinnlab.newton.velocity import with_velocities
from pinnlab.system.system import build_system


PREDATORS = """
coordinates = { t = [0, 10] }
fields = ["r", "p"]
[equations]
prey = "dt(r) = 2*r - 0.04*r*p"
predator = "dt(p) = 0.02*r*p - 1.06*p"
[conditions]
initial = { on = "t = 0", equation = ["r = 100", "p = 15"] }
"""

SOLITON = """
coordinates = { t = [0, 1], x = [-10, 10] }
fields = ["u"]
periodic = ["x"]
[equations]
wave = "dt(u) + 6*u*dx(u) + dxxx(u) = 0"
[conditions]
initial = { on = "t = 0", equation = "u = 2/cosh(x)^2" }
"""

MEMORY = """
coordinates = { t = [0, 2] }
fields = ["u"]
[equations]
rate = "dt(u) = u^2 + 4*integral(at(u, t = s)^3, s = [0, t]) - 2"
[conditions]
initial = { on = "t = 0", equation = "u = 1" }
"""

TWO = """
coordinates = { t = [0, 2], x = [-1, 3] }
fields = ["u", "v"]
[equations]
first = "dt(u) = at(u, t = 2)"
second = "dt(v) = 0"
[conditions]
initial = { on = "t = 0", equation = ["u = 0", "v = 0"] }
"""

LAYERS = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
explosion = "dxx(u) + exp(u) = 0"
[conditions]
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
[solver]
strategy = "separable"
"""


def random_network() -> Separable:
    key = jax.random.key(0)
    coefficients = jax.random.normal(key, (3, 2, 5, 7))
    edges = jnp.asarray([0.0, 0.5, 0.8, 2.0])
    return Separable(coefficients, edges, 0, (0.0, -1.0), (2.0, 3.0), (1,))


@pytest.mark.parametrize("family", [chebyshev, harmonics])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_functions_derivatives_are_those_of_their_values(family, order):
    z, h = np.linspace(-0.9, 0.9, 7), 1e-4
    slope = (family(z + h, 9, order - 1) - family(z - h, 9, order - 1)) / (2 * h)
    np.testing.assert_allclose(
        family(z, 9, order), slope, rtol=1e-6, atol=1e-4 * 30**order
    )


def test_jets_of_a_separable_network_agree_with_nested_derivatives():
    network, point = random_network(), jnp.asarray([0.6, 0.3])
    wanted = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 3))
    found = jets(network, point, wanted)
    dx = lambda f: lambda p: jax.jvp(f, (p,), (jnp.asarray([0.0, 1.0]),))[1]
    dt = lambda f: lambda p: jax.jvp(f, (p,), (jnp.asarray([1.0, 0.0]),))[1]
    expected = [network, dt(network), dx(network), dt(dx(network)), dx(dx(dx(network)))]
    for row, function in zip(found, expected, strict=True):
        np.testing.assert_allclose(row, function(point), rtol=1e-10)


def test_a_point_belongs_to_its_slab_and_the_ends_to_theirs():
    network = random_network()
    for t, slab in ((0.0, 0), (0.5, 0), (0.51, 1), (0.8, 1), (2.0, 2)):
        point = jnp.asarray([t, 0.3])
        assert network.slabs_of(np.asarray(point)[None]) == slab


@pytest.mark.parametrize("grid", [False, True])
def test_derivatives_at_many_points_are_the_jets_there(grid):
    shape, box = (2, 3, 5, 4, 6), ((0.0, -1.0, 2.0), (2.0, 3.0, 2.5))
    edges, rng = jnp.asarray([-1.0, 0.4, 3.0]), np.random.default_rng(0)
    coefficients = jax.random.normal(jax.random.key(0), shape)
    network = Separable(coefficients, edges, 1, *box, (0,))
    points = rng.uniform(*box, (200, 3))
    if grid:
        lines = [column[:5] for column in points.T]
        points = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 3)
    wanted = ((0, 0, 0), (1, 0, 0), (0, 1, 2), (2, 1, 1))
    expected = jax.vmap(lambda p: jets(network, p, wanted))(jnp.asarray(points))
    for k, orders in enumerate(wanted):
        for output in range(3):
            found = network.derivative(points, output, orders)
            np.testing.assert_allclose(
                found, expected[:, k, output], rtol=1e-10, atol=1e-10
            )


@pytest.mark.parametrize("elsewhere", [False, True])
def test_many_points_are_evaluated_in_arrays(elsewhere):
    network = random_network()
    system = build_system(loads_problem(TWO, "two"), "rows")
    residual = system.equations[0].residual
    assert isinstance(residual, Expression)
    values = list(field_expressions(system))
    if elsewhere:  # The value at t = 2 is not of the point's own slab.
        values.append(terms(residual)[-1])
    rng = np.random.default_rng(0)
    points = np.stack([rng.uniform(0, 2, 300), rng.uniform(-1, 3, 300)], axis=1)
    points[:3, 0] = 0.5, 0.8, 2.0
    model, evaluator = Model(network, {}), Evaluator(system, values)
    found = evaluator(model, points)
    expected = jax.vmap(network)(jnp.asarray(points))
    np.testing.assert_allclose(found[:, :2], expected, rtol=1e-12, atol=1e-12)
    for i in (0, 1, 2, 200):
        alone = evaluator(model, points[i : i + 1])[0]
        np.testing.assert_allclose(alone, found[i], rtol=1e-12)
    if elsewhere:
        ends = points.copy()
        ends[:, 0] = 2.0
        late = jax.vmap(network)(jnp.asarray(ends))
        np.testing.assert_allclose(np.abs(found[:, 2]), np.abs(late[:, 0]), rtol=1e-12)


def test_radau_nodes_integrate_exactly_up_to_their_degree():
    nodes = radau_nodes(4)
    weights = np.linalg.solve(
        np.vander(nodes, 4, increasing=True).T,
        [(1 - (-1) ** (k + 1)) / (k + 1) for k in range(4)],
    )
    for k in range(7):
        exact = (1 - (-1) ** (k + 1)) / (k + 1)
        assert weights @ nodes**k == pytest.approx(exact, abs=1e-13)
    assert nodes[-1] == 1.0


def test_unknown_numbers_do_not_touch_the_initial_data():
    space = Space((6, 5), (), 0, (1, 0))
    row = space.functions(0, np.array([-1.0]), 0)[0]
    np.testing.assert_allclose(row @ space.unknown(0), 0.0, atol=1e-13)
    data = np.arange(5.0)
    np.testing.assert_allclose(row @ space.lift(0, data), data)
    # Without initial data there are as many numbers as nodes, of lower degree.
    assert space.unknown(1).shape == (6, 5) and len(space.nodes(0)) == 5
    assert not space.lift(1, data).any()


def test_the_tail_is_the_share_of_the_highest_degrees():
    assert tail(np.array([3.0, 0.0, 0.0, 4.0]), 0, False) == pytest.approx(0.8)
    assert tail(np.array([1.0, 0.0, 0.0]), 0, True) == 1.0


def test_populations_are_followed_over_many_cycles():
    solution = solve(
        loads_problem(PREDATORS, "predators"), target=1e-6, budget=30, reference=False
    )
    values = solution(t=np.array([1.0, 5.0, 10.0]))
    assert isinstance(values, dict)
    # Values to six decimals by an eighth-order Runge-Kutta method.
    np.testing.assert_allclose(
        values["r"], [120.660025, 100.163868, 100.327928], rtol=1e-7
    )
    np.testing.assert_allclose(
        values["p"], [108.651742, 15.016532, 15.033140], rtol=1e-6
    )
    assert "slabs" in solution.report.strategy


def test_a_soliton_travels_unchanged_and_is_saved(tmp_path):
    solution = solve(
        loads_problem(SOLITON, "soliton"), target=1e-4, budget=60, reference=False
    )
    x = np.linspace(-6, 9, 50)
    # The speed of u = 2 sech^2 is 4; the domain is long enough for its tails.
    exact = 2 / np.cosh(x - 4.0) ** 2
    found = solution.values(np.stack([np.ones_like(x), x], axis=1))["u"]
    np.testing.assert_allclose(found, exact, atol=2e-4)
    again = Solution.load(solution.save(tmp_path / "soliton.h5"))
    np.testing.assert_array_equal(again(t=0.7, x=x), solution(t=0.7, x=x))


BREATHER = """
coordinates = { t = [0, 4], x = [-5, 5] }
fields = ["u"]
[parameters]
omega = 0.6
[definitions]
k = "sqrt(1 - omega^2)"
breather = "4*atan(k/omega*sin(omega*t)/cosh(k*x))"
[equations]
wave = "dtt(u) - dxx(u) + sin(u) = 0"
[conditions]
initial = { on = "t = 0", equation = ["u = 0", "dt(u) = 4*k/cosh(k*x)"] }
ends = { on = ["x = -5", "x = 5"], equation = "u = breather" }
"""


def test_waves_stay_stable_over_many_slabs():
    # Noise of the highest modes grew a thousand times from slab to slab.
    system = build_system(loads_problem(BREATHER, "breather"), "rows")
    network = route.solve_separable(system, 1e-3, 60.0, lambda row: None).network
    assert isinstance(network, Separable)
    assert network.coefficients.shape[1] == 1
    t, x = (a.ravel() for a in np.meshgrid(np.linspace(0, 4, 9), np.linspace(-5, 5, 9)))
    exact = 4 * np.arctan(4 / 3 * np.sin(0.6 * t) / np.cosh(0.8 * x))
    found = network.derivative(np.stack([t, x], axis=1), 0, (0, 0))
    assert np.linalg.norm(found - exact) < 1e-6 * np.linalg.norm(exact)


def test_second_derivatives_in_time_become_velocities():
    text = BREATHER.replace("dtt(u) - dxx(u)", "dtt(u) + dt(u)*dtx(u) - dxx(u)")
    system = build_system(loads_problem(text, "breather"), "rows")
    evolution = evolution_of(system)
    assert evolution is not None and evolution.initial == (2,)
    found, first = with_velocities(system, evolution)
    assert found.fields == ("u", "velocity of u")
    assert first.initial == (1, 1) and first.velocity_of == {1: 0}
    assert with_velocities(found, first) == (found, first)
    orders = {
        (p.field, p.orders)
        for t in found.equations
        if isinstance(t.residual, Expression)
        for p in partials(t.residual)
    }
    v = "velocity of u"
    assert orders == {
        (v, (1, 0)), (v, (0, 0)), (v, (0, 1)), ("u", (0, 2)), ("u", (0, 0))
    }  # fmt: skip


def test_a_velocity_is_the_slope_at_the_nodes_and_starts_as_told():
    space = Space((6, 5), (), 0, (1, 1), velocity_of={1: 0})
    assert space.independent == (0,) and space.source(1) == 0
    assert space.raised(1, (0, 2)) == (1, 2) and space.raised(0, (0, 2)) == (0, 2)
    numbers, data = np.random.default_rng(0).normal(size=(2, 5))
    field = space.unknown(0) @ numbers
    velocity = space.unknown(1) @ numbers + space.lift(1, data)[:, 0]
    at = lambda z, order: space.functions(0, z, order)
    nodes, start = space.nodes(0), np.array([-1.0])
    np.testing.assert_allclose(at(nodes, 0) @ velocity, at(nodes, 1) @ field)
    np.testing.assert_allclose(at(start, 0) @ velocity, data[0])
    # It is no derivative elsewhere: that would be of lower degree.
    assert abs(velocity[-1]) > 1e-3


def test_a_steady_nonlinear_problem_is_solved_to_rounding():
    solution = solve(
        loads_problem(LAYERS, "bratu"), target=1e-10, budget=30, reference=False
    )
    # u(1/2) = 2 log(cosh(theta/4) / ...) with theta = sqrt(2) cosh(theta/4).
    theta = 1.517164599
    assert solution(x=0.5) == pytest.approx(2 * np.log(np.cosh(theta / 4)), abs=1e-8)


def test_integrals_over_the_past_march_as_fields_of_their_own():
    # For u = 1/(1 + t) four times the integral is 2 - 2 u^2, so the rate is -u^2.
    problem = loads_problem(MEMORY, "memory.toml")
    solution = solve(problem, target=1e-9, budget=20)
    times = np.linspace(0, 2, 9)
    found = solution.values(times[:, None])["u"]
    assert np.max(np.abs(found - 1 / (1 + times))) < 1e-9
    assert set(solution.values(times[:, None])) == {"u"}


def test_a_kernel_of_two_times_is_no_memory():
    text = MEMORY.replace("at(u", "(t - s)*at(u")
    system = build_system(loads_problem(text, "kernel.toml"), "rows")
    assert localized(system) is system
    assert not route.suits(system)


def test_what_is_no_evolution_is_seen():
    terminal = PREDATORS.replace('on = "t = 0"', 'on = "t = 10"')
    assert evolution_of(build_system(loads_problem(terminal), "rows")) is None
    few = PREDATORS.replace('["r = 100", "p = 15"]', '"r = 100"')
    assert evolution_of(build_system(loads_problem(few), "rows")) is None
    system = build_system(loads_problem(SOLITON), "rows")
    evolution = evolution_of(system)
    assert evolution is not None and evolution.initial == (1,)
    assert route.suits(system)


def test_a_route_without_a_solution_says_so():
    problem = LAYERS.replace("exp(u)", "5*exp(u)")
    with pytest.raises(FloatingPointError, match="separable route found no solution"):
        solve(loads_problem(problem, "no solution"), budget=10)
