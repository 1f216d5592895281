"""All optimizers: the loss falls, nothing is lost to NaN, and a step compiles once."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array
from objectives import FIT_START, POINTS, Objective, advance, fit, linear, pit

from pinnlab.optimizer import (
    ENGDW,
    LBFGS,
    SPRING,
    Adam,
    LevenbergMarquardt,
    Muon,
    SketchedGaussNewton,
    SSBroyden,
)
from pinnlab.optimizer.levenberg_marquardt import singular_spectrum


OPTIMIZERS = {
    "ssbroyden": SSBroyden(),
    "lm": LevenbergMarquardt(),
    "lm, singular values": LevenbergMarquardt(spectrum=singular_spectrum),
    "sketched gauss-newton": SketchedGaussNewton(least=8, most=16),
    "engd-w": ENGDW(),
    "engd-w, nystrom": ENGDW(most=0, rank=4),
    "spring": SPRING(),
    "lbfgs": LBFGS(memory=10),
    "adam": Adam(learning_rate=3e-2),
    "muon": Muon(learning_rate=0.2),
}
ALL = pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
CURVED = pytest.mark.parametrize(
    "optimizer", [o for o in OPTIMIZERS.values() if not isinstance(o, Adam | Muon)]
)


@CURVED
def test_a_region_without_values_is_survived(optimizer):
    start = jnp.array([0.9, 30.0, 5.0])
    objective = Objective(pit, jnp.array([1e-3, 1e-2, 1e-1]))
    theta, _, info = advance(optimizer, objective, start, 150)
    assert jnp.all(jnp.isfinite(info.loss))
    assert jnp.allclose(theta, objective.data, rtol=1e-6)


@ALL
def test_a_start_without_value_returns_the_start(optimizer):
    start = jnp.array([-1.0, 2.0, 2.0])
    theta, _, info = advance(optimizer, Objective(pit, jnp.ones(3)), start, 12)
    assert jnp.array_equal(theta, start)
    assert not jnp.any(info.accepted)
    assert not jnp.isfinite(info.loss[-1])


@ALL
def test_the_loss_falls(optimizer):
    objective = Objective(fit, POINTS)
    start = FIT_START.astype(float)
    _, _, info = advance(optimizer, objective, start, 100)
    assert info.loss[-1] < 0.2 * objective.loss(start)


@CURVED
def test_a_minimum_is_a_stall_and_refresh_ends_it(optimizer):
    objective = Objective(linear, jnp.arange(1.0, 4.0))
    theta, state, info = advance(optimizer, objective, jnp.ones(3), 3)
    assert info.stalled[-1]
    assert jnp.array_equal(theta, jnp.ones(3))
    state = optimizer.refresh(objective, theta, state)
    assert not state.stalled


@CURVED
def test_rounding_is_recognized_as_a_stall(optimizer):
    """At a loss that cannot be 0 the last digits must not be polished for ever."""
    objective = Objective(
        lambda t, d: jnp.stack([t[0] - d, t[0] + d]), jnp.asarray(1.0)
    )
    theta, _, info = advance(optimizer, objective, jnp.array([0.7]), 60)
    assert abs(theta[0]) < 1e-6
    assert info.stalled[-1]


@ALL
def test_a_step_compiles_once(optimizer):
    count = 0

    def step(objective: Objective, theta: Array, state: Any) -> tuple:
        nonlocal count
        count += 1
        return optimizer.step(objective, theta, state)

    compiled = eqx.filter_jit(step, donate="all-except-first")
    theta = FIT_START.astype(float)
    first = Objective(fit, POINTS)
    state = jax.jit(optimizer.init)(first, theta)
    for shift in (0.0, 0.1, 0.2):
        objective = Objective(fit, POINTS + shift)
        state = eqx.filter_jit(optimizer.refresh)(objective, theta, state)
        theta, state, _ = compiled(objective, theta, state)
        theta, state, _ = compiled(objective, theta, state)
    assert count == 1


@ALL
def test_float32_stays_float32(optimizer):
    objective = Objective(fit, POINTS.astype(jnp.float32))
    theta, _, info = advance(optimizer, objective, FIT_START, 40)
    assert theta.dtype == jnp.float32
    assert info.loss.dtype == info.step_size.dtype == jnp.float32
    assert info.loss[-1] < 0.3 * objective.loss(FIT_START)


@ALL
def test_runs_can_be_stacked(optimizer):
    starts = jnp.stack([FIT_START, 2 * FIT_START]).astype(float)
    objective = Objective(fit, POINTS)
    run = lambda theta: advance(optimizer, objective, theta, 5)[0]
    together = jax.vmap(run)(starts)
    assert jnp.allclose(together[1], run(starts[1]), rtol=1e-6, atol=1e-8)


def test_refresh_keeps_the_curvature():
    old, new = Objective(fit, POINTS), Objective(fit, POINTS + 0.05)
    theta, state, _ = advance(SSBroyden(), old, FIT_START.astype(float), 30)
    fresh = SSBroyden().refresh(new, theta, state)
    value, gradient = new.value_and_grad(theta)
    assert jnp.array_equal(fresh.inverse_hessian, state.inverse_hessian)
    assert jnp.allclose(fresh.value, value)
    assert jnp.allclose(fresh.direction, -state.inverse_hessian @ gradient)

    theta, state, _ = advance(LevenbergMarquardt(), old, FIT_START.astype(float), 5)
    assert LevenbergMarquardt().refresh(new, theta, state).damping == state.damping


def test_refresh_of_lbfgs_hides_the_change_of_points_from_the_memory():
    """The pair stored after a redraw is the last step's on the old points."""
    optimizer, theta = LBFGS(memory=4), FIT_START.astype(float)
    old, new = Objective(fit, POINTS), Objective(fit, 0.5 * POINTS)
    before, state = theta, optimizer.init(old, theta)
    step = jax.jit(optimizer.step)
    theta, state, _ = step(old, theta, state)
    difference = old.value_and_grad(theta)[1] - old.value_and_grad(before)[1]
    state = optimizer.refresh(new, theta, state)
    _, state, info = step(new, theta, state)
    assert info.accepted
    memory = jnp.asarray(state.inner[0].diff_updates_memory)
    distance = jnp.linalg.norm(memory - difference, axis=1)
    assert jnp.min(distance) < 1e-12 * jnp.linalg.norm(difference)


def test_muon_moves_matrices_by_orthogonal_ones():
    """The first step of a matrix is a multiple of U V', up to Newton-Schulz' errors."""
    objective, theta = Objective(fit, POINTS), FIT_START.astype(float)
    new, _, _ = advance(Muon(), objective, theta, 1)
    step = (new - theta).reshape(6, 2)
    values = jnp.linalg.svd(step, compute_uv=False)
    assert values[1] > 0.5 * values[0]
    assert jnp.sqrt(jnp.mean(step**2)) == pytest.approx(0.2 * 5e-3, rel=0.5)
    assert step.ravel() @ objective.value_and_grad(theta)[1] < 0
