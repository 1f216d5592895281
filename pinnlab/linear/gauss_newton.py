"""Nonlinear problems by random features: each Newton step is a linear problem.

    F'(u) w + F(u) - F'(u) u = 0

has the next iterate w for its solution. The search of the linear route finds features
for it; with these the steps go on until they are small (Bellman and Kalaba, 1965, call
it quasilinearization; with random features Dong and Li, 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinnlab.equation.expression import Partial
from pinnlab.linear.basis import Basis
from pinnlab.linear.box import FULL, Box
from pinnlab.linear.features import Features
from pinnlab.linear.search import ROWS_FINAL, Found, Search, Tell
from pinnlab.linear.solver import Sheet, heldout, sheet, solve_features
from pinnlab.linear.space import find_space
from pinnlab.newton import route as separable
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.structure import is_local
from pinnlab.newton.tangent import next_iterate, tangent
from pinnlab.system.forms import LinearForm, linear_form
from pinnlab.system.system import System
from pinnlab.system.terms import Term


MOST_STEPS, TESTED = 12, 800
SMALL_STEP = 0.3
"""Steps go on while each lowers the residual to this part of the one before."""
DAMPED = (1.0, 0.5, 0.25, 0.125)
FIRST_GOAL, FINER = 1e-2, 1e-3
"""Of the first search, which sees a linearization far from the solution; and of each
later one, as a part of the residual reached before."""
FIRST_SHARE = 0.3
PATIENCE = 2
"""Searches in a row that may gain less than a factor of three."""
HOPELESS = 0.3


def suits(system: System) -> bool:
    """Whether it is nonlinear, all terms are local, and the coordinates few."""
    few = len(system.coordinates) <= FULL
    return few and not system.is_linear and is_local(system)


def is_due(system: System) -> bool:
    """Whether it suits, and is tried without being asked for.

    Where products of functions of one coordinate are tried it is not: their solutions
    need fewer numbers.
    """
    return suits(system) and not separable.suits(system)


@dataclass(frozen=True)
class Iterate:
    """Fields as features and coefficients [fields * N]; zero without features."""

    system: System
    features: Features | Basis | None
    coefficients: np.ndarray

    def values(
        self, partials: Sequence[Partial], places: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Derivatives of fields at [n, dim] places of each: [n, partials]."""
        if self.features is None:
            return np.zeros((len(places[0]), len(partials)))
        every = self.coefficients.reshape(len(self.system.fields), -1)
        pairs = list(zip(partials, places, strict=True))
        weights = [every[self.system.fields.index(p.field)] for p in partials]
        if isinstance(self.features, Features):
            columns = _by_waves(self.features, pairs, weights)
        else:
            columns = [
                self.features.columns(place, p.orders) @ mine
                for (p, place), mine in zip(pairs, weights, strict=True)
            ]
        return np.stack(columns, axis=1)

    def between(self, other: "Iterate", part: float) -> "Iterate":
        """On the way to another iterate of the same features."""
        change = part * (other.coefficients - self.coefficients)
        return Iterate(self.system, other.features, self.coefficients + change)


def _by_waves(
    features: Features,
    pairs: list[tuple[Partial, np.ndarray]],
    weights: list[np.ndarray],
) -> list[np.ndarray]:
    """Derivatives [n] each; most partials are taken at the same places."""
    distinct = {id(place): place for _, place in pairs}
    waves = {key: features.waves(place) for key, place in distinct.items()}
    return [
        waves[id(place)][sum(p.orders) % 2] @ (features.factor(p.orders) * mine)
        for (p, place), mine in zip(pairs, weights, strict=True)
    ]


class Linearization:
    """The linear forms whose solution is the next iterate."""

    def __init__(self, at: Iterate, compiled: Compiled):
        self.at, self.compiled = at, compiled

    def form(self, system: System, term: Term, points: np.ndarray) -> LinearForm:
        """A term's linearization at [n, dim] points."""
        if term.is_affine:
            return linear_form(system, term, points)
        pointwise = self.compiled.of((term,))
        places = pointwise.locations(points)
        values = self.at.values(pointwise.partials, places)
        return next_iterate(tangent(pointwise, points, places, values), values)


class GaussNewton:
    """Searches for features and Newton steps, one after another."""

    def __init__(self, system: System, seconds: float, seed: int, tell: Tell):
        self.system, self.seconds, self.seed, self.tell = system, seconds, seed, tell
        self.compiled = Compiled(system)
        self.clock = self.compiled.clock
        self.space = find_space(system)
        self.tried = 0
        self.best: Found | None = None
        self.box: Box | None = None

    def run(self, goal: float) -> Found | None:
        """Until the held-out residual is below the goal, time is up, or it stays.

        **Returns:** None where nothing was resolved.
        """
        at = Iterate(self.system, None, np.zeros(0))
        aim, share = FIRST_GOAL, FIRST_SHARE
        reached, stale = np.inf, 0
        while self.clock.spent < self.seconds and stale < PATIENCE:
            found = self._search(at, max(aim, goal), share)
            self.box = found.box
            at = self._steps(found, goal)
            assert self.best is not None
            before, reached = reached, self.best.solved.worst
            if reached < goal:
                break
            stale = stale + 1 if reached > before / 3 else 0
            aim, share = FINER * min(reached, 1.0), 0.5
        if self.best is None or not self.best.solved.worst < HOPELESS:
            return None
        return self.best

    def _search(self, at: Iterate, goal: float, share: float) -> Found:
        """Features for the linearization at an iterate."""
        tried = self.tried

        def tell(phase: str, count: int, elapsed: float, worst: float) -> bool:
            self.tried = tried + count
            return self.tell(phase, self.tried, self.clock.spent, worst)

        form = Linearization(at, self.compiled).form
        seconds = share * (self.seconds - self.clock.spent)
        clock = self.clock
        search = Search(self.system, seconds, self.seed, tell, form, clock)
        # Features that served one iterate nearly serve the next.
        return search.run(goal, self.box)

    def _steps(self, found: Found, goal: float) -> Iterate:
        """Newton steps with the features that were found, while they help."""
        features = found.solved.features
        rows = ROWS_FINAL * len(found.solved.coefficients)
        at = Iterate(self.system, features, found.solved.coefficients)
        size, test = self._measured(at, found)
        for _ in range(MOST_STEPS):
            if size < goal or self.clock.spent > self.seconds:
                break
            form = Linearization(at, self.compiled).form
            train = sheet(self.space, rows, self.seed, form_of=form)
            solved = solve_features(self.system, features, train, test)
            end = Iterate(self.system, features, solved.coefficients)
            for part in DAMPED:
                trial = at.between(end, part)
                new, test = self._measured(trial, found)
                if new < size:
                    break
            else:
                break
            small = new > SMALL_STEP * size and part == 1
            at, size = trial, new
            if small:
                break
        return at

    def _measured(self, at: Iterate, found: Found) -> tuple[float, Sheet]:
        """The residual of an iterate on fresh points; it is kept if it is the best."""
        assert at.features is not None
        form = Linearization(at, self.compiled).form
        test = sheet(self.space, TESTED, self.seed + 90_001, False, form)
        residuals = heldout(self.system, at.features, at.coefficients, test)
        solved = replace(found.solved, coefficients=at.coefficients, heldout=residuals)
        self.tried += 1
        if self.best is None or solved.worst < self.best.solved.worst:
            self.best = Found(solved, found.box, self.tried)
        self.tell("steps", self.tried, self.clock.spent, self.best.solved.worst)
        return solved.worst, test
