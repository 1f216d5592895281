"""Networks: shapes, fixed features, periodicity, and what is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from untrained import make_solution

from pinnlab import Solution, loads_problem
from pinnlab.equation.activations import NAMES
from pinnlab.equation.jets import jets
from pinnlab.errors import ProblemError
from pinnlab.network import (
    FBPINN,
    KINDS,
    MLP,
    AbstractNetwork,
    ChebyshevKAN,
    Layer,
    PirateNet,
    make_network,
)
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system


LOWER, UPPER = (0.0, -3.0), (2.0, 5.0)


def network(**options) -> AbstractNetwork:
    settings = {"outputs": 2, "width": 7, "depth": 2, **options}
    return make_network(key=jax.random.key(1), lower=LOWER, upper=UPPER, **settings)


def count(net: AbstractNetwork) -> int:
    trained = eqx.filter(net, eqx.is_inexact_array)
    return sum(a.size for a in jax.tree.leaves(trained))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_parameters_decide_the_precision(name, dtype):
    net = jax.tree.map(lambda a: a.astype(dtype), network(activation=name))
    point = jnp.asarray([0.5, 1.0], dtype)
    assert net(point).dtype == dtype
    assert jets(net, point, ((0, 2), (1, 1))).dtype == dtype


def test_only_weights_and_biases_are_trained():
    plain = (2 * 7 + 7) + (7 * 7 + 7) + (7 * 2 + 2)
    assert count(network()) == plain
    assert count(network(scales=(2.0, 3.0))) == plain
    assert count(network(factorized=True)) == plain + 7 + 7 + 2
    assert count(network(separate=True)) == 2 * ((2 * 7 + 7) + (7 * 7 + 7) + 8)
    assert count(network(fourier=5)) == plain + 5 * 7
    assert count(network(periodic=(1,), harmonics=3)) == plain + 5 * 7


def test_scaling_makes_the_network_independent_of_the_units():
    unit = make_network(
        key=jax.random.key(1), lower=(-1.0, -1.0), upper=(1.0, 1.0), outputs=2,
        width=7, depth=2,
    )  # fmt: skip
    z = jnp.asarray([0.25, -0.5])
    lower, upper = jnp.asarray(LOWER), jnp.asarray(UPPER)
    found = network()(lower + (z + 1) / 2 * (upper - lower))
    np.testing.assert_allclose(found, unit(z), rtol=1e-13)


def test_output_scales_multiply():
    point = jnp.asarray([0.5, 1.0])
    scaled = network(scales=(10.0, 0.1))(point)
    np.testing.assert_allclose(scaled, network()(point) * np.array([10, 0.1]))


def test_factorized_weights_act_as_their_product():
    net = network(factorized=True)
    assert isinstance(net, MLP)
    layer = net.layers[1]
    assert layer.log_scale is not None
    expected = np.diag(np.exp(layer.log_scale)) @ layer.weight
    np.testing.assert_allclose(layer.matrix, expected)


@pytest.mark.parametrize("periodic", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("fourier", [0, 4])
def test_periodic_networks_have_equal_derivatives_at_both_ends(periodic, fourier):
    net = network(periodic=periodic, harmonics=3, fourier=fourier)
    wanted = ((0, 0), (1, 0), (0, 1), (2, 1), (0, 3))
    here = jnp.asarray([0.3, 0.7])
    for axis in periodic:
        left = jets(net, here.at[axis].set(LOWER[axis]), wanted)
        right = jets(net, here.at[axis].set(UPPER[axis]), wanted)
        np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-12)


def test_a_periodic_coordinate_does_matter():
    net = network(periodic=(1,))
    assert abs(net(jnp.asarray([0.3, 0.0])) - net(jnp.asarray([0.3, 1.0]))).max() > 1e-3


def test_separate_networks_share_nothing():
    net = network(separate=True)
    point = jnp.asarray([0.3, 0.0])
    gradient = jax.grad(lambda n: n(point)[0])(net)
    first, second = (jax.tree.leaves(n) for n in gradient.networks)
    assert any(bool(jnp.any(a != 0)) for a in first)
    assert all(bool(jnp.all(a == 0)) for a in second)


def test_keys_decide_the_network():
    make = lambda seed: make_network(
        key=jax.random.key(seed), lower=LOWER, upper=UPPER, outputs=1, width=4,
        depth=2, fourier=3,
    )  # fmt: skip
    point = jnp.asarray([0.3, 0.2])
    assert make(0)(point) == make(0)(point)
    assert make(0)(point) != make(1)(point)


@pytest.mark.parametrize("name", NAMES)
def test_first_values_neither_vanish_nor_explode_with_depth(name):
    net = make_network(
        key=jax.random.key(2), lower=LOWER, upper=UPPER, outputs=32, width=64,
        depth=6, activation=name,
    )  # fmt: skip
    points = jax.random.uniform(jax.random.key(0), (64, 2), minval=0.0, maxval=2.0)
    size = float(jnp.sqrt(jnp.mean(jax.jit(jax.vmap(net))(points) ** 2)))
    assert 0.1 < size < 3


def test_the_plain_call_has_a_hessian_and_forward_derivatives():
    net, point = network(), jnp.asarray([0.3, 0.2])
    hessian = jax.jit(jax.hessian(net))(point)
    wanted = ((2, 0), (1, 1), (0, 2))
    found = jets(net, point, wanted)
    indices = ((0, 0), (0, 1), (1, 1))
    expected = jnp.stack([hessian[:, i, j] for i, j in indices])
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    forward, backward = jax.jacfwd(net)(point), jax.jacrev(net)(point)
    np.testing.assert_allclose(forward, backward, rtol=1e-12)


def test_a_new_parameter_value_does_not_recompile():
    traces = 0

    @eqx.filter_jit
    def value(net: AbstractNetwork, point: Array) -> Array:
        nonlocal traces
        traces += 1
        return net(point)

    net = network(fourier=2, periodic=(0,))
    for shift in (0.0, 1.0):
        moved = jax.tree.map(lambda a, s=shift: a + s, net)
        value(moved, jnp.ones(2) * shift)
    assert traces == 1


# -------------------------------------------------------------------- every kind


EVERY = pytest.mark.parametrize("kind", KINDS)


def moved(kind: str, **options) -> AbstractNetwork:
    """A network away from its special first values (alpha = 0)."""
    net = network(kind=kind, **options)
    return jax.tree.map(lambda a: a + 0.1 if a.ndim == 0 else a, net)


FEATURES = {"periodic": (1,), "harmonics": 2, "fourier": 3}


@pytest.mark.parametrize(
    ("kind", "options", "wanted"),
    [
        *((k, {}, ((0, 0), (2, 0), (1, 2))) for k in KINDS),
        *((k, FEATURES, ((1, 1), (0, 2))) for k in ("piratenet", "fbpinn", "spinn")),
    ],
)
def test_jets_of_every_kind_are_the_nested_derivatives(kind, options, wanted):
    net, point = moved(kind, **options), jnp.asarray([0.7, -0.4])
    both = jax.jit(
        lambda n, x: (jets(n, x, wanted), jnp.stack([_nested(n, x, o) for o in wanted]))
    )
    found, expected = both(net, point)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def _nested(function, place, orders):
    for i, count in enumerate(orders):
        direction = jnp.zeros_like(place).at[i].set(1)
        for _ in range(count):
            function = lambda x, f=function, d=direction: jax.jvp(f, (x,), (d,))[1]
    return function(place)


@EVERY
def test_every_kind_keeps_its_precision_and_batches(kind):
    net = jax.tree.map(lambda a: a.astype(jnp.float32), moved(kind, separate=True))
    points = jnp.asarray([[0.5, 1.0], [0.1, -2.0]], jnp.float32)
    found = jax.jit(jax.vmap(lambda x: jets(net, x, ((0, 0), (0, 2)))))(points)
    assert found.dtype == jnp.float32
    assert found.shape == (2, 2, 2)
    np.testing.assert_allclose(found[:, 0], jax.vmap(net)(points), rtol=1e-4, atol=1e-5)


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="unknown kind of network 'cnn'"):
        network(kind="cnn")


def test_a_piratenet_is_linear_in_its_features_at_first():
    net = network(kind="piratenet", fourier=5)
    assert isinstance(net, PirateNet)
    point = jnp.asarray([0.7, -0.4])
    np.testing.assert_allclose(net(point), net.last(net.features(point)))
    changed = jax.grad(lambda n: n(point)[0])(net)
    assert all(abs(b.alpha) > 0 for b in changed.blocks)


def test_the_windows_of_an_fbpinn_add_up_to_one_and_separate_the_networks():
    net = network(kind="fbpinn", windows=(3, 2))
    assert isinstance(net, FBPINN)
    last = net.layers[-1]
    # With constant networks the values are those of the windows.
    flat = Layer(jnp.zeros_like(last.weight), jnp.ones_like(last.bias))
    ones = eqx.tree_at(lambda n: n.layers[-1], net, flat)
    points = jax.random.uniform(jax.random.key(3), (20, 2), minval=0.0, maxval=2.0)
    np.testing.assert_allclose(jax.vmap(ones)(points), 1, rtol=1e-14)
    number = jnp.arange(6.0)[:, None] * jnp.ones((6, 2))
    named = eqx.tree_at(lambda n: n.layers[-1].bias, ones, number)
    for x, y, expected in ((0, -3, 0), (0, 5, 1), (1, -3, 2), (2, 5, 5)):
        found = named(jnp.asarray([x, y], float))
        np.testing.assert_allclose(found, expected, atol=0.1)


def test_a_kan_of_one_layer_is_a_chebyshev_series():
    net = network(kind="kan", depth=0, degree=5)
    assert isinstance(net, ChebyshevKAN)
    point = jnp.asarray([0.7, -0.4])
    z = np.tanh(np.asarray(net.features(point)))
    every = np.concatenate([np.polynomial.Chebyshev.basis(k)(z) for k in range(1, 6)])
    np.testing.assert_allclose(
        net(point), net.layers[0](jnp.asarray(every)), rtol=1e-13
    )


def test_sirens_have_angles_of_variance_one():
    net = network(kind="siren", width=200, depth=4, frequency=30.0)
    assert isinstance(net, MLP)
    points = jax.random.uniform(jax.random.key(3), (100, 2), minval=0.0, maxval=2.0)
    x = jax.vmap(net.features)(points)
    assert float(jnp.max(jnp.abs(net.layers[0].weight))) <= 15
    for layer in net.layers[:-1]:
        x = jnp.sin(jax.vmap(layer)(x))
        assert abs(float(jnp.mean(x**2)) - 0.5) < 0.1


def test_a_spinn_of_rank_one_is_a_product():
    net = network(kind="spinn", width=1, depth=1, outputs=1)
    value = lambda t, x: net(jnp.asarray([t, x], float))
    product = value(0.2, 1) * value(1.5, -2)
    np.testing.assert_allclose(product, value(0.2, -2) * value(1.5, 1), rtol=1e-12)


HEAT = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u", "v"]
[equations]
one = "dt(u) = dxx(u) + v"
two = "dt(v) = dxx(v) - u"
[conditions]
initial = { on = "t = 0", equation = ["u = 1", "v = x"] }
[solver.network]
"""


