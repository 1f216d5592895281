"""From a problem to a verified solution: the main job, in one function."""

import dataclasses
import datetime
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tomli_w
from jaxtyping import Array

import pinnlab
from pinnlab.assembly import least_squares, network_of
from pinnlab.errors import ProblemError
from pinnlab.evaluation import field_expressions
from pinnlab.linear import route
from pinnlab.problem.problem import Problem
from pinnlab.residual import LeastSquares, Model, make_rows
from pinnlab.result import Cost, Result
from pinnlab.sampling import sample
from pinnlab.scaling import field_scales, parameters_of
from pinnlab.settings import Settings, read_settings, settings_table
from pinnlab.solution import Solution, grid_axes, grid_points, variables_on
from pinnlab.strategy import linear_settings, plan, tries_linear
from pinnlab.system.exact import static_values
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import EVERYWHERE, exact_solution
from pinnlab.train import Inspect, Limits, Observation, Record, Stop, train
from pinnlab.verify.preflight import Preflight, check
from pinnlab.verify.truth import Evidence, gather, judge, report


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = 60.0
ERROR_SAMPLE = 4096
LINEAR_SHARE = 0.6
LINEAR_GOAL = 1e-8


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


@dataclass(frozen=True)
class Job:
    """What is asked for."""

    target: float
    budget: float
    seed: int
    observe: Callable[[Observation], None]
    inspect: Inspect | None = None


@dataclass(frozen=True)
class Outcome:
    """What one way of solving led to, before it is verified."""

    system: System
    settings: Settings
    scales: tuple[float, ...]
    model: Model
    points: np.ndarray
    heldout: float
    record: Record
    stop: Stop
    reason: str


