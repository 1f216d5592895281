"""The ways to solve a problem, tried in order of their cost: what each led to."""

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tomli_w
from jax.sharding import Mesh
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.assembly import least_squares, network_of
from pinnlab.checkpoint import Identity
from pinnlab.correction import described, with_correction
from pinnlab.devices import make_mesh, single
from pinnlab.errors import ProblemError
from pinnlab.keeper import Keeper
from pinnlab.linear import gauss_newton
from pinnlab.linear import route as linear
from pinnlab.network import AbstractNetwork
from pinnlab.newton import route as newton
from pinnlab.newton.mirror import mirrored
from pinnlab.problem.problem import Problem
from pinnlab.programs import Inspect
from pinnlab.record import Observation, Record, Stop
from pinnlab.residual import LeastSquares, Model
from pinnlab.room import make_room
from pinnlab.sampling import sample
from pinnlab.scaling import field_scales, parameters_of
from pinnlab.settings import Settings, settings_table
from pinnlab.strategy import Plan, plan, separable_settings, tries
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import EVERYWHERE
from pinnlab.team import ALONE, Team
from pinnlab.train import Hooks, Limits, Trained, train
from pinnlab.verify.known import error_of, heldout_of
from pinnlab.viscosity import viscous


ROUTE_SHARE, FIRST_SHARE = 0.6, 0.4
"""Of the time left, what a route may use before training takes over, and before
another route does."""
FINER = 100.0
"""By this the separable route lowers its target, each time."""
CHEAP = 0.05


@dataclass(frozen=True)
class Job:
    """What is asked for, and the devices and processes that train.

    Raises `ProblemError` unless target and budget are positive numbers.
    """

    target: float
    budget: float
    seed: int
    observe: Callable[[Observation], None]
    inspect: Inspect | None = None
    keeper: Keeper | None = None
    mesh: Mesh = field(default_factory=make_mesh)
    team: Team = ALONE

    def __post_init__(self) -> None:
        for name, unit in (("target", ""), ("budget", " of seconds")):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and value > 0):
                wanted = f"a positive number{unit}"
                raise ProblemError(f"{name} is {value!r}: expected {wanted}")


@dataclass(frozen=True)
class Outcome:
    """What one way of solving led to, before it is verified."""

    system: System
    settings: Settings
    scales: tuple[float, ...]
    model: Model
    points: np.ndarray
    heldout: float
    record: Record
    stop: Stop
    reason: str
    estimate: float | None = None

    @cached_property
    def score(self) -> float:
        """The known error, or else an estimate, or else the held-out residual."""
        error = error_of(self.system)
        if error is not None:
            return error.measured(self.model)
        return self.heldout if self.estimate is None else self.estimate


@dataclass(frozen=True)
class Tried:
    """The outcomes so far, and the history of all that was tried."""

    outcomes: list[Outcome]
    record: Record

    def extended(self, outcome: Outcome) -> "Tried":
        """With one more outcome, whose own record follows."""
        return Tried([*self.outcomes, outcome], _merged(self.record, outcome.record))

    def interrupted(self) -> "Tried":
        """The same, and nothing else is tried. Raises where there is no outcome."""
        if not self.outcomes:
            raise KeyboardInterrupt
        *others, last = self.outcomes
        stopped = dataclasses.replace(last, stop=Stop.INTERRUPTED)
        return Tried([*others, stopped], self.record)


def try_routes(problem: Problem, settings: Settings, job: Job) -> Tried:
    """The routes that suit the problem, then training where they do not suffice.

    Raises `ProblemError` where a route was asked for that does not suit, and
    `FloatingPointError` where no finite loss could be found.
    """
    make_room()
    tried = Tried([], Record())
    system = build_system(problem, "rows")
    for route in _ROUTES:
        asked = settings.strategy == route.name
        if asked and not route.suits(system):
            message = f"the problem is not {route.needs} coordinates"
            key = "solver.strategy"
            raise ProblemError(message, file=problem.file, key=key)
        if not asked and not (tries(settings, route.name) and route.is_due(system)):
            continue
        # A march needs no search, so a search before it must not take long.
        first = route.name == "linear" and "t" in system.coordinates
        more = first and newton.suits(system)
        share = FIRST_SHARE if more else ROUTE_SHARE
        share = 1.0 if asked else share
        tried = route.solve(system, settings, job, share * _left(job, tried), tried)
        if asked or _suffices(tried, job):
            break
    else:
        seconds = max(_left(job, tried), 1.0)
        job.team.tell({"train": seconds})
        try:
            tried = tried.extended(trained(problem, settings, job, seconds))
        except KeyboardInterrupt:
            tried = tried.interrupted()
    if not tried.outcomes:
        raise FloatingPointError(f"the {settings.strategy} route found no solution")
    return tried


