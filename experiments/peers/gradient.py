"""Our own cost of a loss with its gradient, for the table beside other libraries."""

import time

import equinox as eqx
import jax
import numpy as np

from pinnlab import load_problem
from pinnlab.assembly import least_squares, network_of
from pinnlab.cli.gallery import find_problem
from pinnlab.settings import read_settings
from pinnlab.system.system import build_system


REPEATS = 30
SETTINGS = {
    "solver.enforce": "penalty",
    "solver.points": 2540,
    "solver.condition_points": 80,
    "solver.network.width": 20,
    "solver.network.depth": 3,
    "solver.network.activation": "tanh",
}


def gradient_milliseconds(precision: str) -> float:
    """The median for Burgers' equation: tanh 3 x 20, 2540 points, penalties."""
    settings = SETTINGS | {"solver.precision": precision}
    problem = load_problem(find_problem("burgers"), settings)
    chosen = read_settings(problem.solver)
    with jax.enable_x64(True):
        system = build_system(problem, chosen.enforce)
        network = network_of(system, chosen, (1.0,), jax.random.key(0))
        objective, theta = least_squares(system, chosen, network, 0)
        both = eqx.filter_jit(lambda o, th: o.value_and_grad(th))
        times = []
        for _ in range(REPEATS + 2):
            began = time.perf_counter()
            jax.block_until_ready(both(objective, theta))
            times.append(time.perf_counter() - began)
    return float(1e3 * np.median(times[2:]))
