"""From a problem to a verified solution: the main job, in one function."""

from collections.abc import Callable
from typing import Protocol

import jax

from pinnlab.devices import make_mesh
from pinnlab.errors import ProblemError
from pinnlab.keeper import Keeper
from pinnlab.outcome import Job
from pinnlab.problem.problem import Problem
from pinnlab.programs import Inspect
from pinnlab.record import Observation
from pinnlab.routes import try_routes
from pinnlab.settings import read_settings
from pinnlab.solution import Solution
from pinnlab.team import ALONE, Team
from pinnlab.training import trained
from pinnlab.verification import Verifier, seconds_of
from pinnlab.verify.preflight import Preflight, check


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = 60.0


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
        seconds = seconds_of(budget) if reference else 0.0
        return Verifier(problem, checked.warnings, seconds).verified(tried, job)


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


def observer(progress: Progress | None, budget: float) -> Callable[[Observation], None]:
    def observe(row: Observation) -> None:
        if progress is not None:
            progress.update(row, budget)

    return observe
