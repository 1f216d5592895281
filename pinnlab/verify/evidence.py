"""What is measured of a solution: held-out residuals, conditions, errors."""

from dataclasses import dataclass

import numpy as np

from pinnlab.fields import Model
from pinnlab.probe import Probe
from pinnlab.result import (
    ConditionCheck,
    EquationCheck,
    FieldError,
    FieldEstimate,
)
from pinnlab.sampling import sample
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.against import Truth, field_errors


FRESH_POINTS = 8192
CONDITION_POINTS = 2048


@dataclass(frozen=True)
class Evidence:
    """What was measured after training, before any judgment.

    - `estimated_by`: what errors were estimated by, in words.
    - `inestimable`: why errors that should have been estimated were not.
    """

    equations: tuple[EquationCheck, ...]
    conditions: tuple[ConditionCheck, ...]
    fields: tuple[FieldError, ...]
    estimates: tuple[FieldEstimate, ...] = ()
    estimated_by: str = ""
    inestimable: str = ""


def gather(
    probe: Probe,
    model: Model,
    training_points: np.ndarray,
    truth: Truth | None,
    grid: np.ndarray,
) -> Evidence:
    """Measure a trained model.

    **Arguments:**

    - `training_points`: the interior points of the last loss, [n, dim].
    - `truth`: what is known of the solution on the uniform grid for errors, [m, dim].
    """
    system = probe.system
    return Evidence(
        tuple(_equation(probe, model, t, training_points) for t in system.equations),
        tuple(_condition(probe, model, t) for t in system.conditions),
        () if truth is None else field_errors(probe, model, truth, grid),
    )


def _equation(
    probe: Probe, model: Model, term: Term, training: np.ndarray
) -> EquationCheck:
    fresh = sample(probe.system.problem, term.place, FRESH_POINTS, seed=20_011)
    residual, size = probe.term(model, term, fresh)
    seen, _ = probe.term(model, term, training)
    scale = size or 1.0
    return EquationCheck(
        term.name,
        term.text,
        float(np.sqrt(np.mean(residual**2))) / scale,
        float(np.sqrt(np.mean(seen**2))) / scale,
    )


def _condition(probe: Probe, model: Model, term: Term) -> ConditionCheck:
    problem = probe.system.problem
    count = CONDITION_POINTS if term.free is None or term.free else 1
    points = sample(problem, term.place, count, seed=30_011)
    residual, size = probe.term(model, term, points)
    worst = float(np.max(np.abs(residual)))
    if term.enforced == "exact" or not term.why:
        how = term.enforced
    else:
        how = f"penalty ({term.why})"
    # The size of a condition such as u = 0 is the size of u in the domain.
    inside = sample(problem, EVERYWHERE, 512, seed=3)
    _, around = probe.term(model, term, inside)
    fields = probe.fields(model, inside)
    least = 1e-2 * float(np.sqrt(np.mean(fields**2, axis=0)).max())
    scale = max(size, around, least) or 1.0
    return ConditionCheck(
        term.name, term.place.text, term.text, how, count, worst, worst / scale
    )