DECAY = """
coordinates = { t = [0, 1] }
fields = ["u"]
[equations]
decay = "dt(u) = -u"
[conditions]
start = { on = "t = 0", equation = "u = 1" }
[solver.network]
"""


@EVERY
def test_a_file_holds_every_kind_bit_for_bit(kind, tmp_path):
    text = DECAY + f'kind = "{kind}"\nwidth = 5\ndepth = 1'
    solution = make_solution(text, {"t": np.linspace(0, 1, 3)})
    found = Solution.load(solution.save(tmp_path / "run.h5"))
    points = np.random.default_rng(0).random((10, 1))
    for name, values in solution.values(points).items():
        np.testing.assert_array_equal(found.values(points)[name], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "cnn"', r"unknown value 'cnn' \(one of: mlp, "),
        ('kind = "fbpinn"\nwindows = [2]', r"a number for each coordinate \(t, x\)"),
        ('kind = "fbpinn"\nwindows = [2, 0]', r"a list of integers from 1"),
        ("windows = [2, 2]", r"is for kind = 'fbpinn' alone, found 'mlp'"),
        ('kind = "kan"\nactivation = "sin"', r"no choice of activation"),
        ('kind = "siren"\nfactorized = true', r"no factorized weights"),
    ],
)
def test_settings_of_networks_that_do_not_fit_are_refused(text, message):
    problem = loads_problem(HEAT + text, "heat.toml")
    with pytest.raises(ProblemError, match=message) as caught:
        plan(build_system(problem), read_settings(problem.solver, problem.file), 1e-3)
    assert "heat.toml: solver.network." in str(caught.value)
