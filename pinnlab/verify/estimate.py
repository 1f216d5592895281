"""An error estimate without a truth: the linearized error equation.

For F(u) = 0 and a computed u the error e solves F'(u) e = -F(u) up to terms of second
order in e, with the conditions' linearizations driven by their violations. That is a
linear problem, so random features and least squares solve it (`pinnlab.linear`).

What is left of a very good solution is rounding, which no smooth error causes. Then
the problem is solved once more, by other features: one Newton step from u to a solution
that has nothing of it. Their difference is the estimate. A steady separable solution
is solved once more with more modes, and with its singular functions if it has any.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pinnlab.fields import Model
from pinnlab.linear.box import FULL
from pinnlab.linear.search import Search
from pinnlab.linear.solver import Solved, sheet, sizes_of_data, unexplained
from pinnlab.newton.pointwise import Pointwise
from pinnlab.newton.refined import Parts, parts_of, refined
from pinnlab.newton.structure import is_local
from pinnlab.newton.tangent import next_iterate, tangent
from pinnlab.probe import Probe
from pinnlab.result import FieldEstimate
from pinnlab.system.forms import LinearForm, linear_form
from pinnlab.system.system import System
from pinnlab.system.terms import Term


GOOD = 0.01
"""Held-out residual of the error equation, relative to its terms, that suffices."""
USABLE = 0.5
"""What may be left of the residual: an error that explains less is none. Relative to
the equation's terms it would mean little, since large terms may cancel."""
SEARCHED = 15.0
"""The most seconds that searches for features take."""
FIRST = 0.7
"""The share of the time for the error equation, if a second solution may follow."""
ROUNDING = 1e-11
"""A residual, relative to its terms, in which there is not much but rounding."""
FINEST, ALIKE = 1e-14, 3.0
"""Residual that no second solution need go below, and how many times that of the first
it may have."""
SEED = 11


@dataclass(frozen=True)
class Estimate:
    """Estimated errors.

    - `values`: u - truth by field at the grid's points, [m] each.
    - `how`: it was found, in words.
    """

    fields: tuple[FieldEstimate, ...]
    values: dict[str, np.ndarray]
    how: str

    @property
    def worst(self) -> float:
        """The largest of any field."""
        return max(f.rel_l2 for f in self.fields)


Rival = tuple[Probe, Model]
"""Another solution of the same problem."""


class Tangent:
    """The linear forms of a system around a model u."""

    def __init__(self, probe: Probe, model: Model):
        self.probe, self.model = probe, model
        self.compiled: dict[Term, Pointwise] = {}

    def error(self, system: System, term: Term, points: np.ndarray) -> LinearForm:
        """F'(u) e + F(u) at [n, dim] points, a form in the error e."""
        if term.is_affine:
            pieces = linear_form(system, term, points).pieces
            return LinearForm(pieces, self.probe.term(self.model, term, points)[0])
        return self._around(term, points)[0]

    def solution(self, system: System, term: Term, points: np.ndarray) -> LinearForm:
        """F'(u) w + F(u) - F'(u) u, a form in Newton's next iterate w."""
        if term.is_affine:
            return linear_form(system, term, points)
        return next_iterate(*self._around(term, points))

    def _around(self, term: Term, points: np.ndarray) -> tuple[LinearForm, np.ndarray]:
        """The derivative with the residual, and the partials [n, partials] of u."""
        if term not in self.compiled:
            self.compiled[term] = Pointwise(self.probe.system, (term,))
        pointwise = self.compiled[term]
        values = self.probe.values(self.model, pointwise.partials, points)
        places = pointwise.locations(points)
        return tangent(pointwise, points, places, values), values


def estimated(
    probe: Probe, model: Model, grid: np.ndarray, seconds: float, residual: float
) -> Estimate | str:
    """Estimate the errors of a model, in the way that suits it.

    **Arguments:**

    - `grid`: where the norms are taken, [m, dim].
    - `seconds`: for everything.
    - `residual`: of the worst equation, relative to its terms.

    **Returns:** the estimate, or why there is none.
    """
    system = probe.system
    if len(system.coordinates) > FULL:
        return f"the error equation is solved in at most {FULL} coordinates"
    if not (system.is_linear or is_local(system)):
        return "the equations have nonlinear integrals or are Python functions"
    steady = parts_of(system, model.network)
    # The features of the error equation have no singular functions.
    if steady is not None and steady.corners is not None:
        return finer_solution(probe, model, steady, grid, seconds)
    searching = min(seconds, SEARCHED)
    found, share = "", 0.0
    if residual > ROUNDING:
        found, share = error_estimate(probe, model, grid, FIRST * searching), FIRST
        if isinstance(found, Estimate):
            return found
    if steady is None:
        rest, goal = (1 - share) * searching, max(residual, FINEST)
        second = second_solution(probe, model, grid, rest, goal)
    else:
        rest = seconds - share * searching
        second = finer_solution(probe, model, steady, grid, rest)
    return found if found and isinstance(second, str) else second


