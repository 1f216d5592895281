"""A second network corrects the first: from nothing on, and as part of the result."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_train import DECAY, setup

from pinnlab import Solution, loads_problem, solve
from pinnlab.correction import correcting, with_correction
from pinnlab.equation.jets import jets
from pinnlab.network import Corrected, trained_numbers
from pinnlab.optimizer import LevenbergMarquardt
from pinnlab.programs import Stage
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.train import Hooks, Limits, train


SMALL = {
    "solver.strategy": "nonlinear",
    "solver.points": 64,
    "solver.network": {"width": 6, "depth": 1},
}


def begin():
    problem = loads_problem(DECAY, overrides=SMALL)
    system = build_system(problem)
    full = plan(system, read_settings(problem.solver), 1e-3).settings
    return correcting(system, full, (1.0,), jax.random.key(3))


@cache
def stages():
    """Two networks, forty steps each."""
    first = Stage("first", LevenbergMarquardt(), 40, 20, True, 3)
    return first, replace(first, name="correction", begin=begin())


def trained(start=None, pause=None):
    objective, theta = setup(points=32, width=4, text=DECAY, depth=1)
    return train(
        objective,
        theta,
        stages(),
        Limits(1e6, 0.0, 0.0),
        key=jax.random.key(5),
        hooks=Hooks(lambda row: None, pause=pause),
        start=start,
    )


def test_a_correction_is_nothing_at_first():
    objective, theta = setup(text=DECAY)
    second, correction = begin()(objective, theta, 1e-3)
    assert second.loss(correction) == objective.loss(theta)
    network = second.model(correction).network
    assert isinstance(network, Corrected) and float(network.size[0]) == 1e-3
    assert trained_numbers(network) == theta.size + correction.size
    gradient = second.value_and_grad(correction)[1]
    assert 0 < float(jnp.abs(gradient).max()) < np.inf


def test_jets_are_the_derivatives_of_the_sum():
    objective, theta = setup(text=DECAY)
    second, correction = begin()(objective, theta, 1e-1)
    network = second.model(correction + 0.3).network
    point = jnp.asarray([0.4])
    value, slope = jets(network, point, ((0,), (1,)))
    np.testing.assert_allclose(value, network(point), rtol=1e-12)
    np.testing.assert_allclose(slope, jax.jacfwd(network)(point)[:, 0], rtol=1e-12)


@pytest.mark.usefixtures("compiled_once")
def test_a_run_that_stopped_in_the_second_stage_ends_at_the_same_bits():
    whole, taken = trained(), []

    def pause(snapshot):
        if len(taken) < 1 and snapshot().position.stage == 1:
            found = snapshot()
            arrays = {k: np.array(v) for k, v in found.arrays.items()}
            taken.append(replace(found, arrays=arrays, record=deepcopy(found.record)))
            return True
        return False

    assert trained(pause=pause).record.iterations < whole.record.iterations == 80
    again = trained(start=taken[0])
    assert taken[0].position.stage == 1
    np.testing.assert_array_equal(again.theta, whole.theta)
    np.testing.assert_array_equal(again.heldout, whole.heldout)


def test_a_corrected_solution_is_better_and_can_be_read_again(tmp_path):
    times = np.linspace(0, 1, 50)[:, None]
    errors = {}
    for wanted in ("off", "on"):
        options = {"solver.iterations": 30, "solver.second_stage": wanted}
        problem = loads_problem(DECAY, "decay", overrides=SMALL | options)
        solution = solve(problem, target=1e-14, budget=60, reference=False)
        is_corrected = isinstance(solution.model.network, Corrected)
        assert is_corrected == (wanted == "on")
        assert ("a second network" in solution.report.strategy) == is_corrected
        values = solution.values(times)["u"]
        errors[wanted] = np.abs(values - 1 / (1 + times[:, 0])).max()
        solution.save(tmp_path / f"{wanted}.h5")
        loaded = Solution.load(tmp_path / f"{wanted}.h5")
        np.testing.assert_array_equal(loaded.values(times)["u"], values)
    assert errors["on"] < errors["off"] / 3


def test_unasked_it_follows_a_network_that_can_do_no_more():
    problem = loads_problem(DECAY, overrides=SMALL)
    system = build_system(problem)
    chosen = plan(system, read_settings(problem.solver), 1e-3)
    every = with_correction(system, chosen, (1.0,), seed=0)
    assert [s.share for s in every] == [1.0, 1.0] and every[-1].begin is not None
