"""Runs that differ only in seeds and values of parameters, solved as one ensemble.

The process of one run takes along those that a driver says, as far as nobody works on
them: it holds their leases, and leaves a result of its own for each.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from pinnlab.checkpoint import kept
from pinnlab.ensemble.member import Member
from pinnlab.ensemble.solve import all_train, solve_members
from pinnlab.keeper import Keeper
from pinnlab.problem.file import loads_problem
from pinnlab.signals import Listener
from pinnlab.solution import Solution
from pinnlab.sweep.batches import members, waits
from pinnlab.sweep.beacon import BEAT, claimed
from pinnlab.sweep.folder import (
    State,
    files,
    forget_checkpoints,
    load_plan,
    record_error,
    state,
    write_json,
)
from pinnlab.sweep.going import Reporter
from pinnlab.sweep.plan import Plan, Run


Solved = Solution | FloatingPointError
PATIENCE = 3 * BEAT
"""Seconds in which the runs of a batch that was cut off must become free."""


def solve_batch(
    folder: Path, run: str, along: tuple[str, ...], signals: Listener
) -> None:
    """Solve a run, and with it others that can share its compiled programs.

    A run without a result has its reason recorded. The first run's lease is the
    caller's. Runs that only train do so together; others are solved one after another.
    """
    plan = load_plan(folder)
    wanted = [plan.run(name) for name in (run, *along)]
    if all_train([m.problem for m in _members(wanted)]):
        _together(folder, plan, wanted, signals)
    else:
        _in_turn(folder, wanted, signals)


def _together(folder: Path, plan: Plan, wanted: list[Run], signals: Listener) -> None:
    """Train the runs in one program.

    Goes on from the checkpoint of an attempt that was cut off, with the same runs;
    where one of them is in other hands, it starts anew with those that are free.
    """
    run = wanted[0].id
    own = files(folder, run)
    with ExitStack() as leases:
        runs = _taken_again(folder, plan, run, leases)
        resume = bool(runs)
        if not resume:
            forget_checkpoints(folder, run)
            runs = _taken(folder, wanted, leases)
        own.batch.parent.mkdir(exist_ok=True)
        write_json(own.batch, {"runs": [r.id for r in runs]})
        keeper = Keeper(own.checkpoint, resume=resume, say=_say, signals=signals)
        found = _solved(folder, runs, keeper=keeper)
        with signals.deferred():
            # The one whose checkpoint it is comes last: until then all can be repeated.
            for one, solved in reversed(list(zip(runs, found, strict=False))):
                _save(folder, one, solved)
            keeper.finish()
            own.batch.unlink(missing_ok=True)


def _in_turn(folder: Path, wanted: list[Run], signals: Listener) -> None:
    """Solve one run after another; each has its result as soon as it is there.

    So what was stopped goes on where it was: those that are done are not among the runs
    of the next attempt, and the one that was at work has a checkpoint of its own.
    """
    with ExitStack() as leases:
        runs = _taken(folder, wanted, leases)
        keepers = [_keeper(folder, run, signals) for run in runs]

        def done(index: int, solved: Solved) -> None:
            with signals.deferred():
                _save(folder, runs[index], solved)
                keepers[index].finish()

        _solved(folder, runs, keepers=keepers, done=done)


def _keeper(folder: Path, run: Run, signals: Listener) -> Keeper:
    path = files(folder, run.id).checkpoint
    return Keeper(path, resume=kept(path), say=_say, signals=signals)


def _solved(
    folder: Path,
    runs: list[Run],
    *,
    keeper: Keeper | None = None,
    keepers: Sequence[Keeper] | None = None,
    done: Callable[[int, Solved], None] = lambda index, solved: None,
) -> list[Solved]:
    """Solve runs that are alike; each reports by itself how it goes on."""
    first = runs[0]
    reporters = [Reporter(files(folder, run.id).going) for run in runs]
    return solve_members(
        _members(runs),
        target=first.target,
        budget=first.budget * len(runs),
        reference=first.reference,
        watch=lambda index, row: reporters[index].update(row, runs[index].budget),
        keeper=keeper,
        keepers=keepers,
        done=done,
    )


def _members(runs: list[Run]) -> list[Member]:
    problems = {r.problem: loads_problem(r.problem, r.name) for r in runs}
    return [Member(problems[r.problem], r.seed) for r in runs]


def _save(folder: Path, run: Run, solved: Solved) -> None:
    own = files(folder, run.id)
    if own.pruned.exists():
        return
    if isinstance(solved, FloatingPointError):
        record_error(folder, run.id, type(solved).__name__, str(solved))
    elif not own.result.exists():
        solved.save(own.result, force=True)
        own.error.unlink(missing_ok=True)


def _taken(folder: Path, runs: list[Run], leases: ExitStack) -> list[Run]:
    """The first run, and those others that are missing and not leased, leased now."""
    found = runs[:1]
    for other in runs[1:]:
        if waits(folder, other.id) or state(folder, other.id) is not State.MISSING:
            continue
        lease = leases.enter_context(claimed(files(folder, other.id).lease))
        if lease is not None and state(folder, other.id) is not State.DONE:
            found.append(other)
    return found


def _taken_again(folder: Path, plan: Plan, run: str, leases: ExitStack) -> list[Run]:
    """The runs of the attempt that left a checkpoint, leased where they are not done.

    **Returns:** none where there is no checkpoint, or others work on one of them.
    """
    names = members(folder, run)
    there = {r.id: r for r in plan.runs}
    if not names or not all(n in there for n in names):
        return []
    with ExitStack() as again:
        for name in names[1:]:
            if state(folder, name) is not State.DONE and not _waited(
                files(folder, name).lease, again
            ):
                return []
        leases.enter_context(again.pop_all())
    return [there[n] for n in names]


def _waited(name: Path, leases: ExitStack) -> bool:
    """Take a lease, for which whoever had it before may have to be found dead."""
    end = time.monotonic() + PATIENCE
    while leases.enter_context(claimed(name)) is None:
        if time.monotonic() > end:
            return False
        time.sleep(BEAT / 5)
    return True


def _say(message: str) -> None:
    print(message, flush=True)
