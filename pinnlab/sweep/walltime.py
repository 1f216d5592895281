"""How runs fit into the jobs of a cluster: in one, or in several one after another."""

from dataclasses import replace

from pinnlab.errors import ProblemError
from pinnlab.keeper import PERIOD
from pinnlab.problem.file import loads_problem
from pinnlab.routes import ROUTE_SHARE, only_trains
from pinnlab.settings import read_settings
from pinnlab.sweep.alike import batched
from pinnlab.sweep.checks import STARTING, longest_span, verification
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.sharing import Batch


ENDING = 120.0
"""Seconds before its walltime at which a job stops what it does."""


def lifetime(on: str, plan: Plan) -> float:
    """Seconds for which a job works.

    Raises `ProblemError` where a run could not get on in so short a job.
    """
    walltime = plan.jobs[on].walltime
    least = max(least_span(run, batch) for run, batch in _processes(plan))
    if walltime - ENDING < least:
        message = (
            f"{walltime:g} s are too short for a run, which needs about {least:g} s "
            f"to get on, and the {ENDING:g} s at the end in which a job stops"
        )
        raise ProblemError(message, key=f"{on}.walltime")
    return walltime - ENDING


def longer_than_a_job(on: str, plan: Plan) -> str:
    """What is to be said about runs that may take several jobs; "" where none may.

    Raises `ProblemError` as `lifetime` does.
    """
    works = lifetime(on, plan)
    processes = _processes(plan)
    spans = [_whole_span(run, batch) for run, batch in processes]
    longer = [span for span in spans if span > works]
    if not longer:
        return ""
    what = "batches" if any(batch for _, batch in processes) else "runs"
    return (
        f"{len(longer)} of {len(spans)} {what} may take up to {max(longer):g} s, and "
        f"a job works for {works:g} s ({on}.walltime): they go on in the next one from "
        f"their checkpoints, one each {PERIOD:g} s and one at the end of a job"
    )


def least_span(run: Run, batch: bool = False) -> float:
    """Seconds of a job in which a run gets on, about; no more than all it may take.

    The start, what is not kept in checkpoints (verification, and routes before
    training, which are gone through again), and the time to the first checkpoint.

    **Arguments:**

    - `batch`: whether the run stands for a batch that trains, with the sum of its
        budgets.
    """
    problem = loads_problem(run.problem, run.name)
    settings = read_settings(problem.solver, run.name)
    trains = only_trains(problem, settings)
    whole = _whole_span(run, batch)
    if settings.strategy not in ("auto", "nonlinear"):
        return whole
    again = 0.0 if trains else ROUTE_SHARE * run.budget
    return min(STARTING + again + PERIOD + _verified_span(run, batch), whole)


def _processes(plan: Plan) -> list[tuple[Run, bool]]:
    """Runs, and whether they stand for a batch, with the sum of its budgets.

    Batches that nobody asked for are made so small that they fit, and what is solved in
    turn can be stopped between any two.
    """
    found: list[tuple[Run, bool]] = []
    asked = plan.batch is Batch.ALWAYS
    for batch in batched(plan.runs, plan, 1) if asked else ():
        first = batch[0]
        problem = loads_problem(first.problem, first.name)
        if only_trains(problem, read_settings(problem.solver, first.name)):
            total = sum(run.budget for run in batch)
            found.append((replace(first, budget=total), len(batch) > 1))
        else:
            found += [(run, False) for run in batch]
    return found if asked else [(run, False) for run in plan.runs]


def _whole_span(run: Run, batch: bool) -> float:
    return longest_span(run) - verification(run) + _verified_span(run, batch)


def _verified_span(run: Run, batch: bool) -> float:
    """The members of a batch are verified in the time of two."""
    return (2 if batch else 1) * verification(run)
