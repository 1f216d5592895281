"""Weights that follow training: what each rule makes equal, and where it acts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab import loads_problem
from pinnlab.assembly import least_squares, network_of
from pinnlab.errors import ProblemError
from pinnlab.optimizer import Adam
from pinnlab.optimizer.woodbury import kernel
from pinnlab.programs import Stage
from pinnlab.residual import LeastSquares
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.train import Hooks, Limits, train
from pinnlab.weighting import WEIGHTINGS
from pinnlab.weighting.causal import EPSILON, SLICES
from pinnlab.weighting.terms import alone, blended


HEAT = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u", "v"]
[equations]
one = "dt(u) = v"
two = "dt(v) = 3*u"
[conditions]
initial = { on = "t = 0", equation = ["u = 1", "v = x"], enforce = "penalty" }
"""
STEADY = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
flow = "dxx(u) = 1"
[conditions]
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
"""


def setup(weighting: str) -> tuple[LeastSquares, jax.Array, tuple[Stage, ...]]:
    options = {
        "points": 61, "condition_points": 16, "adam": 0, "weighting": weighting,
        "network": {"width": 5, "depth": 1},
    }  # fmt: skip
    problem = loads_problem(HEAT, overrides={"solver": options})
    system = build_system(problem)
    found = plan(system, read_settings(problem.solver), 1e-3)
    network = network_of(system, found.settings, (1.0, 1.0), jax.random.key(0))
    objective, theta = least_squares(system, found.settings, network, 0)
    return objective, theta, found.stages


def often(rule: str, objective: LeastSquares, theta: jax.Array) -> LeastSquares:
    step = eqx.filter_jit(WEIGHTINGS[rule])
    for _ in range(120):
        objective = step(objective, theta)
    return objective


def terms(objective: LeastSquares) -> list[tuple[int, int]]:
    blocks = enumerate(objective.blocks)
    return [(i, j) for i, b in blocks for j in range(b.weight.size)]


def total(objective: LeastSquares) -> float:
    return float(sum(jnp.sum(b.weight) for b in objective.blocks))


def test_gradient_norms_become_equal():
    objective, theta, _ = setup("gradient_norm")
    found = often("gradient_norm", objective, theta)
    gradient = eqx.filter_jit(lambda o: jnp.linalg.norm(o.value_and_grad(theta)[1]))
    norms = [float(gradient(alone(found, i, j))) for i, j in terms(found)]
    np.testing.assert_allclose(norms, norms[0], rtol=1e-3)
    assert total(found) == pytest.approx(total(objective))


def test_traces_of_tangent_kernels_become_equal():
    objective, theta, _ = setup("ntk")
    found = often("ntk", objective, theta)
    size = eqx.filter_jit(lambda o: jnp.sum(o.jacobian(theta) ** 2))
    traces = [float(size(alone(found, i, j))) for i, j in terms(found)]
    np.testing.assert_allclose(traces, traces[0], rtol=1e-3)


def test_lost_gradients_leave_the_weights():
    objective, _, _ = setup("gradient_norm")
    count = len(terms(objective))
    for bad in (jnp.nan, jnp.inf, 0.0):
        found = blended(objective, jnp.ones(count).at[1].set(bad))
        for old, new in zip(objective.blocks, found.blocks, strict=True):
            np.testing.assert_array_equal(new.weight, old.weight)


def sizes(objective: LeastSquares, theta: jax.Array) -> np.ndarray:
    block = objective.blocks[0]
    raw = np.asarray(block.raw(objective.model(theta)) / block.scale)
    return np.sqrt(np.mean(raw**2, axis=1))


def test_causal_weights_fall_with_the_residual_of_all_times_before():
    objective, theta, _ = setup("causal")
    before = sizes(objective, theta) ** 2
    t = np.asarray(objective.blocks[0].points[:, 0])
    number = np.minimum((t * SLICES).astype(int), SLICES - 1)
    once = WEIGHTINGS["causal"](objective, theta)
    found = np.asarray(WEIGHTINGS["causal"](once, theta).blocks[0].known[:, -1])
    for i, own in enumerate(number):
        earlier = [before[number == k] for k in range(own)]
        cost = sum(np.mean(e) for e in earlier if e.size)
        assert found[i] == pytest.approx(np.exp(-EPSILON * cost / 2), abs=1e-12)


def test_attention_tends_to_the_relative_residual():
    objective, theta, _ = setup("attention")
    size = sizes(objective, theta)
    found = often("attention", objective, theta).blocks[0].known[:, -1]
    np.testing.assert_allclose(found, size / size.max(), rtol=1e-9)


def test_factors_of_points_multiply_rows_and_their_gradients():
    objective, theta, _ = setup("attention")
    where = lambda o: o.blocks[0].known
    factors = jnp.arange(61.0)
    known = where(objective).at[:, -1].set(factors)
    changed = eqx.tree_at(where, objective, known)
    rows = jnp.repeat(factors, 2)
    for method in (LeastSquares.residuals, LeastSquares.jacobian):
        values = eqx.filter_jit(method)
        old, new = values(objective, theta), values(changed, theta)
        scaled = (old[:122].T * rows).T
        np.testing.assert_allclose(new[:122], scaled, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(new[122:], old[122:])


def test_folded_rows_are_those_of_the_residual_and_the_jacobian():
    objective, theta, _ = setup("none")
    both = lambda o, th: (o.residuals(th), o.jacobian(th))
    residuals, jacobian = eqx.filter_jit(both)(objective, theta)

    def visit(carry, index, values, gradients):
        vector, matrix = carry
        vector = vector.at[index].add(values, mode="drop")
        return vector, matrix.at[index].add(gradients, mode="drop")

    def folded(objective, theta):
        start = (jnp.zeros_like(residuals), jnp.zeros_like(jacobian))
        rows = objective.fold_rows(theta, visit, start, 7)
        return rows, kernel(objective, theta, residuals.size, 30 * theta.size * 8)

    found, parts = eqx.filter_jit(folded)(objective, theta)
    np.testing.assert_allclose(found[0], residuals, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1], jacobian, rtol=1e-12, atol=1e-14)
    whole = jacobian @ jacobian.T
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rule", ["ntk", "attention"])
def test_training_takes_the_weights_at_its_looks(rule):
    objective, theta, stages = setup(rule)
    assert stages[-1].weighting is WEIGHTINGS[rule]
    redraw = stages[-1].redraw
    stage = Stage("s", Adam(), 4, 2, redraw, 2, WEIGHTINGS[rule])
    limits, hooks = Limits(60.0, 0.0, 0.0), Hooks(lambda row: None)
    key = jax.random.key(1)
    trained = train(objective, theta, (stage,), limits, key=key, hooks=hooks)
    old, new = objective.blocks[0], trained.objective.blocks[0]
    assert redraw == (rule != "attention")
    assert bool(jnp.all(old.points == new.points)) != redraw
    if rule == "attention":
        assert float(jnp.max(jnp.abs(new.known[:, -1] - 1))) > 1e-3
    else:
        assert float(jnp.max(jnp.abs(new.weight / old.weight - 1))) > 1e-3
        assert total(trained.objective) == pytest.approx(total(objective))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (STEADY, {"weighting": "causal"}, "need the coordinate t"),
        (HEAT, {"weighting": "attention", "redraw": 5}, "remove solver.redraw"),
        (HEAT, {"weighting": "rba"}, "one of: none, gradient_norm, "),
    ],
)
def test_a_weighting_that_means_nothing_is_refused(text, options, message):
    problem = loads_problem(text, overrides={"solver": options})
    with pytest.raises(ProblemError, match=message) as caught:
        plan(build_system(problem), read_settings(problem.solver, "p.toml"), 1e-3)
    assert "solver.weighting" in str(caught.value)
