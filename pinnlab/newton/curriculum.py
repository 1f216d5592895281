"""A nonlinear problem by way of easier ones: its nonlinear part grows from nothing.

For a flow this is a ramp of the Reynolds number, whatever the coefficient is called.
"""

from collections.abc import Callable, Iterable

import numpy as np

from pinnlab.newton.collocation import Collocation
from pinnlab.newton.numbers import Numbers, Solved
from pinnlab.newton.pointwise import Pointwise


FIRST_STEP, LEAST_STEP, LONGER = 0.5, 0.02, 1.5


def strengthened(
    collocation: Collocation,
    terms: Iterable[Pointwise],
    guess: Numbers,
    tolerance: float,
    late: Callable[[], bool],
) -> Solved:
    """Gauss-Newton at once, or else from the linear problem by growing strength.

    **Arguments:**

    - `terms`: those of the collocation; their strength is 1 before and after.
    - `guess`: the numbers to begin with.
    - `late`: whether time is up.

    **Returns:** the solution; where there is none, `converged` is false and the
    numbers are those of the strongest problem that was solved.
    """
    terms = tuple(terms)

    def solved(strength: float, start: Numbers) -> Solved:
        for term in terms:
            term.strength = strength
        try:
            return collocation.solve(
                box=collocation.whole,
                lift=np.zeros_like(start.modes),
                free=collocation.free(start),
                tolerance=tolerance,
            )
        finally:
            for term in terms:
                term.strength = 1.0

    found = solved(1.0, guess)
    if found.converged or collocation.system.is_linear:
        return found
    last, reached, step = solved(0.0, guess), 0.0, FIRST_STEP
    if not last.converged:
        return found
    while reached < 1.0 and step >= LEAST_STEP and not late():
        strength = min(1.0, reached + step)
        found = solved(strength, last.numbers)
        if found.converged:
            last, reached, step = found, strength, LONGER * step
        else:
            step /= 2
    return Solved(last.numbers, last.residual, reached == 1.0)
