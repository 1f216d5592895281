"""Corners of steady systems and of nonlinear equations: where they are singular, their
functions, and flows in cavities with them."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cavity_reference import PARABOLA, UNIT, cavity_velocity

from pinnlab import Solution, load_problem, loads_problem, solve
from pinnlab.equation.jets import jets
from pinnlab.fields import Model
from pinnlab.grids import result_grid
from pinnlab.network import Separable, Sum, in_arrays
from pinnlab.newton.corners import singular_corners
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.route import solve_separable
from pinnlab.probe import Probe
from pinnlab.scaling import parameters_of
from pinnlab.system.system import build_system
from pinnlab.verify.estimate import Estimate, estimated


ROOT = Path(__file__).parent.parent
CAVITY = """
coordinates = {{ x = [0, 2], y = [0, 1] }}
fields = ["u", "v", "p"]
[parameters]
nu = 0.1
[equations]
momentum_x = "u*dx(u) + v*dy(u) = -dx(p) + nu*lap(u)"
momentum_y = "u*dx(v) + v*dy(v) = -dy(p) + nu*lap(v)"
continuity = "div(u, v) = 0"
[conditions]
lid = {{ on = "y = 1", equation = ["u = {lid}", "v = 0"] }}
walls = {{ on = ["x = 0", "x = 2", "y = 0"], equation = ["u = 0", "v = 0"] }}
pressure = {{ on = "x = 0, y = 0", equation = "p = 0" }}
"""
PLATE = """
coordinates = {{ x = [0, 1], y = [0, 1] }}
fields = ["u"]
[equations]
balance = "-lap(u) + u^3 = {source}"
[conditions]
walls = {{ on = "boundary", equation = "u = 0" }}
"""


def cavity(lid):
    return build_system(loads_problem(CAVITY.format(lid=lid)), "rows")


def corners_of(system):
    return singular_corners(system, Compiled(system))


@pytest.mark.parametrize(
    ("lid", "orders"), [("1", [0, 0]), ("x*(2 - x)", [1, 1]), ("x^4*(2 - x)^4", [])]
)
def test_corners_below_a_lid_are_as_singular_as_its_speed(lid, orders):
    found = corners_of(cavity(lid))
    assert [c.order for c in found] == orders
    assert all(c.place[1] == 1 for c in found)


@pytest.mark.parametrize(
    ("source", "orders"), [("1", [2] * 4), ("sin(pi*x)*sin(pi*y)", [])]
)
def test_corners_of_a_nonlinear_equation(source, orders):
    system = build_system(loads_problem(PLATE.format(source=source)), "rows")
    assert [c.order for c in corners_of(system)] == orders


@pytest.mark.parametrize(("lid", "words"), [(UNIT, "1"), (PARABOLA, "x*(2 - x)")])
def test_stokes_flow_in_a_corner_is_a_sum_of_its_functions(lid, words):
    # The flows of `cavity_reference` belong to a lid of length 1.
    corner = corners_of(cavity(words))[0]
    rng = np.random.default_rng(0)
    points = corner.place + rng.uniform(0.05, 0.3, (300, 2)) * [1, -1]
    x, y = points.T
    flow = lid.corners(x, y)
    smooth = [x**i * y**j for i in range(9) for j in range(9 - i)]
    # The other corner's flow is smooth here.
    matrix = np.column_stack([corner.columns(points, (0, 0)), *smooth])
    matrix /= np.linalg.norm(matrix, axis=0)
    for values in (flow.y, flow.x):
        left = values - matrix @ np.linalg.lstsq(matrix, values, rcond=1e-14)[0]
        assert np.max(np.abs(left)) < 1e-7


def test_nodes_near_a_corner_lie_in_the_box_and_reach_its_shortest_side():
    for corner in corners_of(cavity("1")):
        unit = np.random.default_rng(1).random((500, 2))
        unit[0] = 1.0
        points = corner.near(unit)
        assert np.all((points >= 0) & (points <= [2, 1]))
        distance = np.linalg.norm(points - corner.place, axis=1)
        assert distance.max() == pytest.approx(1.0)
        assert np.sum(distance < 1e-2) > 150


@pytest.fixture(scope="module")
def flow():
    text = CAVITY.format(lid="1") + '[solver]\nstrategy = "separable"\n'
    return solve(loads_problem(text), target=0.1, budget=60.0, reference=False)


def test_a_flow_below_a_sliding_lid_knows_its_corners(flow):
    assert (
        "68 singular functions at (x = 0, y = 1) and (x = 2, y = 1)"
        in flow.report.strategy
    )


def test_arrays_give_what_the_jets_of_corners_give(flow):
    network = flow.model.network
    derivative = in_arrays(network)
    assert derivative is not None
    points = np.random.default_rng(2).uniform(0.02, 0.98, (20, 2)) * [2, 1]
    wanted = ((0, 0), (1, 0), (0, 2), (1, 1))
    with jax.enable_x64(True):
        found = jax.vmap(lambda p: jets(network, p, wanted))(jnp.asarray(points))
    for k, orders in enumerate(wanted):
        for f in range(3):
            exact = np.asarray(found)[:, k, f]
            scale = np.max(np.abs(exact))
            values = derivative(points, f, orders)
            np.testing.assert_allclose(values, exact, atol=1e-10 * scale)


def test_what_is_infinite_at_a_corner_is_shown_as_beside_it(flow):
    p = flow(x=np.array([0.0, 2e-3]), y=1.0)["p"]
    assert p[0] == pytest.approx(p[1], rel=0.05)
    assert abs(p[0]) > 10
    # The lid's own speed, as on the lid beside the corner.
    assert flow(x=0.0, y=1.0)["u"] == pytest.approx(1.0, abs=1e-3)


def test_a_saved_flow_is_the_same_flow(flow, tmp_path):
    flow.save(tmp_path / "flow.h5")
    again = Solution.load(tmp_path / "flow.h5")
    x, y = np.random.default_rng(3).random((2, 50))
    for name, values in flow(x=2 * x, y=y).items():
        np.testing.assert_array_equal(again(x=2 * x, y=y)[name], values)


@pytest.fixture(scope="module")
def plate():
    """-lap(u) + u^3 = 1 to many digits."""
    system = build_system(loads_problem(PLATE.format(source="1")), "rows")
    found = solve_separable(system, 1e-6, 60.0, lambda row: None)
    assert found.singular == 72 and found.network is not None
    derivative = in_arrays(found.network)
    assert derivative is not None
    return derivative


def test_a_nonlinear_plate_with_singular_corners_is_solved_to_many_digits(plate):
    points = np.random.default_rng(4).uniform(0, 1, (200, 2))
    u, xx, yy = (plate(points, 0, o) for o in ((0, 0), (2, 0), (0, 2)))
    # Near the corners too, where polynomials fail.
    assert np.max(np.abs(u**3 - xx - yy - 1)) < 1e-4


def test_a_finer_solution_tells_the_error_of_one_with_singular_corners(plate):
    problem = loads_problem(PLATE.format(source="1"))
    system = build_system(problem, "rows")
    network = solve_separable(system, 1.0, 60.0, lambda row: None).network
    assert isinstance(network, Sum) and isinstance(network.networks[0], Separable)
    network = eqx.tree_at(
        lambda n: (n.networks[0].coefficients, n.networks[1].coefficients),
        network,
        replace_fn=lambda c: 1.001 * c,
    )
    model, grid = Model(network, parameters_of(system)), result_grid(problem).points
    with jax.enable_x64(True):
        probe = Probe(system)
        estimate = estimated(probe, model, grid, 30.0, 1e-3)
        none = estimated(probe, model, grid, 1e-6, 1e-3)
        ours = probe.fields(model, grid)[:, 0]
    assert isinstance(estimate, Estimate) and estimate.how == "a finer solution"
    error = ours - plate(grid, 0, (0, 0))
    size = np.max(np.abs(error))
    assert size > 1e-5
    np.testing.assert_allclose(estimate.values["u"], error, atol=1e-2 * size)
    assert estimate.fields[0].rel_l2 == pytest.approx(1e-3, rel=1e-2)
    assert none == "there is no time for 17 x 17 modes"


@pytest.mark.slow
def test_stokes_flow_in_a_cavity_by_two_routes():
    text = CAVITY.format(lid="1").replace("[0, 2]", "[0, 1]").replace("x = 2", "x = 1")
    text = text.replace("u*dx(u) + v*dy(u) = ", "0 = ").replace(
        "u*dx(v) + v*dy(v) = ", "0 = "
    )
    for strategy in ("linear", "separable"):
        problem = loads_problem(text + f'[solver]\nstrategy = "{strategy}"\n')
        flow = solve(problem, target=1e-3, budget=15.0, reference=False)
        assert flow(x=0.5, y=0.5)["u"] == pytest.approx(-0.205191, abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "lid", "nu", "target", "bound"),
    [
        ("problems/cavity_100.toml", PARABOLA, 1e-2, 1e-3, 1e-5),
        ("experiments/problems/cavity_400.toml", UNIT, 1 / 400, 1e-1, 5e-3),
    ],
)
def test_flow_in_cavities(path, lid, nu, target, bound):
    system = build_system(load_problem(ROOT / path), "rows")
    found = solve_separable(system, target, 200.0, lambda row: None)
    assert found.network is not None
    derivative = in_arrays(found.network)
    assert derivative is not None
    g = np.linspace(0.05, 0.95, 19)
    x, y = (a.ravel() for a in np.meshgrid(g, g, indexing="ij"))
    exact = cavity_velocity(28 if nu == 1e-2 else 36, x, y, nu, lid)
    for k, values in enumerate(exact):
        ours = derivative(np.stack([x, y], axis=1), k, (0, 0))
        assert np.linalg.norm(ours - values) < bound * np.linalg.norm(values)
