"""A steady problem by Gauss-Newton: modes are added where the tails are large.

Beside singular functions tails say nothing, as they cancel each other; there modes are
added until the fields stay.
"""

from collections.abc import Callable

import numpy as np

from pinnlab.network.basis import tail
from pinnlab.newton.collocation import Collocation
from pinnlab.newton.curriculum import strengthened
from pinnlab.newton.numbers import Numbers, Solved
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.space import Space, more_modes, odd
from pinnlab.singular.corners import Corner
from pinnlab.system.system import System


FIRST_MODES = {1: 16, 2: 10, 3: 6}
PATIENCE = 5
"""Spaces in a row that may be too small for Gauss-Newton to converge in."""
LARGER = 2.75
"""A steady problem is one piece: so many times the unknowns of a slab,
which take 3 GB."""
LEAST_GROWTH = 1.15
SLOWEST = 0.8
"""Changes that shrink by less from space to space bound no error."""

GRID = 32
"""Points along each coordinate where solutions are compared."""

Tell = Callable[[int, float], None]
"""Told the solves so far and the largest tail."""


def solve_steady(
    system: System,
    tolerance: float,
    most: int,
    seconds: float,
    tell: Tell,
    compiled: Compiled,
    corners: tuple[Corner, ...] = (),
) -> tuple[Solved, float] | None:
    """The solution in the space that resolves it, or the largest that fits.

    **Arguments:**

    - `most`: modes of one field in one slab of an evolution.
    - `corners`: whose singular functions are taken.

    **Returns:** the solution and an estimate of its relative error; None where
    Gauss-Newton did not converge.
    """
    clock = compiled.clock
    deadline = clock.spent + seconds
    axes = system.problem.axes
    periodic = system.joined
    first = FIRST_MODES[len(axes)]
    modes = tuple(odd(first) if i in periodic else first for i in range(len(axes)))
    groups = [system.equations, *((c,) for c in system.conditions)]
    terms = [compiled.of(g) for g in groups]
    fields, singular = len(system.fields), sum(int(c.kept.sum()) for c in corners)
    guess = Numbers(np.zeros((fields, *modes)), np.zeros((fields, singular)))
    best: tuple[Solved, float] | None = None
    changes, values = list[float](), np.zeros(1)
    tried = failed = 0
    while True:
        space = Space(modes, periodic, None, (0,) * fields, corners)
        collocation = Collocation(system, space, groups, compiled, weighted=True)
        began = clock.spent
        late = lambda: clock.spent > deadline
        solved = strengthened(collocation, terms, guess, tolerance, late)
        tried += 1
        c = solved.coefficients
        if not np.isfinite(c).all():
            return best
        tails = [
            np.inf if corners else tail(c, i + 1, i in periodic)
            for i in range(len(modes))
        ]
        if solved.converged:
            now = _values(collocation, solved.numbers)
            changes.append(_change(now, values))
            values = now
            if corners:
                tails = [_remaining(changes)] * len(modes)
            resolved = max(tails) <= tolerance
            best = solved, max(tails) if resolved else _remaining(changes)
            tell(tried, max(tails))
        else:
            failed += 1
            if best is not None or failed > PATIENCE:
                return best
        wide = tuple(i for i, last in enumerate(tails) if last > tolerance)
        wider = _wider(modes, wide, periodic, LARGER * most)
        # Between the square (assembly) and the cube (factorization).
        growth = (np.prod(wider) / np.prod(modes)) ** 2
        spent = clock.spent - began
        if wider == modes or clock.spent + growth * spent > deadline:
            return best
        pads = [(0, w - n) for w, n in zip(wider, modes, strict=True)]
        guess = Numbers(np.pad(c, [(0, 0), *pads]), solved.numbers.singular)
        modes = wider


def _wider(
    modes: tuple[int, ...],
    wide: tuple[int, ...],
    periodic: tuple[int, ...],
    most: float,
) -> tuple[int, ...]:
    """More modes of the coordinates `wide`: MORE, or less where that is above `most`.

    The same modes where hardly more are allowed.
    """
    if not wide:
        return modes
    room = (most / np.prod(modes)) ** (1 / len(wide))
    if room < LEAST_GROWTH:
        return modes
    found = list(modes)
    for i in wide:
        allowed = int(room * modes[i])
        found[i] = min(more_modes(modes[i], i in periodic), allowed)
        if i in periodic:
            found[i] -= 1 - found[i] % 2
    return tuple(found)


def _values(collocation: Collocation, numbers: Numbers) -> np.ndarray:
    """The fields [fields, n] on a uniform grid."""
    z = (2 * np.arange(GRID) + 1) / GRID - 1
    lines = [z] * len(collocation.space.modes)
    grid = [g.ravel() for g in np.meshgrid(*lines, indexing="ij")]
    return collocation.values(np.stack(grid, axis=1), numbers)


def _change(found: np.ndarray, before: np.ndarray) -> float:
    """The largest relative change of a field's values [fields, n]."""
    sizes = np.linalg.norm(found, axis=1)
    moved = np.linalg.norm(found - before, axis=1)
    return float(np.max(moved / np.where(sizes > 0, sizes, 1.0)))


def _remaining(changes: list[float]) -> float:
    """The changes still to come: the sum of a geometric series of the last two.

    Of the last one alone where they do not shrink. The first one is that from zero.
    """
    if len(changes) < 3 or changes[-1] >= SLOWEST * changes[-2]:
        return changes[-1]
    ratio = changes[-1] / changes[-2]
    return changes[-1] * ratio / (1 - ratio)
