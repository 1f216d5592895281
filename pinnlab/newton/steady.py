"""A steady problem by Gauss-Newton: modes are added where the tails are large."""

import time
from collections.abc import Callable

import numpy as np

from pinnlab.network.basis import tail
from pinnlab.newton.collocation import Collocation, Range, Solved
from pinnlab.newton.pointwise import Pointwise
from pinnlab.newton.space import Space, more_modes, odd
from pinnlab.system.system import System
from pinnlab.system.terms import Term


FIRST_MODES = {1: 16, 2: 10, 3: 6}

Tell = Callable[[int, float], None]
"""Told the solves so far and the largest tail."""


def solve_steady(
    system: System, tolerance: float, most: int, seconds: float, tell: Tell
) -> tuple[Solved, float] | None:
    """The solution in the space that resolves it, or the largest that fits.

    **Returns:** the solution and an estimate of its relative error, the difference to
    the one before; None where Gauss-Newton did not converge.
    """
    deadline = time.perf_counter() + seconds
    axes = system.problem.axes
    periodic = system.joined
    box = Range(np.array([a.lower for a in axes]), np.array([a.upper for a in axes]))
    first = FIRST_MODES[len(axes)]
    modes = tuple(odd(first) if i in periodic else first for i in range(len(axes)))
    compiled: dict[tuple[Term, ...], Pointwise] = {}
    guess = np.zeros((len(system.fields), *modes))
    best: tuple[Solved, float] | None = None
    tried = 0
    while True:
        space = Space(modes, periodic, None, (0,) * len(system.fields))
        groups = [system.equations, *((c,) for c in system.conditions)]
        collocation = Collocation(system, space, groups, compiled)
        began = time.perf_counter()
        solved = collocation.solve(box, np.zeros_like(guess), tolerance, guess.ravel())
        tried += 1
        if not solved.converged or not np.isfinite(solved.coefficients).all():
            return best
        c = solved.coefficients
        size = float(np.linalg.norm(c)) or 1.0
        tails = [tail(c, i + 1, i in periodic) for i in range(len(modes))]
        change = float(np.linalg.norm(c - guess)) / size
        best = solved, max(tails) if max(tails) <= tolerance else change
        tell(tried, max(tails))
        wider = tuple(
            more_modes(n, i in periodic) if tails[i] > tolerance else n
            for i, n in enumerate(modes)
        )
        count = int(np.prod(wider)) * len(system.fields)
        spent = time.perf_counter() - began
        # Between the square (assembly, compilation) and the cube (factorization).
        growth = (count / collocation.unknowns) ** 2
        if wider == modes or count > most:
            return best
        if time.perf_counter() + growth * spent > deadline:
            return best
        pads = [(0, w - n) for w, n in zip(wider, modes, strict=True)]
        guess = np.pad(c, [(0, 0), *pads])
        modes = wider
