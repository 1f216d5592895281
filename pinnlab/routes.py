"""The ways to solve a problem, tried in order of their cost: what each led to."""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from pinnlab.assembly import network_of
from pinnlab.errors import ProblemError
from pinnlab.fields import Model
from pinnlab.linear import gauss_newton
from pinnlab.linear import route as linear
from pinnlab.newton import route as newton
from pinnlab.newton.mirror import mirrored
from pinnlab.outcome import Job, Outcome, Tried, merged
from pinnlab.problem.problem import Problem
from pinnlab.record import Record, Stop
from pinnlab.room import make_room
from pinnlab.sampling import sample
from pinnlab.scaling import parameters_of
from pinnlab.settings import Settings
from pinnlab.strategy import separable_settings, tries
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import EVERYWHERE
from pinnlab.training import trained
from pinnlab.verify.known import heldout_of


ROUTE_SHARE, FIRST_SHARE = 0.6, 0.4
"""Of the time left, what a route may use before training takes over, and before
another route does."""
FINER = 100.0
"""By this the separable route lowers its target, each time."""
CHEAP = 0.05


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
        return Tried(tried.outcomes, merged(tried.record, record))
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
            return Tried(tried.outcomes, merged(tried.record, found.record))
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
