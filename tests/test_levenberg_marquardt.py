"""Levenberg-Marquardt: order of convergence, the choice of damping, degeneracy."""

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float
from objectives import CLASSIC_START, ROSENBROCK, Objective, advance, linear

from pinnlab.optimizer import LevenbergMarquardt
from pinnlab.optimizer.levenberg_marquardt import (
    Trials,
    eigen_spectrum,
    singular_spectrum,
)


def exponentials(theta: Array, data: Array) -> Array:
    """Zero at theta = (1, 2, 0.5)."""
    model = theta[0] * jnp.exp(-theta[1] * data) + theta[2] * data
    return model - jnp.exp(-2 * data) - 0.5 * data


@pytest.mark.parametrize("spectrum", [eigen_spectrum, singular_spectrum])
def test_levenberg_marquardt_converges_fast_to_a_zero_residual(spectrum):
    objective = Objective(exponentials, jnp.linspace(0.0, 2.0, 20))
    optimizer = LevenbergMarquardt(spectrum=spectrum)
    theta, _, info = advance(optimizer, objective, jnp.array([0.5, 0.5, 0.0]), 12)
    assert jnp.allclose(theta, jnp.array([1.0, 2.0, 0.5]), atol=1e-12)
    residual = jnp.sqrt(2 * info.loss)
    assert residual[-1] < 1e-14
    # Superlinear: once small, each is at most the last one to the power 1.5.
    small = residual[:-1] < 1e-2
    fast = residual[1:] <= jnp.maximum(residual[:-1] ** 1.5, 1e-13)
    assert jnp.sum(small) > 2
    assert jnp.all(fast | ~small)


@pytest.mark.parametrize("spectrum", [eigen_spectrum, singular_spectrum])
@pytest.mark.parametrize("shape", [(9, 4), (3, 6)])
def test_spectrum_gives_the_damped_step_and_its_decrease(spectrum, shape):
    k1, k2 = jax.random.split(jax.random.key(3))
    J, r = jax.random.normal(k1, shape), jax.random.normal(k2, shape[:1])
    damping = jnp.array([1e-2, 1.0, 30.0])
    factors, gradient = spectrum(J), r @ J
    steps = -factors.solve(damping, jnp.broadcast_to(gradient, (3, shape[1])))
    predicted = factors.predicted(damping, gradient)
    for lam, p, decrease in zip(damping, steps, predicted, strict=True):
        exact = -jnp.linalg.solve(J.T @ J + lam * jnp.eye(shape[1]), gradient)
        assert jnp.allclose(p, exact, rtol=1e-9)
        loss, after = 0.5 * r @ r, 0.5 * jnp.sum((r + J @ p) ** 2)
        assert jnp.allclose(decrease, loss - after, rtol=1e-9)


def trials(ratio: list[float], loss: list[float]) -> Trials:
    n = len(ratio)
    values = jnp.geomspace(1e-3, 1.0, n)
    return Trials(values, jnp.zeros((n, 1)), jnp.array(loss), values, jnp.array(ratio))


@pytest.mark.parametrize(
    ("ratio", "loss", "expected"),
    [
        ([0.1, 0.5, 0.9], [1.0, 2.0, 3.0], 1),
        ([0.9, 0.1, 0.8], [1.0, 2.0, 3.0], 2),
        ([0.9, 0.9, 0.9], [3.0, 2.0, 1.0], 0),
        ([-jnp.inf, 0.1, 0.2], [jnp.inf, 1.0, 2.0], 1),
    ],
    ids=["longest good", "not beyond a bad one", "not the greedy one", "none good"],
)
def test_the_longest_step_with_a_good_ratio_is_chosen(ratio, loss, expected):
    assert trials(ratio, loss).choice(0.3) == expected


def test_on_a_linear_problem_the_ratio_is_one_and_damping_falls():
    objective = Objective(linear, jnp.array([1.0, 2.0, 5.0]))
    optimizer = LevenbergMarquardt()
    theta, _, info = advance(optimizer, objective, jnp.zeros(3), 3)
    # Each step goes a factor `reach` below, and one more of the fine series.
    assert jnp.all(info.damping[1:] < info.damping[:-1] / 99)
    assert jnp.allclose(theta, 1.0, atol=1e-10)


@pytest.mark.parametrize("spectrum", [eigen_spectrum, singular_spectrum])
def test_a_rank_deficient_jacobian_is_handled(spectrum):
    """Only the sum of the parameters matters, and there are fewer rows than them."""
    objective = Objective(lambda t, d: jnp.exp(jnp.sum(t)) - d, jnp.full(2, 3.0))
    optimizer = LevenbergMarquardt(spectrum=spectrum)
    theta, _, info = advance(optimizer, objective, jnp.zeros(4), 12)
    assert jnp.allclose(jnp.sum(theta), jnp.log(3.0), atol=1e-12)
    assert jnp.max(jnp.abs(theta - theta[0])) < 1e-6
    assert info.loss[-1] < 1e-24


def test_levenberg_marquardt_follows_a_curved_valley():
    _, _, info = advance(LevenbergMarquardt(), ROSENBROCK, CLASSIC_START, 20)
    assert info.loss[-1] < 1e-24


def unused(theta: Float[Array, " P"], data: Array) -> Array:
    return data + 0 * theta


def test_a_zero_jacobian_is_a_stall():
    objective = Objective(unused, jnp.ones(3))
    theta, _, info = advance(LevenbergMarquardt(), objective, jnp.ones(3), 2)
    assert info.stalled[-1]
    assert jnp.array_equal(theta, jnp.ones(3))
