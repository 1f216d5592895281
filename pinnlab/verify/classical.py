"""The classical solution beside the neural one: is it there, how good, at what cost."""

import math
import time
from dataclasses import dataclass

import numpy as np

from pinnlab.problem.problem import Problem
from pinnlab.reference.reference import NoReference, Reference
from pinnlab.reference.solve import solve_reference
from pinnlab.result import ReferenceCheck


SAFETY = 10.0
"""A reference is refined until its own error is this much below what it judges."""
FINEST = 1e-12


@dataclass(frozen=True)
class Classical:
    """A classical solution, or why there is none.

    - `seconds`: of everything that was tried.
    """

    reference: Reference | None
    reason: str
    seconds: float


def classical(problem: Problem, error: float, seconds: float) -> Classical:
    """The classical solution with an error `SAFETY` below the given one."""
    began = time.perf_counter()
    wanted = max(error / SAFETY, FINEST)
    try:
        found = solve_reference(problem, error=wanted, seconds=seconds)
    except NoReference as refusal:
        return Classical(None, refusal.reason, time.perf_counter() - began)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError) as failure:
        # A solver that breaks down is no reason to lose the solution it should judge.
        reason = f"the classical solver broke down: {failure}"
        return Classical(None, reason, time.perf_counter() - began)
    return Classical(found, "", time.perf_counter() - began)


def finer(
    before: Classical, problem: Problem, error: float, seconds: float
) -> Classical:
    """A better reference where the one at hand cannot judge so small an error."""
    reference = before.reference
    if reference is None or reference.error * SAFETY <= error:
        return before
    if before.seconds > seconds - before.seconds:
        return before
    again = classical(problem, error, seconds - before.seconds)
    if again.reference is None or again.reference.error >= reference.error:
        return before
    return Classical(again.reference, "", before.seconds + again.seconds)


def reference_check(
    reference: Reference, seconds: float, error: float
) -> ReferenceCheck:
    """What the report says of a reference.

    - `seconds`: of everything that was tried.
    - `error`: of which the cheapest classical solve is told; none where it is NaN or
        infinite.
    """
    alike = reference.seconds_to(error) if math.isfinite(error) else None
    return ReferenceCheck(
        reference.method,
        "",
        reference.error,
        seconds,
        math.inf if alike is None else alike,
    )