def solve(
    problem: Problem,
    *,
    target: float = DEFAULT_TARGET,
    budget: float = DEFAULT_BUDGET,
    seed: int = 0,
    progress: Progress | None = None,
    checked: Preflight | None = None,
    inspect: Inspect | None = None,
) -> Solution:
    """Solve a problem and verify the solution.

    **Arguments:**

    - `target`: the relative L2 error wanted.
    - `budget`: seconds of training; compilation and verification are extra.
    - `seed`: of everything random.
    - `checked`: the problem's preflight, where it was done before.
    - `inspect`: looks at the compiled programs of training (`diagnosis.watch`).

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
    job = Job(target, budget, seed, _observer(progress, budget), inspect)
    began = time.perf_counter()
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        outcome = _best(problem, settings, job)
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


def _best(problem: Problem, settings: Settings, job: Job) -> Outcome:
    """The linear route where it applies; training where it does not suffice."""
    first: Outcome | None = None
    if tries_linear(settings):
        system = build_system(problem, "rows")
        if route.suits(system):
            first = _linear(system, settings, job)
            if settings.strategy == "linear" or _suffices(first, job):
                return first
        elif settings.strategy == "linear":
            message = (
                "the problem is not linear in its fields (or has over 3 coordinates)"
            )
            raise ProblemError(message, file=problem.name, key="solver.strategy")
    spent = first.record.train_seconds if first else 0.0
    second = _trained(problem, settings, job, max(job.budget - spent, 1.0))
    if first is None:
        return second
    merged = _merged(first.record, second.record)
    better = first if _score(first) <= _score(second) else second
    return dataclasses.replace(better, record=merged)


def _suffices(outcome: Outcome, job: Job) -> bool:
    spent = outcome.record.train_seconds
    if outcome.stop in (Stop.TARGET, Stop.INTERRUPTED) or spent > 0.95 * job.budget:
        return True
    return _score(outcome) < job.target


def _score(outcome: Outcome) -> float:
    """The known error, or the held-out residual where there is no truth."""
    error = _error_of(outcome.system)
    return outcome.heldout if error is None else float(error(outcome.model))


def _merged(a: Record, b: Record) -> Record:
    rows = [
        *a.rows,
        *(dataclasses.replace(r, elapsed=r.elapsed + a.train_seconds) for r in b.rows),
    ]
    return Record(
        rows,
        [*a.events, *b.events],
        a.compile_seconds + b.compile_seconds,
        a.train_seconds + b.train_seconds,
        a.iterations + b.iterations,
    )


def _linear(system: System, settings: Settings, job: Job) -> Outcome:
    goal = max(min(job.target / 100, LINEAR_GOAL), route.FINEST_GOAL)
    alone = settings.strategy == "linear"
    seconds = job.budget * (1.0 if alone else LINEAR_SHARE)
    found, record, stop = route.search(system, goal, seconds, job.seed, job.observe)
    full = linear_settings(settings, found.solved.features.count)
    scales = (1.0,) * len(system.fields)
    _, key, _ = jax.random.split(jax.random.key(job.seed), 3)
    blank = network_of(system, full, scales, key)
    model = Model(route.as_network(found, blank), parameters_of(system))
    box = ", ".join(f"{b:.3g}" for b in found.box)
    reason = (
        f"linear problem: {found.solved.features.count} random sine features with "
        f"frequencies up to ({box}), one least-squares solve ({found.tried} tried)"
    )
    points = sample(system.problem, EVERYWHERE, 2048, job.seed)
    return Outcome(
        system, full, scales, model, points, found.solved.worst, record, stop, reason
    )


def _trained(problem: Problem, settings: Settings, job: Job, seconds: float) -> Outcome:
    system = build_system(problem, settings.enforce)
    chosen = plan(system, settings, job.target)
    full = chosen.settings
    _, net_key, train_key = jax.random.split(jax.random.key(job.seed), 3)
    scales = field_scales(system, lambda s, k: network_of(system, full, s, k), net_key)
    network = network_of(system, full, scales, net_key)
    objective, theta = least_squares(system, full, network, job.seed)
    trained = train(
        objective,
        theta,
        chosen.stages,
        Limits(seconds, job.target / 100, job.target / 2),
        key=train_key,
        observe=job.observe,
        error_of=_error_of_parameters(system, objective),
        inspect=job.inspect,
    )
    lost = not np.isfinite(trained.heldout).all()
    if lost and trained.stop is not Stop.INTERRUPTED:
        raise FloatingPointError(next(iter(trained.record.events), "no finite loss"))
    model = trained.objective.model(jnp.asarray(trained.theta))
    wide = jax.tree.map(
        lambda a: a.astype(jnp.float64) if eqx.is_inexact_array(a) else a,
        model.network,
    )
    return Outcome(
        system,
        full,
        scales,
        Model(wide, parameters_of(system)),
        np.asarray(trained.objective.blocks[0].points, float),
        float(np.max(trained.heldout)),
        trained.record,
        trained.stop,
        chosen.reason,
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


def _error_of(system: System) -> Callable[[Model], Array] | None:
    """The worst field's relative error on a fixed sample, where a truth is given."""
    exact = exact_solution(system.problem)
    if set(exact) != set(system.fields):
        return None
    points = sample(system.problem, EVERYWHERE, ERROR_SAMPLE, seed=101)
    truth = static_values(
        system.problem, tuple(exact[f] for f in system.fields), points
    )
    keep = np.isfinite(truth).all(axis=1)
    points, truth = jnp.asarray(points[keep]), jnp.asarray(truth[keep])
    rows = make_rows(system, field_expressions(system))
    parameters = parameters_of(system)
    known = jax.jit(jax.vmap(lambda p: rows.known(parameters, p)))(points)
    size = jnp.sqrt(jnp.sum(truth**2, axis=0))
    size = jnp.where(size > 0, size, jnp.sqrt(float(len(truth))))

    def error_of(model: Model) -> Array:
        found = jax.vmap(rows, in_axes=(None, 0, 0))(model, points, known)
        return jnp.max(jnp.sqrt(jnp.sum((found - truth) ** 2, axis=0)) / size)

    return error_of


def _error_of_parameters(
    system: System, objective: LeastSquares
) -> Callable[[Array], Array] | None:
    error_of = _error_of(system)
    if error_of is None:
        return None
    return lambda theta: error_of(objective.model(theta))


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
