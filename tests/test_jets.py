"""Jets are the derivatives of the plain call, to rounding, in both precisions."""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from pinnlab.equation import singular
from pinnlab.equation.activations import NAMES, activation, closed_forms, tower
from pinnlab.equation.jets import Orders, closure, jets, partitions
from pinnlab.network import AbstractNetwork, make_network


def network(dim: int, name: str = "tanh", **options) -> AbstractNetwork:
    settings = {"width": 6, "depth": 2, "outputs": 2, **options}
    box = {"lower": (-1.0,) * dim, "upper": (2.0,) * dim}
    return make_network(key=jax.random.key(3), activation=name, **box, **settings)


def nested(function: Callable, point: Array, orders: Orders) -> Array:
    """The same derivative by nested `jvp`."""
    for i, count in enumerate(orders):
        direction = jnp.zeros_like(point).at[i].set(1)
        for _ in range(count):
            function = lambda x, f=function, d=direction: jax.jvp(f, (x,), (d,))[1]
    return function(point)


def all_nested(function: Callable, point: Array, wanted: tuple[Orders, ...]) -> Array:
    """The rows of `jets` by nested `jvp`."""
    return jnp.stack([nested(function, point, orders) for orders in wanted])


# ------------------------------------------------------------------ combinatorics


def test_the_closure_is_closed_and_sorted_by_order():
    found = closure(((2, 1), (0, 3)))
    assert set(found) == {
        (0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1), (0, 3),
    }  # fmt: skip
    assert [sum(o) for o in found] == sorted(sum(o) for o in found)


def test_partitions_of_distinct_and_repeated_indices_count_as_bell_numbers():
    for n, bell in enumerate((1, 1, 2, 5, 15, 52, 203)):
        assert sum(count for count, _ in partitions((n,))) == bell
        assert sum(count for count, _ in partitions((1,) * n or (0,))) == bell


# --------------------------------------------------------------------- activations


@pytest.mark.parametrize("name", NAMES)
def test_tower_entries_are_derivatives_of_each_other(name):
    # Complex steps would need complex towers; central differences reach 1e-9.
    z, h = jnp.linspace(-4, 4, 41), 1e-5
    for k in range(7):
        slope = (tower(name, z + h, k)[k] - tower(name, z - h, k)[k]) / (2 * h)
        size = float(jnp.max(jnp.abs(slope)))
        entry = tower(name, z, k + 1)[k + 1]
        np.testing.assert_allclose(entry, slope, atol=2e-9 * size)


@pytest.mark.parametrize("name", NAMES)
def test_activations_have_their_textbook_values(name):
    textbook = {
        "tanh": math.tanh,
        "sin": math.sin,
        "swish": lambda z: z / (1 + math.exp(-z)),
        "gelu": lambda z: z * math.erfc(-z / math.sqrt(2)) / 2,
    }[name]
    z = np.linspace(-30, 30, 25)
    found = activation(name)(jnp.asarray(z))
    np.testing.assert_allclose(found, [textbook(v) for v in z], rtol=1e-13)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_towers_are_finite_and_keep_the_precision_everywhere(name, dtype):
    z = jnp.asarray([-1e4, -200, -20, -1, 0, 1e-30, 3, 20, 200, 1e4], dtype)
    for entry in tower(name, z, 6):
        assert entry.dtype == dtype
        assert jnp.all(jnp.isfinite(entry))


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match="unknown activation 'relu'"):
        activation("relu")(jnp.zeros(1))


# -------------------------------------------- stability at saturated units, float32


SATURATED = np.float32(10.0)
TANH_SLOPE = 1 / math.cosh(10.0) ** 2
TANH_CURVATURE = -2 * math.tanh(10.0) * TANH_SLOPE


def _naive(z: Array) -> Array:
    return jnp.tanh(z)


def _second(function: Callable, how: str) -> Array:
    """The second derivative at a saturated unit by a nesting of transformations."""
    first = jax.grad(function)
    along = lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]
    nestings = {
        "grad of grad": jax.grad(first),
        "hessian": jax.hessian(function),
        "jvp of jvp": along(along(function)),
        "jvp of grad": along(first),
        "grad of jvp": jax.grad(along(function)),
    }
    return nestings[how](jnp.asarray(SATURATED))


def no_digit_is_right(found: Array, right: float) -> bool:
    """What comes of 1 - tanh^2 in 32 bits: 0, or the rounding error of 1."""
    return abs(float(found) / right - 1) >= 1


NESTINGS = ("grad of grad", "hessian", "jvp of jvp", "jvp of grad", "grad of jvp")


@pytest.mark.parametrize("how", NESTINGS)
def test_plain_activation_is_stable_where_tanh_is_not(how):
    assert no_digit_is_right(_second(_naive, how), TANH_CURVATURE)
    found = _second(activation("tanh"), how)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, TANH_CURVATURE, rtol=1e-6)


