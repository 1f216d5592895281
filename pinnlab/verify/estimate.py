"""An error estimate without a truth: the linearized error equation.

For F(u) = 0 and a computed u the error e solves F'(u) e = -F(u) up to terms of second
order in e, with the conditions' linearizations driven by their violations. That is a
linear problem, so random features and least squares solve it (`pinnlab.linear`).
"""

import math
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import degree
from pinnlab.evaluation import Evaluator, field_expressions
from pinnlab.linear.box import FULL
from pinnlab.linear.forms import LinearForm, linear_form
from pinnlab.linear.search import Search
from pinnlab.linear.solver import unexplained
from pinnlab.linear.tangent import tangent
from pinnlab.newton.pointwise import Pointwise
from pinnlab.newton.structure import is_local
from pinnlab.residual import Model
from pinnlab.result import FieldEstimate
from pinnlab.system.system import System
from pinnlab.system.terms import Term


GOOD = 0.01
"""Held-out residual of the error equation, relative to its terms, that suffices."""
USABLE = 0.5
"""What may be left of the residual: an error that explains less is none. Relative to
the equation's terms it would mean little, since large terms may cancel."""


@dataclass(frozen=True)
class Estimate:
    """Estimated errors.

    - `values`: u - truth by field at the grid's points, [m] each.
    - `quality`: what the errors leave of the residual at fresh points, relative to it.
    """

    fields: tuple[FieldEstimate, ...]
    values: dict[str, np.ndarray]
    quality: float


class Tangent:
    """The linear forms of a system around a model: residuals and their derivative."""

    def __init__(self, system: System, model: Model):
        self.system, self.model = system, model
        self.compiled: dict[Term, tuple[Pointwise, Evaluator]] = {}

    def form(self, system: System, term: Term, points: np.ndarray) -> LinearForm:
        """A term's linearization at [n, dim] points; `rest` is its residual there."""
        if isinstance(term.residual, Expression) and degree(term.residual) <= 1:
            pieces = linear_form(system, term, points).pieces
            residual = Evaluator(system, (term,))(self.model, points)[:, 0]
            return LinearForm(pieces, residual)
        if term not in self.compiled:
            pointwise = Pointwise(system, (term,))
            self.compiled[term] = pointwise, Evaluator(system, pointwise.partials)
        pointwise, evaluator = self.compiled[term]
        values = evaluator(self.model, points)
        return tangent(pointwise, points, pointwise.locations(points), values)


def error_estimate(
    system: System, model: Model, grid: np.ndarray, seconds: float, seed: int = 0
) -> Estimate | str:
    """Estimate the errors of a model.

    **Arguments:**

    - `grid`: where the norms are taken, [m, dim].
    - `seconds`: for the search for features.

    **Returns:** the estimate, or why there is none.
    """
    if len(system.coordinates) > FULL:
        return f"the error equation is solved in at most {FULL} coordinates"
    if not (system.is_linear or is_local(system)):
        return "the equations have nonlinear integrals or are Python functions"
    tangent = Tangent(system, model)
    quiet = lambda phase, tried, elapsed, worst: False
    try:
        search = Search(system, seconds, seed + 7, quiet, tangent.form)
        found = search.run(GOOD)
    except (ValueError, np.linalg.LinAlgError) as failure:
        return f"the error equation could not be solved: {failure}"
    solved = found.solved
    quality = unexplained(system, solved.features, solved.coefficients, search.test)
    if not quality < USABLE:
        return too_rough(quality)
    coefficients = solved.coefficients.reshape(len(system.fields), -1)
    correction = solved.features.values(grid, coefficients)
    ours = Evaluator(system, field_expressions(system))(model, grid)
    fields = []
    for j, name in enumerate(system.fields):
        corrected = float(np.linalg.norm(ours[:, j] + correction[:, j]))
        size = corrected or float(len(grid)) ** 0.5
        relative = float(np.linalg.norm(correction[:, j])) / size
        fields.append(FieldEstimate(name, relative))
    values = {f: -correction[:, j] for j, f in enumerate(system.fields)}
    return Estimate(tuple(fields), values, quality)


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
