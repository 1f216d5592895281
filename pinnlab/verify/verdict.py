"""The verdict on a solution by what was measured, and the truth report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinnlab.result import (
    Cost,
    EquationCheck,
    FieldError,
    FieldEstimate,
    ReferenceCheck,
    Report,
)
from pinnlab.verify.evidence import Evidence


CALIBRATION = 3.0
"""An estimate of the error is trusted within this factor."""


@dataclass(frozen=True)
class Judgment:
    """The verdict, why, and what to try next."""

    verdict: str
    reason: str
    suggestion: str


def undecided(evidence: Evidence, target: float) -> tuple[str, ...]:
    """The fields whose truth is too rough to say whether the target is met."""
    return tuple(
        f.field
        for f in evidence.fields
        if not _misses(f, target) and f.rel_l2 + f.own > target
    )


def judge(evidence: Evidence, target: float, stop: str) -> Judgment:
    """`pass` only against a truth; `unverified` where the residuals are fine."""
    if not evidence.equations:
        return Judgment("fail", "interrupted before it was verified", "run it again")
    worst = max(evidence.equations, key=lambda e: e.heldout)
    if not np.isfinite(worst.heldout):
        return Judgment(
            "fail",
            f"the residual of '{worst.name}' is not finite",
            "look at the equation where it is singular",
        )
    if evidence.fields:
        return _against_truth(evidence, target, stop)
    flaw = _flaw(evidence, target, stop)
    if flaw is not None:
        return flaw
    if evidence.estimates:
        return _by_estimate(evidence.estimates, evidence, target, stop)
    reason = "the residuals are small, but nothing independent confirms the solution"
    return Judgment(
        "unverified",
        reason + _inestimable(evidence),
        "give [exact], or compare with a second seed",
    )


def _flaw(evidence: Evidence, target: float, stop: str) -> Judgment | None:
    """What residuals and conditions say against a solution."""
    broken = max(evidence.conditions, key=lambda c: c.relative, default=None)
    if broken is not None and broken.relative > max(10 * target, 1e-6):
        return Judgment(
            "fail",
            f"condition '{broken.name}' on {broken.place} is off by "
            f"{broken.violation:.1e}",
            "raise solver.condition_weight, or the budget",
        )
    worst = max(evidence.equations, key=lambda e: e.heldout)
    if worst.heldout > 10 * target:
        return Judgment(
            "fail",
            f"the held-out residual of '{worst.name}' is {worst.heldout:.1e} of its "
            f"terms; {stop}",
            _advice(worst),
        )
    return None


def _against_truth(evidence: Evidence, target: float, stop: str) -> Judgment:
    """The field that is farthest off decides; where its truth is too rough, its
    estimate."""
    missed = [f for f in evidence.fields if _misses(f, target)]
    field = max(missed or evidence.fields, key=lambda f: f.rel_l2 + f.own)
    against = f"the {field.against} solution"
    if missed:
        worst = max(evidence.equations, key=lambda e: e.heldout)
        reason = (
            f"'{field.field}' is {field.rel_l2:.1e} off {against}, the target is "
            f"{target:.1e}; {stop}"
        )
        return Judgment("fail", reason, _advice(worst))
    rough = undecided(evidence, target)
    if not rough:
        return Judgment("pass", f"the error against {against} is below the target", "")
    estimates = [e for e in evidence.estimates if e.field in rough]
    if len(estimates) == len(rough) and _flaw(evidence, target, stop) is None:
        found = _by_estimate(estimates, evidence, target, stop)
        too_rough = f"{against} is too rough to decide, itself {field.own:.1e} off"
        return replace(found, reason=f"{found.reason}; {too_rough}")
    return Judgment(
        "unverified",
        f"'{field.field}' is {field.rel_l2:.1e} off {against}, whose own error is "
        f"{field.own:.1e}: too large to decide about {target:.1e}"
        + _inestimable(evidence),
        "raise --budget: verification may use half of it",
    )


def _misses(field: FieldError, target: float) -> bool:
    """Whether the target is missed; the own error of a truth is an estimate too."""
    return not field.rel_l2 - CALIBRATION * field.own <= target


def _inestimable(evidence: Evidence) -> str:
    why = evidence.inestimable
    return f"; its error could not be estimated: {why}" if why else ""


def _by_estimate(
    estimates: Sequence[FieldEstimate], evidence: Evidence, target: float, stop: str
) -> Judgment:
    """Estimates were measured to be right within a factor of three."""
    field = max(estimates, key=lambda f: f.rel_l2)
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
