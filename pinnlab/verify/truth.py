"""The truth report: held-out residuals, conditions, errors, and a verdict."""

from dataclasses import dataclass

import numpy as np

from pinnlab.probe import Probe
from pinnlab.residual import Model
from pinnlab.result import (
    ConditionCheck,
    Cost,
    EquationCheck,
    FieldError,
    FieldEstimate,
    ReferenceCheck,
    Report,
)
from pinnlab.sampling import sample
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.against import Truth, field_errors


FRESH_POINTS = 8192
CONDITION_POINTS = 2048
CALIBRATION = 3.0
"""An estimate of the error is trusted within this factor."""


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


@dataclass(frozen=True)
class Judgment:
    """The verdict, why, and what to try next."""

    verdict: str
    reason: str
    suggestion: str


def judge(evidence: Evidence, target: float, stop: str) -> Judgment:
    """`pass` only against a truth; `unverified` where the residuals are fine."""
    if not evidence.equations:
        return Judgment("fail", "interrupted before it was verified", "run it again")
    worst = max(evidence.equations, key=lambda e: e.heldout)
    broken = max(evidence.conditions, key=lambda c: c.relative, default=None)
    if not np.isfinite(worst.heldout):
        return Judgment(
            "fail",
            f"the residual of '{worst.name}' is not finite",
            "look at the equation where it is singular",
        )
    if evidence.fields:
        return _against_truth(evidence, target, stop)
    if broken is not None and broken.relative > max(10 * target, 1e-6):
        return Judgment(
            "fail",
            f"condition '{broken.name}' on {broken.place} is off by "
            f"{broken.violation:.1e}",
            "raise solver.condition_weight, or the budget",
        )
    if worst.heldout > 10 * target:
        return Judgment(
            "fail",
            f"the held-out residual of '{worst.name}' is {worst.heldout:.1e} of its "
            f"terms; {stop}",
            _advice(worst),
        )
    if evidence.estimates:
        return _by_estimate(evidence, target, stop)
    reason = "the residuals are small, but nothing independent confirms the solution"
    if evidence.inestimable:
        reason += f"; its error could not be estimated: {evidence.inestimable}"
    return Judgment(
        "unverified",
        reason,
        "give [exact], or compare with a second seed",
    )


def _against_truth(evidence: Evidence, target: float, stop: str) -> Judgment:
    field = max(evidence.fields, key=lambda f: f.rel_l2 + f.own)
    against = f"the {field.against} solution"
    if field.rel_l2 + field.own <= target:
        return Judgment("pass", f"the error against {against} is below the target", "")
    # The own error of a truth is an estimate too.
    if field.rel_l2 - CALIBRATION * field.own <= target:
        return Judgment(
            "unverified",
            f"'{field.field}' is {field.rel_l2:.1e} off {against}, whose own error is "
            f"{field.own:.1e}: too large to decide about {target:.1e}",
            "raise --budget: verification may use half of it",
        )
    worst = max(evidence.equations, key=lambda e: e.heldout)
    reason = (
        f"'{field.field}' is {field.rel_l2:.1e} off {against}, the target is "
        f"{target:.1e}; {stop}"
    )
    return Judgment("fail", reason, _advice(worst))


def _by_estimate(evidence: Evidence, target: float, stop: str) -> Judgment:
    """Estimates were measured to be right within a factor of three."""
    field = max(evidence.estimates, key=lambda f: f.rel_l2)
    by = f" by {evidence.estimated_by}" if evidence.estimated_by else ""
    estimated = f"the error of '{field.field}' is estimated{by} as {field.rel_l2:.1e}"
    if field.rel_l2 <= target / CALIBRATION:
        return Judgment("pass (estimated)", f"{estimated}, well below the target", "")
    if field.rel_l2 <= target * CALIBRATION:
        reason = f"{estimated}, too near the target {target:.1e}"
        return Judgment("unverified", reason, "raise --budget")
    worst = max(evidence.equations, key=lambda e: e.heldout)
    reason = f"{estimated}, the target is {target:.1e}; {stop}"
    return Judgment("fail", reason, _advice(worst))


def _advice(worst: EquationCheck) -> str:
    if worst.ratio > 10:
        return "the points are over-fitted: raise solver.points"
    return "raise --budget, or solver.network.width"


def report(
    judgment: Judgment,
    evidence: Evidence,
    target: float,
    strategy: str,
    cost: Cost,
    warnings: tuple[str, ...],
    reference: ReferenceCheck | None = None,
) -> Report:
    """Everything together."""
    return Report(
        judgment.verdict,
        judgment.reason,
        judgment.suggestion,
        target,
        strategy,
        evidence.equations,
        evidence.conditions,
        evidence.fields,
        cost,
        warnings,
        reference=reference,
        estimates=evidence.estimates,
    )
