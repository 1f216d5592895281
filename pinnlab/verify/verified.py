"""After solving: the truth, the classical solver's cost, and what was measured."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pinnlab.fields import Model
from pinnlab.probe import Probe
from pinnlab.result import ReferenceCheck
from pinnlab.system.system import System
from pinnlab.verify.against import (
    Truth,
    exact_truth,
    field_errors,
    reference_truth,
)
from pinnlab.verify.classical import Classical, classical, finer, reference_check
from pinnlab.verify.estimate import Estimate, Rival, estimated, nearest
from pinnlab.verify.evidence import Evidence, gather
from pinnlab.verify.reference_file import file_truth
from pinnlab.verify.verdict import CALIBRATION, undecided


ESTIMATE_SHARE = 0.5
"""Of the time, what is left for an estimate where the classical solver took more."""


@dataclass(frozen=True)
class Known:
    """What is known of a problem's solution before any model is looked at.

    - `truth`: on the grid of the result; `beside`: the classical solution, if tried.
    """

    truth: Truth | None
    beside: Classical | None


@dataclass(frozen=True)
class Verified:
    """What is known about a solution: evidence, the truth it came from, the cost.

    - `estimate`: of the errors where no truth decides, or why there is none.
    - `known`: the best truth so far, for other solutions of the problem.
    """

    evidence: Evidence
    truth: Truth | None
    reference: ReferenceCheck | None
    estimate: Estimate | str = ""
    known: Known | None = None


def known(system: System, grid: np.ndarray, target: float, seconds: float) -> Known:
    """The exact solution, or else that of the reference file, or a classical one.

    **Arguments:**

    - `grid`: the points of the result, [m, dim].
    - `seconds`: for the classical solver; without any it is not tried.
    """
    truth = exact_truth(system, grid) or file_truth(system, grid)
    choice = system.problem.reference
    asked = seconds > 0 and choice.method == "auto" and not choice.file
    beside = classical(system.problem, target, seconds) if asked else None
    if truth is None and beside is not None and beside.reference is not None:
        truth = reference_truth(beside.reference, grid)
    return Known(truth, beside)


def worst_error(probe: Probe, model: Model, truth: Truth, grid: np.ndarray) -> float:
    """The largest relative error of any field."""
    return max(f.rel_l2 for f in field_errors(probe, model, truth, grid))


def distances(
    system: System, model: Model, truth: Truth, grid: np.ndarray
) -> tuple[float, ...]:
    """The relative errors of all fields, the largest first.

    None is smaller than the truth's own error: below it the truth does not decide.
    """
    found = field_errors(Probe(system), model, truth, grid)
    return tuple(sorted((max(f.rel_l2, f.own) for f in found), reverse=True))


def verify(
    probe: Probe,
    model: Model,
    training_points: np.ndarray,
    grid: np.ndarray,
    target: float,
    seconds: float,
    known: Known,
    rivals: Sequence[Rival] = (),
) -> Verified:
    """Measure a solution against the best truth there is.

    **Arguments:**

    - `training_points`: the interior points of the last loss, [n, dim].
    - `seconds`: for a better classical solution or an estimate of the error.
    - `rivals`: other solutions; one that is near enough is estimate enough.
    """
    system, truth, beside = probe.system, known.truth, known.beside
    if truth is not None and truth.name == "reference" and beside is not None:
        error = worst_error(probe, model, truth, grid)
        beside = finer(beside, system.problem, min(error, target), seconds)
        if beside.reference is not None:
            truth = reference_truth(beside.reference, grid)
    evidence = gather(probe, model, training_points, truth, grid)
    estimate: Estimate | str | None = "a truth is known"
    if (truth is None or undecided(evidence, target)) and seconds > 0:
        spent = 0.0 if beside is None else beside.seconds
        left = max(seconds - spent, ESTIMATE_SHARE * seconds)
        estimate = nearest(probe, model, rivals, grid)
        if estimate is None or estimate.worst > target / CALIBRATION:
            worst = max(e.heldout for e in evidence.equations)
            estimate = estimated(probe, model, grid, left, worst)
        if isinstance(estimate, Estimate):
            evidence = dataclasses.replace(
                evidence, estimates=estimate.fields, estimated_by=estimate.how
            )
        else:
            evidence = dataclasses.replace(evidence, inestimable=estimate)
    check = None if beside is None else _check(beside, evidence)
    if truth is not None and system.problem.reference.file and beside is None:
        check = _check_file(system.problem.reference.file, truth)
    return Verified(evidence, truth, check, estimate, Known(truth, beside))


def _check(beside: Classical, evidence: Evidence) -> ReferenceCheck:
    if beside.reference is None:
        return ReferenceCheck("", beside.reason, math.inf, beside.seconds, math.inf)
    error = max((f.rel_l2 for f in evidence.fields), default=math.nan)
    return reference_check(beside.reference, beside.seconds, error)


def _check_file(file: str, truth: Truth) -> ReferenceCheck:
    own = max(truth.own.values())
    return ReferenceCheck(f"file {Path(file).name}", "", own, 0.0, math.inf)
