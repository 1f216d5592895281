"""How runs fit into the jobs of a cluster: in one, or in several one after another."""

from pinnlab.errors import ProblemError
from pinnlab.keeper import PERIOD
from pinnlab.problem.file import loads_problem
from pinnlab.routes import ROUTE_SHARE, only_trains
from pinnlab.settings import read_settings
from pinnlab.sweep.batch import merged
from pinnlab.sweep.checks import STARTING, longest_span, verification
from pinnlab.sweep.plan import Plan, Run


ENDING = 120.0
"""Seconds before its walltime at which a job stops what it does."""


def lifetime(on: str, plan: Plan) -> float:
    """Seconds for which a job works.

    Raises `ProblemError` where a run could not get on in so short a job.
    """
    walltime = plan.jobs[on].walltime
    least = max(map(_batch_span if plan.batch else least_span, _processes(plan)))
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
    longer = [span for r in plan.runs if (span := longest_span(r)) > works]
    if plan.batch or not longer:
        return ""
    return (
        f"{len(longer)} of {len(plan.runs)} runs may take up to {max(longer):g} s, and "
        f"a job works for {works:g} s ({on}.walltime): they go on in the next one from "
        f"their checkpoints, one each {PERIOD:g} s and one at the end of a job"
    )


def least_span(run: Run) -> float:
    """Seconds of a job in which a run gets on, about; no more than `longest_span`.

    The start, what is not kept in checkpoints (verification, and routes before
    training, which are gone through again), and the time to the first checkpoint.
    """
    problem = loads_problem(run.problem, run.name)
    settings = read_settings(problem.solver, run.name)
    if settings.strategy not in ("auto", "nonlinear"):
        return longest_span(run)
    again = 0.0 if only_trains(problem, settings) else ROUTE_SHARE * run.budget
    least = STARTING + again + PERIOD + verification(run)
    return min(least, longest_span(run))


def _processes(plan: Plan) -> list[Run]:
    """A run for each process: a batch is like one run with the sum of the budgets."""
    return merged(plan) if plan.batch else list(plan.runs)


def _batch_span(run: Run) -> float:
    """A batch has no checkpoints, and its members are verified in twice the time."""
    return longest_span(run) + verification(run)
