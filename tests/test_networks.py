"""Networks: shapes, fixed features, periodicity, and what is trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from pinnlab.equation.activations import NAMES
from pinnlab.equation.jets import jets
from pinnlab.network import MLP, AbstractNetwork, make_network


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
