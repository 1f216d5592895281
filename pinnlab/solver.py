"""From a problem to a verified solution: the main job, in one function."""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import jax
import numpy as np
import tomli_w

from pinnlab.devices import make_mesh
from pinnlab.errors import ProblemError
from pinnlab.grids import ResultGrid, result_grid
from pinnlab.keeper import Keeper
from pinnlab.memory import peak_memory
from pinnlab.network import trained_numbers
from pinnlab.outcome import Job, Outcome, Tried, chosen
from pinnlab.probe import Probe
from pinnlab.problem.problem import Problem
from pinnlab.programs import Inspect
from pinnlab.provenance import provenance
from pinnlab.record import Observation, Record, Stop
from pinnlab.result import MASK, Cost, Result
from pinnlab.routes import try_routes
from pinnlab.settings import read_settings, settings_table
from pinnlab.solution import Solution, variables_on
from pinnlab.team import ALONE, Team
from pinnlab.training import trained
from pinnlab.verify.against import Truth
from pinnlab.verify.estimate import Estimate
from pinnlab.verify.evidence import Evidence
from pinnlab.verify.preflight import Preflight, check
from pinnlab.verify.verdict import judge, report
from pinnlab.verify.verified import Verified, distances, known, verify


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = 60.0
LEAST_VERIFICATION = 20.0


class Progress(Protocol):
    """Something that shows how a run goes on."""

    def update(self, row: Observation, budget: float) -> None:
        """Called after every piece of training, with the budget in seconds."""
        ...


def solve(
    problem: Problem,
    *,
    target: float = DEFAULT_TARGET,
    budget: float = DEFAULT_BUDGET,
    seed: int = 0,
    progress: Progress | None = None,
    reference: bool = True,
    checked: Preflight | None = None,
    inspect: Inspect | None = None,
    keeper: Keeper | None = None,
    devices: int | None = None,
    team: Team = ALONE,
) -> Solution:
    """Solve a problem and verify the solution.

    **Arguments:**

    - `target`: the relative L2 error wanted.
    - `budget`: seconds of training; compilation and verification are extra.
    - `seed`: of everything random.
    - `reference`: also solve classically, within the larger of 20 s and half the
        budget: the truth where none is declared, and its cost.
    - `checked`: the problem's preflight, where it was done before.
    - `inspect`: looks at the compiled programs of training (`diagnosis.watch`).
    - `keeper`: keeps checkpoints of training, and may go on from one.
    - `devices`: how many of JAX's devices share the collocation points in training;
        all of them if None.
    - `team`: the processes that train together; the others `assist`.

    **Returns:** a `Solution` with its report, whatever the verdict.

    Raises `ProblemError` for a problem, settings or arguments that make no sense or for
    more devices than there are, and `FloatingPointError` where no finite loss could be
    found.

    !!! example
        ```python
        solution = solve(load_problem("problems/oscillator.toml"), budget=10)
        print(solution.report.verdict, solution(t=1.0))
        ```
    """
    mesh = make_mesh(devices)
    job = Job(
        target, budget, seed, observer(progress, budget), inspect, keeper, mesh, team
    )
    checked = checked or check(problem, target)
    if checked.errors:
        raise ProblemError("\n".join(checked.errors), file=problem.file)
    settings = read_settings(problem.solver, problem.file)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        tried = try_routes(problem, settings, job)
        began = time.perf_counter()
        grid = result_grid(problem)
        seconds = max(LEAST_VERIFICATION, budget / 2) if reference else 0.0
        try:
            _announce(tried, job)
            facts = known(tried.outcomes[-1].system, grid.points, target, seconds)
            outcome = _best(tried, facts.truth, grid.points)
            probe = Probe(outcome.system)
            verified = verify(
                probe, outcome.model, outcome.points, grid.points, target, seconds,
                facts,
            )  # fmt: skip
        except KeyboardInterrupt:
            outcome = dataclasses.replace(chosen(tried), stop=Stop.INTERRUPTED)
            probe = Probe(outcome.system)
            verified = Verified(Evidence((), (), ()), None, None)
        return solution_of(outcome, probe, job, checked.warnings, verified, grid, began)


def assist(
    problem: Problem,
    team: Team,
    *,
    target: float,
    seed: int,
    inspect: Inspect | None,
    keeper: Keeper,
    devices: int | None,
) -> None:
    """What the other processes do while the first one solves: their part of training.

    The arguments are those of `solve`, and must be the same. Raises `SystemExit` with
    the status of process 0 where it ends without training.
    """
    mesh = make_mesh(devices)
    settings = read_settings(problem.solver, problem.file)
    seconds = team.told("train")
    job = Job(target, seconds, seed, observer(None, 0), inspect, keeper, mesh, team)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        trained(problem, settings, job, seconds)


def _announce(tried: Tried, job: Job) -> None:
    """Show that training has ended: what follows may take longer."""
    if tried.outcomes[-1].stop is not Stop.INTERRUPTED:
        for row in tried.record.rows[-1:]:
            job.observe(dataclasses.replace(row, stage="verifying"))


def _best(tried: Tried, truth: Truth | None, grid: np.ndarray) -> Outcome:
    """The outcome that is nearest to the truth, if one is known.

    Between two whose worst fields are equally near, the next field decides.
    """
    if truth is None:
        return chosen(tried)
    return chosen(tried, lambda o: distances(o.system, o.model, truth, grid))


def observer(progress: Progress | None, budget: float) -> Callable[[Observation], None]:
    def observe(row: Observation) -> None:
        if progress is not None:
            progress.update(row, budget)

    return observe


def solution_of(
    outcome: Outcome,
    probe: Probe,
    job: Job,
    warnings: tuple[str, ...],
    verified: Verified,
    grid: ResultGrid,
    began: float,
) -> Solution:
    """The solution with its verdict. `began`: when verification did."""
    result = _result(outcome, probe, job, warnings, verified, grid, began)
    return Solution(
        outcome.system,
        outcome.settings,
        job.seed,
        outcome.scales,
        outcome.model,
        result,
    )


def _result(
    outcome: Outcome,
    probe: Probe,
    job: Job,
    warnings: tuple[str, ...],
    verified: Verified,
    grid: ResultGrid,
    began: float,
) -> Result:
    """Everything for the file."""
    system, record = outcome.system, outcome.record
    judgment = judge(verified.evidence, job.target, outcome.stop.value)
    variables = variables_on(probe, outcome.model, grid)
    if grid.inside is not None:
        variables[MASK] = grid.inside.astype(np.uint8)
    if verified.truth is not None and verified.truth.points is None:
        for name, values in verified.truth.values.items():
            variables[f"{name}_{verified.truth.name}"] = grid.spread(values)
    if isinstance(verified.estimate, Estimate):
        for name, values in verified.estimate.values.items():
            variables[f"{name}_error_estimate"] = grid.spread(values)
    cost = Cost(
        record.compile_seconds,
        record.train_seconds,
        time.perf_counter() - began,
        record.iterations,
        trained_numbers(outcome.model.network),
        peak_memory() / 2**20,
    )
    events = tuple(dict.fromkeys((*warnings, *record.events)))
    return Result(
        problem=system.problem.source,
        solver=tomli_w.dumps(settings_table(outcome.settings)),
        axes=grid.axes,
        variables=variables,
        model={},
        history=_history(record),
        history_stage=tuple(r.stage for r in record.rows),
        report=report(
            judgment,
            verified.evidence,
            job.target,
            outcome.reason,
            cost,
            events,
            verified.reference,
        ),
        attributes=provenance(system.problem) | {"stop": outcome.stop.value},
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
