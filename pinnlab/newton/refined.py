"""A steady solution once more with more modes: one Gauss-Newton step from it.

What the step changes is the error of the first solution but for that of the second,
which is several times smaller: the estimate by refinement of classical methods.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from pinnlab.network import AbstractNetwork, LaplaceCorners, Separable, Sum
from pinnlab.newton.collocation import DAMPING, Collocation
from pinnlab.newton.corners import singular_corners
from pinnlab.newton.least_squares import damped
from pinnlab.newton.memory import localized
from pinnlab.newton.numbers import Numbers
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.space import Space, more_modes
from pinnlab.singular.networks import joined_corners
from pinnlab.system.system import System


GROWTH = 1.2
"""Of the modes of each coordinate."""
ALIKE = 3.0
"""How many times the residual of the first solution the second one may leave: of both
there may be nothing but rounding."""
TIMED = 512
"""Unknowns of the step by which the machine is timed."""
BETTER_USED = 1.5
"""By how much larger steps use the machine better than that one; measured: 1.9."""


@dataclass(frozen=True)
class Parts:
    """What `solve_steady` found, all in one piece, with the functions at corners."""

    separable: Separable
    corners: LaplaceCorners | None


def parts_of(system: System, network: AbstractNetwork) -> Parts | None:
    """The parts of the network of a steady solution; None for other networks."""
    if "t" in system.coordinates or localized(system) is not system:
        return None
    match network:
        case Separable():
            return Parts(network, None)
        case Sum(networks=(Separable() as separable, LaplaceCorners() as corners)):
            return Parts(separable, corners)
    return None


def refined(
    system: System, parts: Parts, points: np.ndarray, seconds: float
) -> np.ndarray | str:
    """The fields of a finer solution.

    **Arguments:**

    - `points`: [m, dim].
    - `seconds`: that the step may take, by an estimate.

    **Returns:** the fields [m, fields], or why there are none.
    """
    compiled = Compiled(system)
    found = np.asarray(parts.separable.coefficients)[0]
    corners = () if parts.corners is None else singular_corners(system, compiled)
    periodic = system.joined
    modes = tuple(
        more_modes(n, i in periodic, GROWTH) for i, n in enumerate(found.shape[1:])
    )
    groups = [system.equations, *((c,) for c in system.conditions)]
    space = Space(modes, periodic, None, (0,) * len(system.fields), corners)
    collocation = Collocation(system, space, groups, compiled, weighted=True)
    if _work(collocation.rows, collocation.unknowns) > _affordable(seconds):
        return f"there is no time for {' x '.join(map(str, modes))} modes"
    singular = np.zeros((len(found), 0))
    if parts.corners is not None:
        singular = joined_corners(corners, parts.corners)
    pads = [(0, m - n) for m, n in zip(modes, found.shape[1:], strict=True)]
    first = Numbers(np.pad(found, [(0, 0), *pads]), singular)
    better, before, after = collocation.stepped(first)
    if not after <= ALIKE * before:
        return f"a finer solution leaves {after / before:.1g} times its residual"
    return collocation.values(collocation.whole.unit(points), better).T


def _work(rows: int, columns: int) -> float:
    """What the seconds of a `damped` step are proportional to."""
    return float(rows + columns) * columns**2


def _affordable(seconds: float) -> float:
    """The `_work` that this machine does in so many seconds now."""
    matrix = np.random.default_rng(0).standard_normal((2 * TIMED, TIMED))
    best = math.inf
    for _ in range(2):
        began = time.perf_counter()
        damped(matrix, matrix[:, 0], DAMPING)
        best = min(best, time.perf_counter() - began)
    return BETTER_USED * seconds / max(best, 1e-6) * _work(*matrix.shape)
