"""Solving a problem from many seeds, and for many values of its parameters, at once."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax

from pinnlab.assembly import scaled_network_of
from pinnlab.ensemble.ensemble import Ensemble
from pinnlab.ensemble.groups import Found, keeper_of, trained_in_groups
from pinnlab.ensemble.in_turn import solved_in_turn
from pinnlab.ensemble.member import Member
from pinnlab.ensemble.programs import Layout
from pinnlab.ensemble.train import Watch
from pinnlab.errors import ProblemError, nearest
from pinnlab.keeper import Keeper
from pinnlab.outcome import Job, Outcome, Tried
from pinnlab.problem.file import loads_problem
from pinnlab.problem.problem import Problem
from pinnlab.room import make_room
from pinnlab.routes import only_trains
from pinnlab.settings import Settings, read_settings
from pinnlab.solution import Solution
from pinnlab.solver import (
    DEFAULT_BUDGET,
    DEFAULT_TARGET,
    Progress,
    observer,
)
from pinnlab.strategy import plan
from pinnlab.system.system import System, build_system
from pinnlab.training import Prepared, prepare
from pinnlab.verification import Verifier, seconds_of
from pinnlab.verify.preflight import Preflight, check


def solve_ensemble(
    problem: Problem,
    *,
    seeds: Sequence[int],
    parameters: Sequence[Mapping[str, float]] = ({},),
    target: float = DEFAULT_TARGET,
    budget: float = DEFAULT_BUDGET,
    progress: Progress | None = None,
    reference: bool = True,
    checked: Preflight | None = None,
    layout: Layout | None = None,
    keeper: Keeper | None = None,
) -> Ensemble:
    """Solve a problem from several seeds, for several values of its parameters.

    Where training is the way to solve it, all members train in one compiled program;
    each stops, and goes back after a loss that is not finite, on its own. Members of
    other routes are solved one after another.

    **Arguments:**

    - `seeds`: of the members.
    - `parameters`: values by name; each set is solved from each seed.
    - `budget`: seconds of training of all members together.
    - `reference`, `checked`, `progress`: as in `solve`; verification of all members
        together takes as long as that of two.
    - `layout`: how members are spread over devices; None: `default_layout`.
    - `keeper`: keeps checkpoints of training, and may go on from one.

    **Returns:** an `Ensemble`: a list of solutions, parameters before seeds.

    Raises `ProblemError` for an unknown parameter, no seed, or a problem that makes no
    sense, and `FloatingPointError` where no member found a finite loss.

    !!! example
        ```python
        ensemble = solve_ensemble(load_problem("burgers.toml"), seeds=range(16))
        print([s.report.rel_l2 for s in ensemble], ensemble.spread["u"].max())
        ensemble.save("burgers.h5")
        ```
    """
    if not seeds or len(set(seeds)) < len(seeds):
        message = f"expected one seed or more, no two alike; found {list(seeds)}"
        raise ProblemError(message, file=problem.file)
    problems = [with_parameters(problem, values) for values in parameters]
    members = [Member(p, seed) for p in problems for seed in seeds]
    found = solve_members(
        members,
        target=target,
        budget=budget,
        progress=progress,
        reference=reference,
        checked=checked if not any(parameters) else None,
        layout=layout,
        keeper=keeper,
    )
    solutions = tuple(s for s in found if isinstance(s, Solution))
    if not solutions:
        raise FloatingPointError(str(found[0]))
    warnings = tuple(
        f"seed {m.seed} has no solution: {f}"
        for m, f in zip(members, found, strict=True)
        if not isinstance(f, Solution)
    )
    return Ensemble(solutions, warnings)


def with_parameters(problem: Problem, values: Mapping[str, float]) -> Problem:
    """The problem with other values of some parameters.

    Raises `ProblemError` for one that it does not have, and for a problem that was
    built from Python functions.
    """
    if not values:
        return problem
    for name in values:
        if name not in problem.parameters:
            names = ", ".join(problem.parameters) or "none"
            message = f"there is no parameter '{name}' (parameters: {names})"
            hint = nearest(name, problem.parameters)
            raise ProblemError(message, file=problem.file, hint=hint)
    if not problem.source:
        message = "parameters of a problem with Python functions cannot be replaced"
        hint = "build a problem for each value"
        raise ProblemError(message, file=problem.file, hint=hint)
    changes = {f"parameters.{name}": value for name, value in values.items()}
    return loads_problem(problem.source, problem.file or problem.name, changes)


def solve_members(
    members: Sequence[Member],
    *,
    target: float,
    budget: float,
    progress: Progress | None = None,
    reference: bool = True,
    checked: Preflight | None = None,
    layout: Layout | None = None,
    keeper: Keeper | None = None,
    watch: Watch | None = None,
    done: Callable[[int, Solution | FloatingPointError], None] = lambda i, s: None,
    keepers: Sequence[Keeper] | None = None,
) -> list[Solution | FloatingPointError]:
    """Solve and verify members that may have different problems.

    **Arguments:**

    - `watch`: told about every member that trains.
    - `done`: called with the number of a member and its solution, or why there is none.
        Where members are solved one after another that is as soon as each is there.
    - `keepers`: of each of these; None: parts of `keeper`.

    **Returns:** for each member its solution, or why it has none; a member that an
    interrupt did not let begin is left out at the end.

    Raises `ProblemError` for a problem or settings that make no sense.
    """
    observe = observer(progress, budget)
    job = Job(target, budget, members[0].seed, observe, keeper=keeper)
    problems = list({id(m.problem): m.problem for m in members}.values())
    examined = {id(p): checked or check(p, target) for p in problems}
    for p in problems:
        if examined[id(p)].errors:
            raise ProblemError("\n".join(examined[id(p)].errors), file=p.file)
        _check_stages(p)
    seconds = seconds_of(budget) / len(problems) if reference else 0.0
    solutions: list[Solution | FloatingPointError] = []
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        verifiers = {
            id(p): Verifier(p, examined[id(p)].warnings, seconds, _count(members, p))
            for p in problems
        }
        if all_train([m.problem for m in members]):
            make_room()
            found = trained_in_groups(_prepared(members, job), job, layout, watch)
            solutions += _verified(members, found, job, verifiers)
            for i, solution in enumerate(solutions):
                done(i, solution)
            return solutions
        own = keepers or [keeper_of(job, i) for i in range(len(members))]
        for i, solution in enumerate(
            solved_in_turn(members, job, verifiers, own, watch)
        ):
            done(i, solution)
            solutions.append(solution)
    return solutions


def all_train(problems: Sequence[Problem]) -> bool:
    """Whether members with these problems train together, and do nothing else."""
    distinct = {id(p): p for p in problems}.values()
    return all(only_trains(p, read_settings(p.solver, p.file)) for p in distinct)


def _check_stages(problem: Problem) -> None:
    """Raise `ProblemError` where a second stage is asked for."""
    if read_settings(problem.solver, problem.file).second_stage == "on":
        message = "seeds that train together have no second stage"
        key, hint = "solver.second_stage", "remove it, or solve one seed at a time"
        raise ProblemError(message, file=problem.file, key=key, hint=hint)


def _count(members: Sequence[Member], problem: Problem) -> int:
    return sum(m.problem is problem for m in members)


def _prepared(members: Sequence[Member], job: Job) -> list[Prepared]:
    systems: dict[int, tuple[System, Settings]] = {}
    found = []
    for m in members:
        if id(m.problem) not in systems:
            settings = read_settings(m.problem.solver, m.problem.file)
            systems[id(m.problem)] = (
                build_system(m.problem, settings.enforce),
                settings,
            )
        system, settings = systems[id(m.problem)]
        planned = plan(system, settings, job.target)
        found.append(prepare(system, planned, m.seed, scaled_network_of))
    return found


def _verified(
    members: Sequence[Member],
    found: Sequence[Found],
    job: Job,
    verifiers: Mapping[int, Verifier],
) -> list[Solution | FloatingPointError]:
    """The solutions of all members, of each problem the best verified first."""
    solved: dict[int, Solution | FloatingPointError] = {}
    good = {i: f for i, f in enumerate(found) if isinstance(f, Outcome)}
    for i in sorted(good, key=lambda i: good[i].heldout):
        own = dataclasses.replace(job, seed=members[i].seed)
        tried = Tried([good[i]], good[i].record)
        solved[i] = verifiers[id(members[i].problem)].verified(tried, own)
    return [solved.get(i, f) for i, f in enumerate(found)]  # pyright: ignore[reportReturnType]
