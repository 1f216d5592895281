"""Runs that differ only in seeds and values of parameters, solved as one ensemble.

The process of one run takes along all such runs that nobody works on: it holds their
leases, and leaves a result of its own for each. Drivers and workers need not know.
"""

import dataclasses
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pinnlab.ensemble.solve import Member, solve_members
from pinnlab.problem.file import loads_problem
from pinnlab.solution import Solution
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.folder import State, files, record_error, state
from pinnlab.sweep.plan import Plan, Run


def solve_batch(folder: Path, plan: Plan, run: str) -> None:
    """Solve a run, and with it those that can share its compiled programs.

    A run without a result has its reason recorded. The first run's lease is the
    caller's.
    """
    with _taken(folder, plan, run) as runs:
        problems = {r.problem: loads_problem(r.problem, r.name) for r in runs}
        first = runs[0]
        found = solve_members(
            [Member(problems[r.problem], r.seed) for r in runs],
            target=first.target,
            budget=first.budget * len(runs),
            reference=first.reference,
        )
        for own, solved in zip(runs, found, strict=False):
            if isinstance(solved, Solution):
                solved.save(files(folder, own.id).result, force=True)
            else:
                kind = type(solved).__name__
                record_error(folder, own.id, kind, str(solved))


def alike(a: Run, b: Run) -> bool:
    """Whether two runs differ in nothing but their seeds and values of parameters."""
    if (a.name, a.target, a.budget, a.reference) != (
        b.name,
        b.target,
        b.budget,
        b.reference,
    ):
        return False
    return _shape(a) == _shape(b)


def merged(plan: Plan) -> list[Run]:
    """One run for all that are alike, with the sum of their budgets."""
    firsts: list[Run] = []
    counts: list[int] = []
    for run in plan.runs:
        same = next((i for i, f in enumerate(firsts) if alike(f, run)), None)
        if same is None:
            firsts.append(run)
            counts.append(1)
        else:
            counts[same] += 1
    return [
        dataclasses.replace(run, budget=run.budget * count)
        for run, count in zip(firsts, counts, strict=True)
    ]


def _shape(run: Run) -> dict[str, object]:
    """The problem without the numbers among its parameters."""
    table: dict[str, object] = tomllib.loads(run.problem)
    parameters = table.get("parameters")
    if isinstance(parameters, dict):
        numbers = {k: isinstance(v, int | float) or v for k, v in parameters.items()}
        table["parameters"] = numbers
    return table


@contextmanager
def _taken(folder: Path, plan: Plan, run: str) -> Iterator[list[Run]]:
    """The run and those like it that are missing and not leased, leased meanwhile."""
    first = plan.run(run)
    found = [first]
    with ExitStack() as leases:
        for other in plan.runs:
            if other.id == run or not alike(first, other):
                continue
            if state(folder, other.id) is not State.MISSING:
                continue
            lease = leases.enter_context(claimed(files(folder, other.id).lease))
            if lease is not None and state(folder, other.id) is not State.DONE:
                found.append(other)
        yield found
