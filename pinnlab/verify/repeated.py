"""Conditions that are given twice, or that contradict one another, at one place."""

import itertools

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values, holds
from pinnlab.system.system import System
from pinnlab.system.terms import Term
from pinnlab.verify.findings import Findings
from pinnlab.verify.trial import random_state, zero_state


POINTS, STATES = 64, 3


def repeated_conditions(system: System) -> Findings:
    """Errors for contradictions (u = 0 and u = 1 on x = 0), warnings for repetitions.

    Two conditions ask for the same quantity if their homogeneous parts are multiples
    of one another, whatever the fields.
    """
    errors: list[str] = []
    warnings: list[str] = []
    for a, b in itertools.combinations(system.conditions, 2):
        points = _shared(system, a, b)
        if points is None:
            continue
        gap = _gap(system, a, b, points)
        names = f"conditions '{a.name}' and '{b.name}'"
        place = a.place.text if a.place == b.place else f"{a.place.text} and elsewhere"
        if gap == 0.0:
            warnings.append(f"{names} are the same on {place}: one of them is enough")
        elif gap is not None:
            errors.append(
                f"{names} contradict one another on {place}: they ask for different "
                f"values of the same quantity (by up to {gap:.3g})"
            )
    return Findings(tuple(errors), tuple(warnings))


def _shared(system: System, a: Term, b: Term) -> np.ndarray | None:
    """Points that belong to both places; None if there are (nearly) none."""
    if set(a.place.fixed) != set(b.place.fixed) or a.place.curve != b.place.curve:
        return None
    if not (isinstance(a.residual, Expression) and isinstance(b.residual, Expression)):
        return None
    if {p.field for p in partials(a.residual)} != {
        p.field for p in partials(b.residual)
    }:
        return None
    points = sample(system.problem, a.place, POINTS, seed=59)
    points = points[holds(system.problem, b.place, points)]
    return points if len(points) > POINTS // 16 else None


def _gap(system: System, a: Term, b: Term, points: np.ndarray) -> float | None:
    """How far apart the data of conditions on the same quantity are; None if on others.

    It is 0 where they agree to rounding.
    """
    pair = tuple(t.residual for t in (a, b) if isinstance(t.residual, Expression))
    zero = array_values(system.problem, pair, points, zero_state)
    parts: list[np.ndarray] = []
    for k in range(STATES):
        state = random_state(system.problem.axes, system.fields, seed=60 + k)
        parts.append(array_values(system.problem, pair, points, state) - zero)
    homogeneous = np.concatenate(parts)
    if not np.isfinite(homogeneous).all() or not np.isfinite(zero).all():
        return None
    first, second = homogeneous.T
    size = float(first @ first)
    if size == 0:
        return None
    factor = float(first @ second) / size
    if np.linalg.norm(second - factor * first) > 1e-9 * np.linalg.norm(second):
        return None
    gap = np.abs(zero[:, 1] - factor * zero[:, 0]) / max(1e-300, abs(factor))
    scale = max(np.max(np.abs(zero[:, 0])), np.max(np.abs(first)))
    return 0.0 if np.max(gap) <= 1e-9 * scale else float(np.max(gap))
