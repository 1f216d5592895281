"""What is known before a sweep starts: its errors, its size, its time and disk."""

import math
from dataclasses import dataclass
from pathlib import Path

from pinnlab.errors import ProblemError
from pinnlab.grids import CLOUD, GRID
from pinnlab.problem.file import loads_problem
from pinnlab.problem.problem import Problem
from pinnlab.sweep.folder import State, files, state
from pinnlab.sweep.plan import Plan, Run, described
from pinnlab.sweep.sharing import Batch
from pinnlab.verification import seconds_of
from pinnlab.verify.preflight import check


STARTING = 15.0
"""Seconds of a run for starting, compiling and verifying, about."""


@dataclass(frozen=True)
class Estimate:
    """The size of a sweep. `seconds` is an upper bound, about; `disk` in bytes."""

    runs: int
    done: int
    seconds: float
    disk: int


def check_plan(plan: Plan, folder: Path) -> tuple[str, ...]:
    """Preflight of every combination; the warnings, with how many runs have each.

    Seeds do not change what is checked, and what a folder has a specification for was
    checked before. Raises `ProblemError` naming the combination.
    """
    found: dict[str, int] = {}
    seen: set[tuple[str, float]] = set()
    _check_batch(plan)
    for run in plan.runs:
        content = run.problem, run.target
        if content in seen or files(folder, run.id).spec.exists():
            continue
        seen.add(content)
        for warning in _warnings(run):
            found[warning] = found.get(warning, 0) + 1
    return tuple(f"{w} ({n} of {len(seen)} combinations)" for w, n in found.items())


def _check_batch(plan: Plan) -> None:
    for run in plan.runs if plan.batch is Batch.ALWAYS else ():
        if loads_problem(run.problem, run.name).solver.get("second_stage") == "on":
            message = "runs that train together have no second stage"
            hint = "leave batch away, or solver.second_stage"
            raise ProblemError(message, key="batch", hint=hint)


def estimate(
    plan: Plan, folder: Path, workers: int, trials: int | None = None
) -> Estimate:
    """How long what is missing may take with this many workers, and its disk.

    **Arguments:**

    - `trials`: runs of a search; each like the longest and largest of the plan.
    """
    missing = [r for r in plan.runs if state(folder, r.id) is not State.DONE]
    spans = [longest_span(r) for r in missing]
    sizes = {r.problem: 0 for r in plan.runs}
    for text in sizes:
        sizes[text] = _bytes(loads_problem(text))
    if trials:
        seconds = max(map(longest_span, plan.runs)) * math.ceil(trials / workers)
        return Estimate(trials, 0, seconds, trials * max(sizes.values()))
    return Estimate(
        runs=len(plan.runs),
        done=len(plan.runs) - len(missing),
        seconds=max(max(spans, default=0.0), sum(spans) / workers),
        disk=sum(sizes[r.problem] for r in missing),
    )


def longest_span(run: Run) -> float:
    """Seconds that a run takes at most, about: training, verification, the rest."""
    return run.budget + verification(run) + STARTING


def verification(run: Run) -> float:
    """Seconds that the classical reference of a run may take."""
    return seconds_of(run.budget) if run.reference else 0.0


def _warnings(run: Run) -> tuple[str, ...]:
    try:
        found = check(loads_problem(run.problem, run.name), run.target)
    except ProblemError as error:
        raise ProblemError(f"with {described(run.settings)}:\n{error}") from error
    if found.errors:
        errors = "\n".join(found.errors)
        raise ProblemError(f"with {described(run.settings)}:\n{errors}")
    return found.warnings


def _bytes(problem: Problem) -> int:
    """Of a result file: its variables on its grid, and something for the rest."""
    dim = len(problem.axes)
    points = GRID[dim] ** dim if dim in GRID else CLOUD
    parts = sum(2 if f.complex else 1 for f in problem.fields)
    variables = 2 * parts + len(problem.equations) + len(problem.outputs)
    return math.ceil(8 * points * variables) + 200_000
