"""From a problem to a verified solution: the main job, in one function."""

import datetime
import platform
import resource
import time
from collections.abc import Callable
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tomli_w
from jaxtyping import Array

import pinnlab
from pinnlab.assembly import least_squares, network_of
from pinnlab.evaluation import field_expressions
from pinnlab.problem.problem import Problem
from pinnlab.residual import LeastSquares, Model, make_rows
from pinnlab.result import Cost, Result
from pinnlab.sampling import sample
from pinnlab.scaling import field_scales, parameters_of
from pinnlab.settings import read_settings, settings_table
from pinnlab.solution import Solution, grid_axes, grid_points, variables_on
from pinnlab.strategy import Plan, plan
from pinnlab.system.exact import static_values
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import exact_solution
from pinnlab.train import Limits, Observation, Trained, train
from pinnlab.verify.truth import gather, judge, report


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = 60.0
ERROR_SAMPLE = 4096


class Progress(Protocol):
    """Something that shows how a run goes on."""

    def update(
        self,
        stage: str,
        iteration: int,
        loss: float,
        heldout: float,
        error: float | None,
        elapsed: float,
        budget: float,
    ) -> None:
        """Called after every piece of training."""
        ...


def solve(
    problem: Problem,
    *,
    target: float = DEFAULT_TARGET,
    budget: float = DEFAULT_BUDGET,
    seed: int = 0,
    progress: Progress | None = None,
) -> Solution:
    """Solve a problem and verify the solution.

    **Arguments:**

    - `target`: the relative L2 error wanted.
    - `budget`: seconds of training; compilation and verification are extra.
    - `seed`: of everything random.

    **Returns:** a `Solution` with its report, whatever the verdict.

    Raises `ProblemError` for settings that make no sense, and `FloatingPointError`
    where no finite loss could be found.

    !!! example
        ```python
        solution = solve(load_problem("problems/oscillator.toml"), budget=10)
        print(solution.report.verdict, solution(t=1.0))
        ```
    """
    settings = read_settings(problem.solver, problem.name)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        system = build_system(problem, settings.enforce)
        chosen = plan(system, settings, target)
        return _solve(system, chosen, target, budget, seed, progress)


def _solve(
    system: System,
    chosen: Plan,
    target: float,
    budget: float,
    seed: int,
    progress: Progress | None,
) -> Solution:
    settings = chosen.settings
    key, net_key, train_key = jax.random.split(jax.random.key(seed), 3)
    scales = field_scales(
        system, lambda s, k: network_of(system, settings.network, s, k), net_key
    )
    network = network_of(system, settings.network, scales, net_key)
    objective, theta = least_squares(system, settings, network, seed)
    trained = train(
        objective,
        theta,
        chosen.stages,
        Limits(budget, target / 100, target / 2),
        key=train_key,
        observe=_observer(progress, budget),
        error_of=_error_of(system, objective, seed),
    )
    if not np.isfinite(trained.heldout).all():
        raise FloatingPointError("; ".join(trained.record.events) or "no finite loss")
    began = time.perf_counter()
    model = _final_model(trained, system)
    judged = _verify(system, model, trained, chosen, target, began)
    return Solution(system, settings, seed, scales, model, judged)


def _observer(
    progress: Progress | None, budget: float
) -> Callable[[Observation], None]:
    def observe(row: Observation) -> None:
        if progress is not None:
            progress.update(
                row.stage,
                row.iteration,
                row.loss,
                row.heldout,
                row.error,
                row.elapsed,
                budget,
            )

    return observe


def _error_of(
    system: System, objective: LeastSquares, seed: int
) -> Callable[[Array], Array] | None:
    """The worst field's relative error on a fixed sample, where a truth is given."""
    exact = exact_solution(system.problem)
    if set(exact) != set(system.fields):
        return None
    equation = system.equations[0]
    points = sample(system.problem, equation.place, ERROR_SAMPLE, seed + 101)
    truth = static_values(
        system.problem, tuple(exact[f] for f in system.fields), points
    )
    keep = np.isfinite(truth).all(axis=1)
    points, truth = jnp.asarray(points[keep]), jnp.asarray(truth[keep])
    rows = make_rows(system, field_expressions(system))
    parameters = objective.parameters
    known = jax.jit(jax.vmap(lambda p: rows.known(parameters, p)))(points)
    size = jnp.sqrt(jnp.sum(truth**2, axis=0))
    size = jnp.where(size > 0, size, jnp.sqrt(float(len(truth))))

    def error_of(theta: Array) -> Array:
        model = objective.model(theta)
        found = jax.vmap(rows, in_axes=(None, 0, 0))(model, points, known)
        return jnp.max(jnp.sqrt(jnp.sum((found - truth) ** 2, axis=0)) / size)

    return error_of


def _final_model(trained: Trained, system: System) -> Model:
    model = trained.objective.model(jnp.asarray(trained.theta))
    wide = jax.tree.map(
        lambda a: a.astype(jnp.float64) if eqx.is_inexact_array(a) else a,
        model.network,
    )
    return Model(wide, parameters_of(system))


def _verify(
    system: System,
    model: Model,
    trained: Trained,
    chosen: Plan,
    target: float,
    began: float,
) -> Result:
    problem, record = system.problem, trained.record
    axes = grid_axes(problem)
    grid = grid_points(problem, axes)
    training = np.asarray(trained.objective.blocks[0].points, float)
    evidence = gather(system, model, training, grid)
    judgment = judge(evidence, target, trained.stop.value)
    variables = variables_on(system, model, axes, grid)
    cost = Cost(
        record.compile_seconds,
        record.train_seconds,
        time.perf_counter() - began,
        record.iterations,
        int(trained.theta.size),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    judged = report(
        judgment, evidence, target, chosen.reason, cost, tuple(record.events)
    )
    rows = record.rows
    history = {
        "step": np.array([r.iteration for r in rows]),
        "time": np.array([r.elapsed for r in rows]),
        "loss": np.array([r.loss for r in rows]),
        "heldout": np.array([r.heldout for r in rows]),
        "error": np.array([np.nan if r.error is None else r.error for r in rows]),
    }
    return Result(
        problem=problem.source,
        solver=tomli_w.dumps(settings_table(chosen.settings)),
        axes=axes,
        variables=variables,
        model={},
        history=history,
        history_stage=tuple(r.stage for r in rows),
        report=judged,
        attributes={
            "created": datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
            "title": problem.title,
            "stop": trained.stop.value,
            "pinnlab_version": pinnlab.__version__,
            "jax_version": jax.__version__,
            "equinox_version": eqx.__version__,
            "numpy_version": np.__version__,
            "python_version": platform.python_version(),
            "device": jax.devices()[0].device_kind,
        },
    )