def only_trains(problem: Problem, settings: Settings) -> bool:
    """Whether training is all that `try_routes` would try."""
    system = build_system(problem, "rows")
    return not any(
        settings.strategy == route.name
        or (tries(settings, route.name) and route.is_due(system))
        for route in _ROUTES
    )


def _left(job: Job, tried: Tried) -> float:
    return job.budget - tried.record.train_seconds


def _suffices(tried: Tried, job: Job) -> bool:
    if not tried.outcomes:
        return False
    last = tried.outcomes[-1]
    if last.stop in (Stop.TARGET, Stop.INTERRUPTED):
        return True
    return _left(job, tried) < 0.05 * job.budget or last.score < job.target


def chosen(
    tried: Tried, measure: Callable[[Outcome], tuple[float, ...]] | None = None
) -> Outcome:
    """The best outcome by its score or other measures, with the history of all."""
    few = len(tried.outcomes) == 1
    best = (
        tried.outcomes[0]
        if few
        else min(tried.outcomes, key=measure or (lambda o: (o.score,)))
    )
    stop = tried.outcomes[-1].stop
    return dataclasses.replace(best, record=tried.record, stop=stop)


def _merged(a: Record, b: Record) -> Record:
    rows = [
        *a.rows,
        *(dataclasses.replace(r, elapsed=r.elapsed + a.train_seconds) for r in b.rows),
    ]
    return Record(
        rows,
        [*a.events, *b.events],
        a.compile_seconds + b.compile_seconds,
        a.train_seconds + b.train_seconds,
        a.iterations + b.iterations,
    )


def _linear(
    system: System, settings: Settings, job: Job, seconds: float, tried: Tried
) -> Tried:
    found, record, stop = linear.search(
        system, job.target, seconds, job.seed, job.observe
    )
    described = linear.described(settings, found)
    return tried.extended(_by_features(system, job, found, described, record, stop))


def _newton(
    system: System, settings: Settings, job: Job, seconds: float, tried: Tried
) -> Tried:
    found, record, stop = linear.search_nonlinear(
        system, job.target, seconds, job.seed, job.observe
    )
    if found is None:
        return Tried(tried.outcomes, _merged(tried.record, record))
    described = linear.described(settings, found, linear=False)
    return tried.extended(_by_features(system, job, found, described, record, stop))


def _by_features(
    system: System,
    job: Job,
    found: linear.Found,
    described: tuple[Settings, str],
    record: Record,
    stop: Stop,
) -> Outcome:
    """Features that were found as an outcome."""
    full, reason = described
    scales = (1.0,) * len(system.fields)
    _, key, _ = jax.random.split(jax.random.key(job.seed), 3)
    blank = network_of(system, full, scales, key)
    model = Model(linear.as_network(found, blank), parameters_of(system))
    points = sample(system.problem, EVERYWHERE, 2048, job.seed)
    worst = found.solved.worst
    return Outcome(system, full, scales, model, points, worst, record, stop, reason)


def _separable(
    system: System, settings: Settings, job: Job, seconds: float, tried: Tried
) -> Tried:
    """Finer and finer while the target is missed and there is time.

    A first solution that was cheap is confirmed, and improved, by a finer one.
    """
    target, confirmed = job.target, False
    longer = mirrored(system)
    points = sample(system.problem, EVERYWHERE, 2048, job.seed)
    scales = (1.0,) * len(system.fields)
    while True:
        try:
            found = newton.solve_separable(system, target, seconds, job.observe, longer)
        except KeyboardInterrupt:
            return tried.interrupted()
        spent = found.record.train_seconds
        if found.network is None:
            return Tried(tried.outcomes, _merged(tried.record, found.record))
        model = Model(found.network, parameters_of(system))
        full = separable_settings(settings, longer is not None, found.singular)
        heldout = heldout_of(system, model, job.seed)
        outcome = Outcome(
            system, full, scales, model, points, heldout, found.record,
            Stop.CONVERGED, found.words, found.estimate,
        )  # fmt: skip
        tried = tried.extended(outcome)
        seconds -= spent
        enough = outcome.score < job.target
        if (enough and (confirmed or spent > CHEAP * seconds)) or 3 * spent > seconds:
            return tried
        confirmed = enough
        target /= FINER


