"""Singular functions at corners and pieces of the domain, in the linear route."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfc, eval_hermite

from pinnlab import Solution, loads_problem, solve
from pinnlab.equation.jets import jets
from pinnlab.errors import ProblemError
from pinnlab.linear.box import Box
from pinnlab.linear.features import draw
from pinnlab.linear.partition import find_partition
from pinnlab.linear.search import Search
from pinnlab.linear.solver import sheet
from pinnlab.network import (
    AbstractNetwork,
    HeatCorners,
    LaplaceCorners,
    Piecewise,
    Sum,
    make_network,
)
from pinnlab.network.erfc import erfc_integrals
from pinnlab.network.pieces import stacked
from pinnlab.network.singular import heat_functions, laplace_functions
from pinnlab.settings import read_settings
from pinnlab.singular.corners import find_corners
from pinnlab.system.system import build_system


# ------------------------------------------------------------------- functions


def test_repeated_integrals_of_erfc_keep_their_digits_at_every_argument():
    z = np.array([0.0, 1e-3, 0.3, 1.0, 3.0, 8.0, 25.0])
    found = erfc_integrals(z, -5, 8)
    gauss = 2 / np.sqrt(np.pi) * np.exp(-(z**2))
    np.testing.assert_allclose(found[:, 5], erfc(z), rtol=1e-12)
    for k in range(1, 6):
        exact = gauss * eval_hermite(k - 1, z)
        np.testing.assert_allclose(found[:, 5 - k], exact, rtol=1e-12)
    # i^k erfc(z) ~ gauss / (2 z)^(k + 1) (1 - (k + 1) (k + 2) / (4 z^2)) far away.
    k = np.arange(9)
    far = gauss[-1] / 50.0 ** (k + 1) * (1 - (k + 1) * (k + 2) / 2500)
    np.testing.assert_allclose(found[-1, 5:], far, rtol=2e-3)


LOCAL = np.random.default_rng(3).uniform(0.05, 1.0, (40, 2))
HEAT = np.array([(0, k) for k in range(-3, 7)])
HARMONIC = np.array(
    [(2 * k + h, 0, m) for k in range(4) for h in (0, 1) for m in (0, 1, 2)]
)


def test_functions_without_extra_powers_solve_the_equations():
    by_time = heat_functions(LOCAL, HEAT, (1, 0))
    np.testing.assert_allclose(by_time, heat_functions(LOCAL, HEAT, (0, 2)) / 4)
    xx, yy = (laplace_functions(LOCAL, HARMONIC, o) for o in ((2, 0), (0, 2)))
    np.testing.assert_allclose(xx, -yy, rtol=1e-11, atol=1e-11)


def test_the_first_function_jumps_from_the_initial_to_the_boundary_value():
    powers, corner = np.array([[0, 0]]), np.array([[0.0, 0.5], [0.5, 0.0], [0.0, 0.0]])
    found = heat_functions(corner, powers, (0, 0)).ravel()
    np.testing.assert_allclose(found, [0, 1, 0], atol=1e-12)


# -------------------------------------------------------------------- networks

KEY = jax.random.key(0)
PLACES = np.array([[0.0, 2.0], [0.0, 1.0]])
SLOPES = np.array([[1.0, -0.7], [2.0, 0.5]])


def heat_corners() -> HeatCorners:
    powers = np.array([(j, n - 2 * j) for n in range(4) for j in range(n + 1)])
    weights = jax.random.normal(KEY, (2, 2, len(powers)))
    places, slopes = jnp.asarray(PLACES), jnp.asarray(SLOPES)
    return HeatCorners(places, slopes, jnp.asarray(powers), weights, 0)


def laplace_corners() -> LaplaceCorners:
    powers = np.array([(k, j, m) for k in range(5) for j in range(2) for m in range(3)])
    weights = jax.random.normal(KEY, (2, 2, 2 * len(powers)))
    places, slopes = jnp.asarray(PLACES), jnp.asarray(SLOPES)
    return LaplaceCorners(places, slopes, jnp.asarray(powers), weights)


def sum_of_networks() -> Sum:
    smooth = make_network(
        key=KEY, lower=(0.0, 0.0), upper=(1.0, 2.0), outputs=2, width=5, depth=1,
        activation="sin",
    )  # fmt: skip
    return Sum((smooth, laplace_corners()))


def in_pieces() -> Piecewise:
    one = sum_of_networks()
    other = jax.tree.map(lambda a: 2 * a if eqx.is_inexact_array(a) else a, one)
    return Piecewise(stacked([one, other]), jnp.asarray([1.2]), jnp.asarray(1))


NETWORKS = [heat_corners, in_pieces]
WANTED = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))


@pytest.mark.parametrize("make", NETWORKS)
def test_each_jet_is_the_slope_of_the_one_below_it(make):
    network, h = make(), 1e-5
    steps = jnp.asarray([[0, 0], [h, 0], [-h, 0], [0, h], [0, -h]])
    points = jnp.asarray([0.3, 1.4]) + steps
    found = jax.vmap(lambda p: jets(network, p, WANTED))(points)
    jet = dict(zip(WANTED, jnp.moveaxis(found, 1, 0), strict=True))
    np.testing.assert_allclose(jet[0, 0][0], network(points[0]), rtol=1e-12)
    for t, x in WANTED[:3]:
        slopes = [(jet[t, x][i] - jet[t, x][i + 1]) / (2 * h) for i in (1, 3)]
        for raised, slope in zip(((t + 1, x), (t, x + 1)), slopes, strict=True):
            if raised in jet:
                np.testing.assert_allclose(jet[raised][0], slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("make", NETWORKS)
def test_the_parameters_decide_the_precision(make):
    dtype = jnp.float32
    lower = lambda a: a.astype(dtype) if eqx.is_inexact_array(a) else a
    network: AbstractNetwork = jax.tree.map(lower, make())
    point = jnp.asarray([0.5, 1.0], dtype)
    assert network(point).dtype == dtype
    assert jets(network, point, ((0, 2), (1, 1))).dtype == dtype


def test_each_side_of_an_edge_has_its_own_network_and_the_edge_is_below():
    network = in_pieces()
    one = sum_of_networks()
    for x, upper in ((1.2, False), (1.21, True), (0.1, False), (1.9, True)):
        point = jnp.asarray([0.4, x])
        other = jax.tree.map(lambda a: 2 * a if eqx.is_inexact_array(a) else a, one)
        expected = (other if upper else one)(point)
        np.testing.assert_allclose(network(point), expected, rtol=1e-12)


# ------------------------------------------------------------------- detection

PLATE = """
coordinates = {{ x = [0, 1], y = [0, 2] }}
fields = ["u"]
[equations]
steady = "{equation}"
[conditions]
bottom = {{ on = "y = 0", equation = "{bottom}" }}
walls = {{ on = ["x = 0", "x = 1", "y = 2"], equation = "{walls}" }}
"""

HEATED = """
coordinates = {{ t = [0, 1], x = [0, 1] }}
fields = ["u"]
[equations]
heat = "dt(u) = 0.3*dxx(u) - dx(u)"
[conditions]
initial = {{ on = "t = 0", equation = "u = {initial}" }}
left = {{ on = "x = 0", equation = "{left}" }}
right = {{ on = "x = 1", equation = "u = 0" }}
"""


def plate(equation="lap(u) = 0", bottom="u = 0", walls="u = 0"):
    text = PLATE.format(equation=equation, bottom=bottom, walls=walls)
    return build_system(loads_problem(text), "rows")


def heated(initial="0", left="u = 0"):
    text = HEATED.format(initial=initial, left=left)
    return build_system(loads_problem(text), "rows")


ORDERS = [
    (lambda: plate(bottom="u = 1"), [0, 0]),
    (lambda: plate(bottom="u = 1", walls="dn(u) = -3*u"), [1, 1]),
    (lambda: plate(equation="dxx(u) + 3*dyy(u) = 1"), [2, 2, 2, 2]),
    (lambda: plate(equation="lap(u) = sin(pi*x)*sin(pi*y)"), []),
    (lambda: plate(equation="dxx(u) - dyy(u) = 1"), []),
    (lambda: heated(left="u = 1"), [0]),
    (lambda: heated(left="dx(u) = 1"), [1]),
    (lambda: heated(left="u = 3*t"), [2]),
    (lambda: heated(initial="x^6*(1 - x)^6", left="u = t^4"), []),
]


@pytest.mark.parametrize(("make", "orders"), ORDERS)
def test_data_that_disagree_at_corners_are_found_with_their_order(make, orders):
    assert [c.order for c in find_corners(make())] == orders


def test_the_functions_of_a_corner_solve_the_equation_that_was_found():
    system = plate(equation="2*dxx(u) + 3*dyy(u) = 1")
    points = np.random.default_rng(0).uniform(0.1, 0.9, (20, 2))
    for corner in find_corners(system):
        xx, yy = (corner.columns(points, o) for o in ((2, 0), (0, 2)))
        np.testing.assert_allclose(2 * xx, -3 * yy, rtol=1e-8, atol=1e-8)


# ------------------------------------------------------------------- partition

ROD = """
coordinates = {{ x = [0, 1] }}
fields = ["u"]
[definitions]
k = "where(x < 0.3, 1, 10)"
[equations]
rod = "{equation}"
[conditions]
left = {{ on = "x = 0", equation = "u = 0" }}
right = {{ on = "x = 1", equation = "u = {right}" }}
[exact]
u = "where(x < 0.3, x^2, {exact})"
[solver]
strategy = "linear"
"""
FLUX, FLUX_END = "0.09 + 0.1*(x^2 - 0.09)", "0.181"
SLOPE, SLOPE_END = "0.09 + 0.6*(x - 0.3) + 0.1*(x - 0.3)^2", "0.559"


@pytest.mark.parametrize(
    ("equation", "right", "exact"),
    [
        ("-2*dx(k*dx(u)) + 4 = 0", FLUX_END, FLUX),
        ("k*dxx(u) = 2", SLOPE_END, SLOPE),
    ],
)
def test_a_rod_of_two_materials_is_solved_as_well_as_one(equation, right, exact):
    text = ROD.format(equation=equation, right=right, exact=exact)
    solution = solve(loads_problem(text), target=1e-6, reference=False)
    assert "joined at x = 0.3" in solution.report.strategy
    assert solution.report.fields[0].rel_l2 < 1e-7


def test_steps_in_two_coordinates_make_no_pieces():
    system = plate(equation="lap(u) = where(x < 0.5, 1, 0) + heaviside(y - 1)")
    assert find_partition(system).count == 1


def test_features_of_a_piece_are_the_same_on_the_whole_box():
    rng = np.random.default_rng(0)
    box = Box(np.zeros(2), np.array([4.0, 9.0]))
    part = draw(7, box, np.array([0.0, 0.5]), np.ones(2), rng)
    every = part.on(np.zeros(2), np.array([1.0, 3.0]))
    points = rng.uniform(0, 1, (5, 2))
    np.testing.assert_allclose(
        every.waves(points)[0], part.waves(points)[0], atol=1e-13
    )


# ----------------------------------------------------------------------- whole

METALS = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["T"]
[definitions]
a = "where(x < 0.5, 1.14, 0.01)"
[equations]
heat = "dt(T) = dx(a*dx(T))"
[conditions]
initial = { on = "t = 0", equation = "T = 0" }
left = { on = "x = 0", equation = "T = 0" }
right = { on = "x = 1", equation = "T = 1" }
"""


