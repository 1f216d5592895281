"""SSBroyden and its line search: minima, the secant equation, Wolfe conditions."""

import jax
import jax.numpy as jnp
import pytest
from objectives import (
    CLASSIC_START,
    CONDITION,
    ROSENBROCK,
    Objective,
    advance,
    linear,
    rosenbrock,
)

from pinnlab.optimizer import SSBroyden
from pinnlab.optimizer.line_search import CURVATURE, SUFFICIENT, line_search
from pinnlab.optimizer.ssbroyden import self_scaled_update


@pytest.mark.parametrize(
    ("objective", "start", "steps"),
    [
        (ROSENBROCK, CLASSIC_START, 80),
        (ROSENBROCK, jnp.tile(CLASSIC_START, 10), 300),
        (Objective(linear, CONDITION), jnp.linspace(-1.0, 3.0, 10), 200),
        (Objective(linear, jnp.array([2.0])), jnp.array([5.0]), 20),
    ],
    ids=["rosenbrock2", "rosenbrock20", "condition 1e6", "one parameter"],
)
def test_ssbroyden_finds_the_minimum(objective, start, steps):
    theta, _, info = advance(SSBroyden(), objective, start, steps)
    if objective.rows is rosenbrock and start.size == 20:
        # It has a second minimum near (-1, 1, ..., 1); only the gradient must vanish.
        assert info.grad_norm[-1] < 1e-8
    else:
        assert jnp.max(jnp.abs(theta - 1)) < 1e-10
    assert jnp.all(jnp.diff(info.loss) <= 1e-14 * info.loss[:-1])


def test_ssbroyden_minimizes_rosenbrock_in_20_dimensions():
    theta, _, info = advance(SSBroyden(), ROSENBROCK, jnp.zeros(20), 300)
    assert jnp.max(jnp.abs(theta - 1)) < 1e-10
    assert jnp.mean(info.evaluations[:100]) < 2


def test_the_inverse_hessian_stays_symmetric_positive_definite():
    optimizer, theta = SSBroyden(), jnp.zeros(8)
    state = optimizer.init(ROSENBROCK, theta)
    step = jax.jit(optimizer.step)
    for _ in range(60):
        theta, state, _ = step(ROSENBROCK, theta, state)
        H = state.inverse_hessian
        assert jnp.array_equal(H, H.T)
        assert jnp.min(jnp.linalg.eigvalsh(H)) > 0
        expected = -H @ state.gradient
        assert jnp.allclose(state.direction, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("stretch", [1e-3, 0.3, 1.0, 3.0, 1e3])
@pytest.mark.parametrize("first", [False, True])
def test_the_update_satisfies_the_secant_equation(stretch, first):
    k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
    root = jax.random.normal(k1, (6, 6))
    H = root @ root.T + jnp.eye(6)
    s = jax.random.normal(k2, (6,))
    y = stretch * (jnp.linalg.solve(H, s) + 0.1 * jax.random.normal(k3, (6,)))
    assert s @ y > 0
    sbs = s @ jnp.linalg.solve(H, s)
    update = self_scaled_update(s, y, H @ y, sbs, jnp.asarray(first))
    new = update.matrix(H, jnp.asarray(False), jnp.asarray(1.0))
    assert jnp.allclose(new @ y, s, rtol=1e-10, atol=1e-10 * jnp.linalg.norm(s))
    assert jnp.allclose(update.apply(H @ root[0], root[0]), new @ root[0])
    assert jnp.min(jnp.linalg.eigvalsh(new)) > 0


@pytest.mark.parametrize("first", [False, True])
def test_an_exact_model_is_not_changed(first):
    """y = s/H means b h = 1, where the formulas are 0/0; H is already right."""
    s = jnp.arange(1.0, 5.0)
    yes = jnp.asarray(first)
    update = self_scaled_update(s, s, s, s @ s, yes)
    new = update.matrix(jnp.eye(4), jnp.asarray(False), jnp.asarray(1.0))
    assert jnp.allclose(new, jnp.eye(4), atol=1e-7)


def test_negative_curvature_is_not_learned():
    s = jnp.array([1.0, 0.0])
    update = self_scaled_update(s, -s, -s, s @ s, jnp.asarray(False))
    assert not update.valid
    assert jnp.array_equal(update.apply(s, s), s)


FUNCTIONS = {
    "far": (lambda x: (x - 100.0) ** 2, 1.0),
    "near": (lambda x: (x - 1e-4) ** 2, 1.0),
    "wavy": (lambda x: -x / (x**2 + 2) + 0.1 * jnp.sin(3 * x), 1.0),
    "kink": (lambda x: jnp.sqrt((x - 0.3) ** 2 + 1e-8), 1.0),
    "wall": (lambda x: x**2 - x + jnp.where(x > 0.6, jnp.nan, 0.0), 1.0),
    "cliff": (lambda x: jnp.where(x > 1e-3, jnp.inf, (x - 1e-4) ** 2), 0.1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_strong_wolfe_conditions_hold(name):
    function, first = FUNCTIONS[name]
    both = jax.value_and_grad(lambda x: function(x[0]))
    x, p = jnp.zeros(1), jnp.ones(1)
    value, gradient = both(x)
    found = line_search(
        both,
        x,
        p,
        value,
        gradient,
        first_step=jnp.asarray(first),
        enabled=jnp.asarray(True),
    )
    assert found.success
    slope = gradient[0]
    assert found.value <= value + SUFFICIENT * found.step * slope
    assert abs(found.gradient[0]) <= CURVATURE * abs(slope)
    again, _ = both(x + found.step * p)
    assert jnp.allclose(again, found.value, rtol=1e-14)


def test_strong_wolfe_conditions_hold_along_a_run():
    optimizer = SSBroyden()
    theta = CLASSIC_START
    state = optimizer.init(ROSENBROCK, theta)
    step = jax.jit(optimizer.step)
    for _ in range(25):
        slope, p, value = state.direction @ state.gradient, state.direction, state.value
        theta, state, info = step(ROSENBROCK, theta, state)
        assert info.accepted
        assert state.value <= value + SUFFICIENT * info.step_size * slope
        assert abs(p @ state.gradient) <= -CURVATURE * slope