@dataclass(frozen=True)
class Prepared:
    """A problem made ready for training with one seed.

    - `key`: of the points that training draws.
    """

    system: System
    plan: Plan
    scales: tuple[float, ...]
    objective: LeastSquares
    theta: Float[Array, " P"]
    key: PRNGKeyArray


MakeNetwork = Callable[
    [System, Settings, tuple[float, ...], PRNGKeyArray], AbstractNetwork
]


def prepare(
    system: System, plan: Plan, seed: int, make: MakeNetwork = network_of
) -> Prepared:
    """The network, the objective and the first parameters of a seed."""
    full = plan.settings
    _, net_key, train_key = jax.random.split(jax.random.key(seed), 3)
    scales = field_scales(system, lambda s, k: make(system, full, s, k), net_key)
    network = make(system, full, scales, net_key)
    smooth = viscous(system, plan.viscosity)
    objective, theta = least_squares(smooth, full, network, seed)
    return Prepared(system, plan, scales, objective, theta, train_key)


def trained_outcome(prepared: Prepared, trained: Trained) -> Outcome:
    """What training led to, in 64 bits.

    Raises `FloatingPointError` where no finite loss could be found.
    """
    lost = not np.isfinite(trained.heldout).all()
    if lost and trained.stop is not Stop.INTERRUPTED:
        raise FloatingPointError(next(iter(trained.record.events), "no finite loss"))
    alone = trained.objective.on(single())
    wide = jax.tree.map(
        lambda a: jnp.asarray(np.asarray(a), float) if eqx.is_inexact_array(a) else a,
        alone.model(jnp.asarray(trained.theta)).network,
    )
    settings, reason = described(prepared.plan, wide)
    return Outcome(
        prepared.system,
        settings,
        prepared.scales,
        Model(wide, parameters_of(prepared.system)),
        np.asarray(alone.blocks[0].points, float),
        float(np.max(trained.heldout)),
        trained.record,
        trained.stop,
        reason,
    )


def limits_of(job: Job, seconds: float) -> Limits:
    """When training has done enough, or used its time."""
    return Limits(seconds, job.target / 100, job.target / 2)


def trained(problem: Problem, settings: Settings, job: Job, seconds: float) -> Outcome:
    """What training leads to; every process of the team must do it.

    Raises `FloatingPointError` where no finite loss could be found.
    """
    system = build_system(problem, settings.enforce)
    prepared = prepare(system, plan(system, settings, job.target), job.seed)
    text = tomli_w.dumps(settings_table(prepared.plan.settings))
    identity = Identity(problem.source, text, job.seed, job.target)
    keeper = job.keeper
    with keeper.deferring() if keeper else nullcontext():
        done = train(
            prepared.objective.on(job.mesh),
            prepared.theta,
            with_correction(system, prepared.plan, prepared.scales, job.seed),
            limits_of(job, seconds),
            key=prepared.key,
            hooks=Hooks(
                job.observe,
                error_of(system),
                job.inspect,
                keeper.pause if keeper else None,
                job.team.decided,
            ),
            start=keeper.start(identity) if keeper else None,
        )
    return trained_outcome(prepared, done)


@dataclass(frozen=True)
class _Route:
    """A way to solve other than training.

    - `suits`: whether it may be asked for; `is_due`: whether it is tried unasked.
    - `needs`: what the problem must be, in words.
    """

    name: str
    suits: Callable[[System], bool]
    is_due: Callable[[System], bool]
    solve: Callable[[System, Settings, Job, float, Tried], Tried]
    needs: str


_ROUTES = (
    _Route(
        "linear",
        linear.suits,
        linear.suits,
        _linear,
        f"linear in its fields with at most {linear.MOST_COORDINATES}",
    ),
    _Route(
        "separable",
        newton.suits,
        newton.is_due,
        _separable,
        "free of integrals other than those from the start to now, with at most "
        f"{newton.MOST_COORDINATES}",
    ),
    _Route(
        "newton",
        gauss_newton.suits,
        gauss_newton.is_due,
        _newton,
        f"nonlinear, free of integrals, and with at most {gauss_newton.FULL}",
    ),
)
