"""From a problem to a verified solution: the main job, in one function."""

import dataclasses
import datetime
import platform
import resource
import time
from collections.abc import Callable
from typing import Protocol

import equinox as eqx
import jax
import numpy as np
import tomli_w

import pinnlab
from pinnlab.errors import ProblemError
from pinnlab.grids import grid_axes, grid_points
from pinnlab.keeper import Keeper
from pinnlab.problem.problem import Problem
from pinnlab.programs import Inspect
from pinnlab.record import Observation, Record, Stop
from pinnlab.result import Cost, Result
from pinnlab.routes import Job, Outcome, best_outcome
from pinnlab.settings import read_settings, settings_table
from pinnlab.solution import Solution, variables_on
from pinnlab.verify.preflight import Preflight, check
from pinnlab.verify.truth import Evidence, gather, judge, report


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = 60.0


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
    checked: Preflight | None = None,
    inspect: Inspect | None = None,
    keeper: Keeper | None = None,
) -> Solution:
    """Solve a problem and verify the solution.

    **Arguments:**

    - `target`: the relative L2 error wanted.
    - `budget`: seconds of training; compilation and verification are extra.
    - `seed`: of everything random.
    - `checked`: the problem's preflight, where it was done before.
    - `inspect`: looks at the compiled programs of training (`diagnosis.watch`).
    - `keeper`: keeps checkpoints of training, and may go on from one.

    **Returns:** a `Solution` with its report, whatever the verdict.

    Raises `ProblemError` for a problem or settings that make no sense, and
    `FloatingPointError` where no finite loss could be found.

    !!! example
        ```python
        solution = solve(load_problem("problems/oscillator.toml"), budget=10)
        print(solution.report.verdict, solution(t=1.0))
        ```
    """
    checked = checked or check(problem, target)
    if checked.errors:
        raise ProblemError("\n".join(checked.errors), file=problem.name)
    settings = read_settings(problem.solver, f"{problem.name}.toml")
    job = Job(target, budget, seed, _observer(progress, budget), inspect, keeper)
    began = time.perf_counter()
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        outcome = best_outcome(problem, settings, job)
        try:
            evidence = _evidence(outcome)
        except KeyboardInterrupt:
            outcome = dataclasses.replace(outcome, stop=Stop.INTERRUPTED)
            evidence = Evidence((), (), ())
        result = _result(outcome, job, checked.warnings, evidence, began)
        return Solution(
            outcome.system,
            outcome.settings,
            seed,
            outcome.scales,
            outcome.model,
            result,
        )


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


def _evidence(outcome: Outcome) -> Evidence:
    problem = outcome.system.problem
    grid = grid_points(problem, grid_axes(problem))
    return gather(outcome.system, outcome.model, outcome.points, grid)


def _result(
    outcome: Outcome,
    job: Job,
    warnings: tuple[str, ...],
    evidence: Evidence,
    began: float,
) -> Result:
    """The verdict and everything for the file. `began`: when all the work began."""
    system, record = outcome.system, outcome.record
    axes = grid_axes(system.problem)
    grid = grid_points(system.problem, axes)
    judgment = judge(evidence, job.target, outcome.stop.value)
    variables = variables_on(system, outcome.model, axes, grid)
    arrays = eqx.filter(outcome.model.network, eqx.is_array)
    spent = time.perf_counter() - began
    cost = Cost(
        record.compile_seconds,
        record.train_seconds,
        max(0.0, spent - record.compile_seconds - record.train_seconds),
        record.iterations,
        sum(a.size for a in jax.tree.leaves(arrays)),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
    events = tuple(dict.fromkeys((*warnings, *record.events)))
    return Result(
        problem=system.problem.source,
        solver=tomli_w.dumps(settings_table(outcome.settings)),
        axes=axes,
        variables=variables,
        model={},
        history=_history(record),
        history_stage=tuple(r.stage for r in record.rows),
        report=report(judgment, evidence, job.target, outcome.reason, cost, events),
        attributes=_attributes(system.problem, outcome.stop),
    )


def _history(record: Record) -> dict[str, np.ndarray]:
    rows = record.rows
    return {
        "step": np.array([r.iteration for r in rows]),
        "time": np.array([r.elapsed for r in rows]),
        "loss": np.array([r.loss for r in rows]),
        "heldout": np.array([r.heldout for r in rows]),
        "error": np.array([np.nan if r.error is None else r.error for r in rows]),
    }


def _attributes(problem: Problem, stop: Stop) -> dict[str, str | int | float]:
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
        "title": problem.title,
        "stop": stop.value,
        "pinnlab_version": pinnlab.__version__,
        "jax_version": jax.__version__,
        "equinox_version": eqx.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }
