"""Members that do more than train: solved one after another, each whole at its turn."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from pinnlab.ensemble.member import Member
from pinnlab.ensemble.train import Watch
from pinnlab.keeper import Keeper
from pinnlab.outcome import Job
from pinnlab.record import Observation, Stop
from pinnlab.routes import try_routes
from pinnlab.settings import read_settings
from pinnlab.solution import Solution
from pinnlab.verification import Verifier


def solved_in_turn(
    members: Sequence[Member],
    job: Job,
    verifiers: Mapping[int, Verifier],
    keepers: Sequence[Keeper | None],
    watch: Watch | None = None,
) -> Iterator[Solution | FloatingPointError]:
    """Solve and verify one member after another.

    **Arguments:**

    - `job`: its budget is for all together, of which each has an equal share of what is
        left.
    - `verifiers`: by the `id` of a problem.
    - `keepers`: of each member.
    - `watch`: told about the member whose turn it is.

    **Returns:** each solution, or why there is none, as soon as it is there; after an
    interrupt no more.

    Raises `KeyboardInterrupt` where that came before the first was solved.
    """
    left = job.budget
    for i, m in enumerate(members):
        own = dataclasses.replace(
            job,
            seed=m.seed,
            budget=max(left, 1.0) / (len(members) - i),
            keeper=keepers[i],
            observe=_observed(job, i, watch),
        )
        try:
            settings = read_settings(m.problem.solver, m.problem.file)
            tried = try_routes(m.problem, settings, own)
        except FloatingPointError as error:
            yield error
            continue
        except KeyboardInterrupt:
            if i == 0:
                raise
            return
        left -= tried.record.train_seconds
        solution = verifiers[id(m.problem)].verified(tried, own)
        yield solution
        if solution.result.attributes["stop"] == Stop.INTERRUPTED.value:
            return


def _observed(job: Job, index: int, watch: Watch | None):
    def observe(row: Observation) -> None:
        job.observe(row)
        if watch is not None:
            watch(index, row)

    return observe
