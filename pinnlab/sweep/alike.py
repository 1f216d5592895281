"""Runs that differ only in seeds and values of parameters, put into batches.

A process trains the runs of a batch in one compiled program. Unasked that is done where
each run is what it would be alone, and where it is faster: starting and compiling, some
ten seconds to a minute of a run, are paid once for all.
"""

import json
import math
import tomllib
from collections.abc import Sequence

from pinnlab.correction import may_correct
from pinnlab.problem.file import loads_problem
from pinnlab.routes import only_trains
from pinnlab.settings import read_settings
from pinnlab.sweep.checks import longest_span
from pinnlab.sweep.plan import Plan, Run
from pinnlab.sweep.sharing import Batch
from pinnlab.verify.preflight import memory_needed


Runs = tuple[Run, ...]
MOST, MOST_ON_GPUS = 8, 64
"""Runs in a batch. On a CPU eight together are as fast as one after another, and what
is left to gain is an eighth of the start; a GPU is not full before."""
SHORT = 60.0
"""Seconds of budget up to which runs share a process on a CPU: where they are longer
the start matters little, and a run that has met its target costs until the last has."""
ON_A_GPU = 8e9
"""Bytes of a GPU that a batch may need."""


def kind(run: Run) -> str:
    """Equal for runs that differ in nothing but seeds and values of parameters."""
    table: dict[str, object] = tomllib.loads(run.problem)
    parameters = table.get("parameters")
    if isinstance(parameters, dict):
        numbers = {k: isinstance(v, int | float) or v for k, v in parameters.items()}
        table["parameters"] = numbers
    content = run.name, run.target, run.budget, run.reference, table
    return json.dumps(content, sort_keys=True, default=str)


def batched(
    runs: Sequence[Run], plan: Plan, workers: int, seconds: float = math.inf
) -> list[Runs]:
    """The runs in batches, each for one process; many are of one run.

    Unasked, no batch is so large that some of the workers would have none.

    **Arguments:**

    - `workers`: processes at one time.
    - `seconds`: that a process may take, unless batches are asked for.
    """
    if plan.batch is Batch.NEVER or len(runs) < 2:
        return [(run,) for run in runs]
    share = math.ceil(len(runs) / workers)
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(kind(run), []).append(run)
    found: dict[int, Runs] = {}
    for alike in groups.values():
        most = len(alike)
        if plan.batch is Batch.AUTO and most > 1 and share > 1:
            most = min(share, most_together(alike[0], plan, seconds))
        elif plan.batch is Batch.AUTO:
            most = 1
        pieces = math.ceil(len(alike) / most)
        size = math.ceil(len(alike) / pieces)
        for i in range(0, len(alike), size):
            found[runs.index(alike[i])] = tuple(alike[i : i + size])
    return [found[i] for i in sorted(found)]


def most_together(run: Run, plan: Plan, seconds: float = math.inf) -> int:
    """How many runs like this one a process takes unasked; one where it does not pay.

    Several only where training is all that is done, without a second stage, which
    several do not have; and where memory and time of one run suffice for all.
    """
    needs = plan.resources
    if not needs.gpus and run.budget > SHORT:
        return 1
    problem = loads_problem(run.problem, run.name)
    settings = read_settings(problem.solver, run.name)
    if may_correct(settings) or not only_trains(problem, settings):
        return 1
    bytes_ = ON_A_GPU if needs.gpus else needs.memory
    shared, own = memory_needed(problem, run.target)
    limits = (
        MOST_ON_GPUS if needs.gpus else MOST,
        (bytes_ - shared) // own,
        min(seconds, needs.time or math.inf) // longest_span(run),
    )
    return int(max(1, min(limits)))


def in_words(batches: Sequence[Runs]) -> str:
    """How many runs share a process, for who is told the plan."""
    sizes = [len(b) for b in batches]
    most = max(sizes, default=1)
    if most == 1:
        return "each run in a process of its own"
    return (
        f"{sum(n for n in sizes if n > 1)} of {sum(sizes)} runs share processes, up to "
        f"{most} in one compiled program; {len(sizes)} processes in all"
    )
