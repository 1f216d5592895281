"""A solution as a function inside other JAX code: right values and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import ArrayLike
from untrained import make_solution

from pinnlab import Solution
from pinnlab.function import in_double


WAVE = """
coordinates = { t = [0, 1], x = [0, 2] }
fields = ["u"]
[parameters]
c = 1.5
[equations]
wave = "dtt(u) = c^2*dxx(u) - u^3"
[conditions]
initial = { on = "t = 0", equation = ["u = sin(pi*x)", "dt(u) = x"] }
[outputs]
slope = "dx(u)"
flux = "c*dt(u)*dx(u)"
bend = "dxx(u)"
[solver]
network = { width = 6, depth = 1 }
"""
PAIR = """
coordinates = { t = [0, 1] }
fields = [{ name = "h", complex = true }, "n"]
[equations]
spin = "dt(h) = 1j*n*h"
decay = "dt(n) = -abs(h)^2"
[conditions]
initial = { on = "t = 0", equation = ["h = 1 + 2j", "n = 3"] }
"""
POINTS = np.random.default_rng(0).uniform(0, 1, (9, 2))


@pytest.fixture(scope="module")
def wave() -> Solution:
    axes = {"t": np.linspace(0, 1, 3), "x": np.linspace(0, 2, 4)}
    return make_solution(WAVE, axes)


def test_values_and_derivatives_are_those_of_the_solution(wave: Solution):
    u, truth = wave.function, wave.values(POINTS)
    np.testing.assert_allclose(jax.vmap(u)(POINTS), truth["u"], rtol=1e-13)
    slopes = jax.jit(jax.vmap(jax.grad(u)))(POINTS)
    np.testing.assert_allclose(slopes[:, 1], truth["slope"], rtol=1e-11)
    bends = jax.vmap(jax.hessian(u))(POINTS)[:, 1, 1]
    np.testing.assert_allclose(bends, truth["bend"], rtol=1e-10)


def test_outputs_are_values_too(wave: Solution):
    found, truth = jax.vmap(wave.all_values)(POINTS), wave.values(POINTS)
    assert set(found) == {"u", "slope", "flux", "bend"}
    for name, values in found.items():
        np.testing.assert_allclose(values, truth[name], rtol=1e-11)


def test_it_works_inside_a_loss_and_a_loop(wave: Solution):
    u = wave.function

    def flow(x: jax.Array) -> jax.Array:
        def step(x: jax.Array, t: jax.Array) -> tuple[jax.Array, None]:
            return x + 0.1 * u(jnp.stack([t, x])), None

        return jax.lax.scan(step, x, jnp.linspace(0, 1, 5))[0]

    x, h = jnp.array(0.7), 1e-5
    difference = (flow(x + h) - flow(x - h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.grad(flow))(x), difference, rtol=1e-8)


def test_32_bits_around_it_do_not_enter_it():
    # 1e6 (sin((1 + 1e-6) x) - sin x) is x cos x but for 1e-6 x^2: in 32 bits, with
    # their seven digits, nothing of it and of its derivative would be left.
    def values(point: ArrayLike) -> dict[str, jax.Array]:
        x = jnp.asarray(point)[0]
        return {"u": 1e6 * (jnp.sin((1 + 1e-6) * x) - jnp.sin(x))}

    function = in_double(values)
    x = np.linspace(0.1, 1.5, 5)[:, None]
    with jax.enable_x64(False):
        points = jnp.asarray(x)
        u = lambda p: function(p)["u"]
        found = jax.vmap(u)(points)
        slopes = jax.jit(jax.vmap(jax.grad(u)))(points)
    assert found.dtype == slopes.dtype == np.float32
    np.testing.assert_allclose(found, (x * np.cos(x))[:, 0], atol=3e-6)
    np.testing.assert_allclose(slopes, np.cos(x) - x * np.sin(x), atol=3e-6)


def test_several_fields_are_a_dict_and_complex_ones_are_joined():
    pair = make_solution(PAIR, {"t": np.linspace(0, 1, 3)})
    t = np.linspace(0, 1, 4)[:, None]
    found, truth = jax.vmap(pair.function)(t), pair.values(t)
    assert set(found) == {"n", "h"}
    np.testing.assert_allclose(found["h"], truth["h"], rtol=1e-13)
    np.testing.assert_allclose(found["n"], truth["n"], rtol=1e-13)
    assert found["h"][0] == 1 + 2j
