"""Solutions with random numbers in their networks: complete, but for the training."""

import jax
import numpy as np
import tomli_w
from synthetic import make_report

from pinnlab import Solution, loads_problem
from pinnlab.assembly import network_of
from pinnlab.fields import Model
from pinnlab.grids import ResultGrid
from pinnlab.probe import Probe
from pinnlab.result import Result
from pinnlab.scaling import parameters_of
from pinnlab.settings import read_settings, settings_table
from pinnlab.solution import variables_on
from pinnlab.strategy import plan
from pinnlab.system.system import build_system


def make_solution(text: str, axes: dict[str, np.ndarray], seed: int = 1) -> Solution:
    """The solution of a problem file's text before any training, on a small grid."""
    problem = loads_problem(text, "untrained")
    with jax.enable_x64(True):
        system = build_system(problem)
        settings = plan(system, read_settings(problem.solver), 1e-3).settings
        scales = (1.0,) * len(system.fields)
        _, key, _ = jax.random.split(jax.random.key(seed), 3)
        network = network_of(system, settings, scales, key)
        model = Model(network, parameters_of(system))
        mesh = np.meshgrid(*axes.values(), indexing="ij")
        grid = np.stack([m.ravel() for m in mesh], axis=1)
        variables = variables_on(Probe(system), model, ResultGrid(axes, grid))
    result = Result(
        problem=text,
        solver=tomli_w.dumps(settings_table(settings)),
        axes=axes,
        variables=variables,
        model={},
        history={"step": np.zeros(0), "time": np.zeros(0)},
        history_stage=(),
        report=make_report("unverified", ()),
        attributes={"title": problem.title, "seed": seed},
    )
    return Solution(system, settings, seed, scales, model, result)