@pytest.mark.slow
def test_a_jump_of_data_and_of_a_coefficient_together(tmp_path):
    problem = loads_problem(METALS)
    solution = solve(problem, target=1e-2, budget=60.0, reference=False)
    assert "singular functions at (t = 0, x = 1)" in solution.report.strategy
    # Before heat crosses the interface the layer at the wall is that of a half-space.
    x = np.linspace(0.6, 1.0, 9)
    exact = erfc((1 - x) / np.sqrt(4 * 0.01 * 0.2))
    points = np.stack([np.full(9, 0.2), x], axis=1)
    np.testing.assert_allclose(solution.values(points)["T"], exact, atol=1e-4)
    loaded = Solution.load(solution.save(tmp_path / "metals.h5"))
    points = np.random.default_rng(0).uniform(0, 1, (100, 2))
    for field, values in solution.values(points).items():
        assert np.array_equal(values, loaded.values(points)[field])


def test_the_residual_is_weighted_where_it_is_trained_and_where_it_is_tested():
    system = build_system(loads_problem(METALS), "rows")
    search = Search(system, 1.0, 0, lambda *row: False)
    (corner,) = search.space.corners
    for rows in (search.test, sheet(search.space, 400, 0)):
        (by_time,) = (p for p in rows.forms[0].pieces if p.orders == (1, 0))
        weights = corner.weights(by_time.location[:, 0], 2)
        assert weights.min() < 0.1 < weights.max() == 1.0
        np.testing.assert_allclose(by_time.coefficient[:, 0], weights)


def test_pieces_are_the_linear_strategys_alone():
    table = {"network": {"pieces": 2}}
    with pytest.raises(ProblemError, match="only the linear strategy"):
        read_settings(table)
    assert read_settings({"strategy": "linear", **table}).network.pieces == 2