def finer_solution(
    probe: Probe, model: Model, parts: Parts, grid: np.ndarray, seconds: float
) -> Estimate | str:
    """Estimate the errors of a steady separable solution by one with more modes.

    `parts`: those of the model's network; the other arguments are those of `estimated`.
    """
    better = refined(probe.system, parts, grid, seconds)
    if isinstance(better, str):
        return better
    ours = probe.fields(model, grid)
    return _compared(probe.system, ours, better, "a finer solution")


def nearest(
    probe: Probe, model: Model, rivals: Sequence[Rival], grid: np.ndarray
) -> Estimate | None:
    """The distance from the nearest of other solutions; None where there is none.

    The error is no larger where the others are coarser, as they mostly are.
    """
    ours = probe.fields(model, grid)
    found = [
        _compared(probe.system, ours, other.fields(its, grid), "another solution")
        for other, its in rivals
    ]
    return min(found, key=lambda e: e.worst, default=None)


def error_estimate(
    probe: Probe, model: Model, grid: np.ndarray, seconds: float, seed: int = 0
) -> Estimate | str:
    """Estimate errors by the error equation alone, as `estimated` does."""
    system, tangent = probe.system, Tangent(probe, model)
    try:
        search = Search(system, seconds, seed + 7, _quiet, tangent.error)
        found = search.run(GOOD)
    except (ValueError, np.linalg.LinAlgError) as failure:
        return f"the error equation could not be solved: {failure}"
    solved = found.solved
    quality = unexplained(system, solved.features, solved.coefficients, search.test)
    if not quality < USABLE:
        return too_rough(quality)
    ours = probe.fields(model, grid)
    correction = _values(system, solved, grid)
    return _compared(system, ours, ours + correction, "the error equation")


def second_solution(
    probe: Probe, model: Model, grid: np.ndarray, seconds: float, goal: float
) -> Estimate | str:
    """Estimate errors by a second solution that is at least as good.

    Arguments and result are those of `estimated`; `goal` is the residual at which the
    second solution is good enough. Where both are equally good the difference is the
    error of both together.
    """
    system, tangent = probe.system, Tangent(probe, model)
    form = linear_form if system.is_linear else tangent.solution
    try:
        search = Search(system, seconds, SEED, _quiet, form)
        solved = search.run(goal).solved
        test = sheet(search.space, 800, SEED + 90_001, False, tangent.error)
    except (ValueError, np.linalg.LinAlgError) as failure:
        return f"a second solution could not be found: {failure}"
    data = sizes_of_data(system, solved.features, solved.coefficients, test)
    left = float(np.max(data))
    # Of a solution such as u = 0 nothing at all is left.
    if not solved.worst <= ALIKE * left:
        ratio = solved.worst / left if left else np.inf
        return f"a second solution leaves {ratio:.1g} times the residual of this one"
    ours, other = probe.fields(model, grid), _values(system, solved, grid)
    return _compared(system, ours, other, "a second solution")


def _quiet(phase: str, tried: int, elapsed: float, worst: float) -> bool:
    return False


def _values(system: System, solved: Solved, grid: np.ndarray) -> np.ndarray:
    coefficients = solved.coefficients.reshape(len(system.fields), -1)
    return solved.features.values(grid, coefficients)


def _compared(
    system: System, ours: np.ndarray, better: np.ndarray, how: str
) -> Estimate:
    """The distances of fields [m, fields] from better ones."""
    size = np.linalg.norm(better, axis=0)
    size = np.where(size > 0, size, len(better) ** 0.5)
    relative = np.linalg.norm(ours - better, axis=0) / size
    fields = zip(system.fields, relative, strict=True)
    return Estimate(
        tuple(FieldEstimate(name, float(error)) for name, error in fields),
        {f: ours[:, j] - better[:, j] for j, f in enumerate(system.fields)},
        how,
    )


def too_rough(quality: float) -> str:
    """Why there is no estimate where the best error leaves so much of the residual."""
    share = math.floor(100 * (1 - quality)) if quality < 1 else 0
    best = (
        f"the error that fits it best explains {share}% of it"
        if share
        else "no error that was tried explains any of it"
    )
    return (
        f"the residual is too rough: {best}, and an estimate needs more than "
        f"{1 - USABLE:.0%}"
    )