def test_tower_is_stable_in_its_values_and_in_its_backward_rule():
    z = jnp.asarray(SATURATED)
    entries = tower("tanh", z, 2)
    np.testing.assert_allclose(entries[1], TANH_SLOPE, rtol=1e-6)
    np.testing.assert_allclose(entries[2], TANH_CURVATURE, rtol=1e-6)
    slope = jax.grad(lambda z: tower("tanh", z, 0)[0])(z)
    np.testing.assert_allclose(slope, TANH_SLOPE, rtol=1e-6)
    unruly = jax.grad(lambda z: closed_forms("tanh", z, 0)[0])(z)
    assert no_digit_is_right(unruly, TANH_SLOPE)


@pytest.mark.parametrize("name", ["gelu", "swish"])
def test_other_towers_are_accurate_in_float32_tails(name):
    z = np.linspace(-9, 9, 13)
    exact = tower(name, jnp.asarray(z), 4)
    found = tower(name, jnp.asarray(z, jnp.float32), 4)
    for a, b in zip(found[2:], exact[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_a_saturated_network_keeps_its_second_derivative_in_float32():
    net = network(1, depth=1, outputs=1)
    weights = (jnp.full((6, 1), 1.5), jnp.full(6, 10.0))
    out = (jnp.full((1, 6), 1.0), jnp.zeros(1))
    flat, unravel = ravel_pytree(net)
    assert flat.size == 19
    net = unravel(jnp.concatenate([a.ravel() for a in (*weights, *out)]))
    net32 = jax.tree.map(lambda a: a.astype(jnp.float32), net)
    found = jets(net32, jnp.asarray([0.5], jnp.float32), ((2,),))
    exact = jets(net, jnp.asarray([0.5]), ((2,),))
    assert abs(float(exact[0, 0])) > 1e-9
    np.testing.assert_allclose(found, exact, rtol=1e-5)


# ------------------------------------------------------------------ jets of networks

VARIANTS = [
    {"name": "tanh"},
    {"name": "sin"},
    {"name": "gelu"},
    {"name": "swish"},
    {"name": "tanh", "factorized": True, "scales": (3.0, 0.1)},
    {"name": "tanh", "separate": True, "scales": (3.0, 0.1)},
    {"name": "tanh", "periodic": (0,), "harmonics": 2},
    {"name": "sin", "fourier": 5, "fourier_scale": 2.0},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_jets_to_order_six_in_one_dimension_are_nested_jvp(variant):
    net, point = network(1, **variant), jnp.asarray([0.3])
    wanted = tuple((n,) for n in range(7))
    found = jax.jit(lambda p: jets(net, p, wanted))(point)
    expected = jax.jit(lambda p: all_nested(net, p, wanted))(point)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_mixed_jets_in_three_dimensions_are_nested_jvp(variant):
    net, point = network(3, **variant), jnp.asarray([0.3, -0.2, 1.1])
    wanted = ((1, 1, 1), (2, 0, 1), (0, 2, 2), (0, 0, 3), (1, 0, 0))
    found = jax.jit(lambda p: jets(net, p, wanted))(point)
    expected = jax.jit(lambda p: all_nested(net, p, wanted))(point)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_jets_are_the_limits_of_differences():
    net, point, h = network(2), jnp.asarray([0.3, -0.2]), 1e-3
    stencil = {
        (1, 0): {(1, 0): 0.5, (-1, 0): -0.5},
        (0, 2): {(0, 1): 1.0, (0, 0): -2.0, (0, -1): 1.0},
        (1, 1): {s: s[0] * s[1] / 4 for s in itertools.product((-1, 1), repeat=2)},
    }
    found = jets(net, point, tuple(stencil))
    for row, (orders, weights) in zip(found, stencil.items(), strict=True):
        total = sum(w * net(point + h * jnp.asarray(s)) for s, w in weights.items())
        expected = total / h ** sum(orders)
        np.testing.assert_allclose(row, expected, atol=20 * h**2)  # second order


def test_the_derivative_of_an_affine_output_beyond_its_order_is_zero():
    net = network(2, depth=0)
    assert jnp.all(jets(net, jnp.zeros(2), ((2, 0), (1, 1))) == 0)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_parameter_gradients_of_jets_are_those_through_nested_jvp(variant):
    net = network(2, **variant)
    points = jax.random.uniform(jax.random.key(0), (4, 2))
    wanted = ((0, 0), (1, 0), (0, 1), (0, 2))
    theta, unravel = ravel_pytree(net)

    def loss(derivatives: Callable) -> Callable:
        def residual(theta: Array, point: Array) -> Array:
            u, ut, ux, uxx = derivatives(unravel(theta), point)
            return ut[0] + u[1] * ux[0] - 0.1 * uxx[1]

        rows = jax.vmap(residual, in_axes=(None, 0))
        return lambda theta: jnp.sum(rows(theta, points) ** 2)

    found = jax.jit(jax.grad(loss(lambda n, p: jets(n, p, wanted))))(theta)
    by_jvp = jax.jit(jax.grad(loss(lambda n, p: all_nested(n, p, wanted))))(theta)
    np.testing.assert_allclose(found, by_jvp, rtol=1e-9, atol=1e-11)


def test_reverse_mode_passes_twice():
    net, wanted = network(2), ((0, 2), (1, 0))
    theta, unravel = ravel_pytree(net)
    point, v = jnp.asarray([0.1, 0.4]), jnp.ones_like(theta)
    loss = lambda t: jnp.sum(jets(unravel(t), point, wanted) ** 2)
    gradient = jax.jit(jax.grad(loss))
    found = jax.jit(jax.grad(lambda t: gradient(t) @ v))(theta)
    h = 1e-5
    expected = (gradient(theta + h * v) - gradient(theta - h * v)) / (2 * h)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_vmap_gives_the_points_one_by_one():
    net = network(2)
    points = jax.random.uniform(jax.random.key(0), (5, 2))
    wanted = ((0, 0), (2, 1))
    found = jax.vmap(lambda p: jets(net, p, wanted))(points)
    for row, point in zip(found, points, strict=True):
        np.testing.assert_allclose(row, jets(net, point, wanted), rtol=1e-12)


def test_new_values_do_not_retrace():
    count = 0

    @jax.jit
    def second(net: AbstractNetwork, point: Array) -> Array:
        nonlocal count
        count += 1
        return jets(net, point, ((0, 2),))

    net = network(2)
    for shift in range(3):
        moved = jax.tree.map(lambda a, s=shift: a + s, net)
        second(moved, jnp.full(2, 0.1 * shift))
    assert count == 1


def test_only_the_wanted_derivatives_are_computed():
    # 2-D, orders up to (2, 0): no matrix product for a derivative in y.
    net = network(2)
    text = str(jax.make_jaxpr(lambda p: jets(net, p, ((2, 0),)))(jnp.zeros(2)))
    # u and u_x in the scaling and in the first layer, with u_xx in the other two.
    assert text.count("dot_general") == 2 + 2 + 3 + 3


# --------------------------------------------------------------- singular functions


def test_singular_functions_are_right_away_from_the_singularity():
    a, y = jnp.asarray(0.7), jnp.asarray(-0.4)
    pairs: list[tuple[Callable, Callable]] = [
        (singular.sqrt, jnp.sqrt),
        (singular.absolute, jnp.abs),
        (lambda a: singular.power(a, 1.5), lambda a: a**1.5),
        (lambda a: singular.power(a, -2), lambda a: a**-2.0),
        (lambda a: singular.arctan2(y, a), lambda a: jnp.arctan2(y, a)),
        (lambda a: singular.arctan2(a, y), lambda a: jnp.arctan2(a, y)),
        (lambda a: singular.norm(jnp.stack([a, y])), lambda a: jnp.hypot(a, y)),
    ]
    for ours, numpys in pairs:
        np.testing.assert_allclose(ours(a), numpys(a), rtol=1e-14)
        np.testing.assert_allclose(jax.grad(ours)(a), jax.grad(numpys)(a), rtol=1e-13)
        second = jax.grad(jax.grad(ours))(a)
        np.testing.assert_allclose(second, jax.grad(jax.grad(numpys))(a), atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        singular.sqrt,
        singular.absolute,
        lambda a: singular.power(a, 0.5),
        lambda a: singular.power(a, 1.5),
        lambda a: singular.arctan2(a, a),
        lambda a: singular.norm(jnp.stack([a, 2 * a])),
    ],
)
def test_derivatives_at_the_singular_point_are_zero_and_never_nan(function):
    zero = jnp.zeros(())
    assert function(zero) == 0
    assert jax.grad(function)(zero) == 0
    assert jax.jvp(function, (zero,), (jnp.ones(()),))[1] == 0
    assert jax.grad(jax.grad(function))(zero) == 0
    assert jax.hessian(lambda a: function(a) ** 2)(zero) == pytest.approx(0, abs=1e-15)


def test_the_plain_functions_fail_at_the_singular_point():
    zero = jnp.zeros(())
    assert jnp.isnan(jax.grad(lambda a: jnp.sqrt(a * a))(zero))
    assert jnp.isnan(jax.grad(lambda a: jnp.sqrt(a) ** 2)(zero))
    assert jnp.isnan(jax.grad(lambda a: jnp.arctan2(a, a))(zero))


def test_singular_functions_keep_the_precision():
    single = jnp.ones((), jnp.float32)
    for found in (
        singular.sqrt(single),
        singular.absolute(single),
        singular.power(single, 1.5),
        singular.arctan2(single, 1.0),
    ):
        assert found.dtype == jnp.float32
    assert singular.sqrt(4) == 2
