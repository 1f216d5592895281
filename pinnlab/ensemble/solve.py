"""Solving a problem from many seeds, and for many values of its parameters, at once."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax

from pinnlab.assembly import network_of, scaled_network_of
from pinnlab.ensemble.ensemble import Ensemble
from pinnlab.ensemble.groups import Found, keeper_of, trained_in_groups
from pinnlab.ensemble.programs import Layout
from pinnlab.ensemble.train import Watch
from pinnlab.errors import ProblemError, nearest
from pinnlab.grids import grid_axes, grid_points
from pinnlab.keeper import Keeper
from pinnlab.network import AbstractNetwork, Scaled
from pinnlab.problem.file import loads_problem
from pinnlab.problem.problem import Problem
from pinnlab.record import Stop
from pinnlab.residual import Model
from pinnlab.room import make_room
from pinnlab.routes import (
    Job,
    Outcome,
    Prepared,
    chosen,
    only_trains,
    prepare,
    try_routes,
)
from pinnlab.settings import Settings, read_settings
from pinnlab.solution import Solution
from pinnlab.solver import (
    DEFAULT_BUDGET,
    DEFAULT_TARGET,
    LEAST_VERIFICATION,
    Progress,
    observer,
    solution_of,
)
from pinnlab.strategy import plan
from pinnlab.system.system import System, build_system
from pinnlab.verify.preflight import Preflight, check
from pinnlab.verify.truth import Evidence
from pinnlab.verify.verified import Known, Verified, known, verify


@dataclass(frozen=True)
class Member:
    """What one member solves. Equal problems are the same object."""

    problem: Problem
    seed: int


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
) -> list[Solution | FloatingPointError]:
    """Solve and verify members that may have different problems.

    **Arguments:**

    - `watch`: told about every member that trains with others.

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
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        found = _outcomes(members, job, layout, watch)
        solutions: dict[int, Solution | FloatingPointError] = {}
        for p in problems:
            alike = [i for i in range(len(found)) if members[i].problem is p]
            here = [(members[i].seed, found[i]) for i in alike]
            warnings = examined[id(p)].warnings
            solved = _verified(here, job, reference, warnings, len(problems))
            solutions |= dict(zip(alike, solved, strict=True))
    return [solutions[i] for i in range(len(found))]


def _outcomes(
    members: Sequence[Member],
    job: Job,
    layout: Layout | None,
    watch: Watch | None,
) -> list[Found]:
    """Members that only train together, the others one after another."""
    settings = {
        id(m.problem): read_settings(m.problem.solver, m.problem.file) for m in members
    }
    for m in members:
        if settings[id(m.problem)].second_stage == "on":
            message = "seeds that train together have no second stage"
            key, hint = "solver.second_stage", "remove it, or solve one seed at a time"
            raise ProblemError(message, file=m.problem.file, key=key, hint=hint)
    if all(only_trains(m.problem, settings[id(m.problem)]) for m in members):
        make_room()
        prepared = _prepared(members, settings, job)
        return trained_in_groups(prepared, job, layout, watch)
    found: list[Found] = []
    left = job.budget
    for i, m in enumerate(members):
        share, keeper = left / (len(members) - i), keeper_of(job, i)
        own = dataclasses.replace(job, seed=m.seed, budget=share, keeper=keeper)
        try:
            tried = try_routes(m.problem, settings[id(m.problem)], own)
        except FloatingPointError as error:
            found.append(error)
            continue
        except KeyboardInterrupt:
            if not found:
                raise
            break
        found.append(chosen(tried))
        left -= tried.record.train_seconds
        if tried.outcomes[-1].stop is Stop.INTERRUPTED:
            break
    return found


def _prepared(
    members: Sequence[Member], settings: dict[int, Settings], job: Job
) -> list[Prepared]:
    systems: dict[int, System] = {}
    found = []
    for m in members:
        key = id(m.problem)
        if key not in systems:
            systems[key] = build_system(m.problem, settings[key].enforce)
        planned = plan(systems[key], settings[key], job.target)
        found.append(prepare(systems[key], planned, m.seed, scaled_network_of))
    return found


def _verified(
    found: list[tuple[int, Found]],
    job: Job,
    reference: bool,
    warnings: tuple[str, ...],
    problems: int,
) -> list[Solution | FloatingPointError]:
    """Solutions of one problem, the best verified first: its truth serves all."""
    solutions: list[Solution | FloatingPointError] = [
        o if isinstance(o, FloatingPointError) else FloatingPointError("not verified")
        for _, o in found
    ]
    good = {i: o for i, (_, o) in enumerate(found) if isinstance(o, Outcome)}
    if not good:
        return solutions
    system = next(iter(good.values())).system
    axes = grid_axes(system.problem)
    grid = grid_points(system.problem, axes)
    seconds = max(LEAST_VERIFICATION, job.budget / 2) / problems if reference else 0.0
    facts: Known | None = None
    for i in sorted(good, key=lambda i: good[i].heldout):
        outcome, began = good[i], time.perf_counter()
        try:
            facts = facts or known(system, grid, job.target, seconds)
            verified = verify(
                outcome.system, outcome.model, outcome.points, grid, job.target,
                seconds, facts,
            )  # fmt: skip
        except KeyboardInterrupt:
            outcome = dataclasses.replace(outcome, stop=Stop.INTERRUPTED)
            verified = Verified(Evidence((), (), ()), None, None)
        facts = verified.known or facts
        own = dataclasses.replace(job, seed=found[i][0])
        made = solution_of(outcome, own, warnings, verified, axes, grid, began)
        solutions[i] = dataclasses.replace(made, model=_plain(outcome, own.seed))
        if i == min(good, key=lambda i: good[i].heldout):
            seconds /= len(good)
    return solutions


def _plain(outcome: Outcome, seed: int) -> Model:
    """The model with its sizes in the network again, as a file holds it."""
    network: AbstractNetwork = outcome.model.network
    if not isinstance(network, Scaled):
        return outcome.model
    _, key, _ = jax.random.split(jax.random.key(seed), 3)
    blank = network_of(outcome.system, outcome.settings, outcome.scales, key)
    leaves = jax.tree.leaves(network.inner)
    plain = jax.tree.unflatten(jax.tree.structure(blank), leaves)
    return Model(plain, outcome.model.parameters)
