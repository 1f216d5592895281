"""How fast the data of a linear problem vary: where the search for features begins.

A solution has at least the frequencies of its data. The search would find them step by
step where each step helps, but it sees nothing until the box holds them.
"""

import numpy as np

from pinnlab.equation.expression import ZERO, Expression
from pinnlab.equation.structure import affine
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


LINES, SAMPLES = 6, 512
MARGIN = 1.2


def bands(system: System, seed: int) -> np.ndarray:
    """The frequency of the data along each coordinate scaled to [-1, 1].

    |f'| / |f| along random lines through the sources and the conditions' values, which
    is w for sin(w x): 0 where they are constant.
    """
    rng = np.random.default_rng(seed)
    found = np.zeros(len(system.coordinates))
    for term in (*system.equations, *system.conditions):
        if not isinstance(term.residual, Expression):
            continue
        form = affine(term.residual)
        if form is None or form.rest == ZERO:
            continue
        for i, name in enumerate(system.coordinates):
            if name not in dict(term.place.fixed):
                own = _band(system, term, form.rest, i, rng)
                found[i] = max(found[i], own)
    return found


def _band(
    system: System, term: Term, rest: Expression, axis: int, rng: np.random.Generator
) -> float:
    lower = np.array([a.lower for a in system.problem.axes])
    upper = np.array([a.upper for a in system.problem.axes])
    base = np.repeat(rng.random((LINES, len(lower))), SAMPLES, axis=0)
    base[:, axis] = np.tile((np.arange(SAMPLES) + 0.5) / SAMPLES, LINES)
    points = lower + (upper - lower) * base
    for name, value in term.place.fixed:
        points[:, system.coordinates.index(name)] = value
    values = array_values(system.problem, (rest,), points).reshape(LINES, SAMPLES)
    if not np.isfinite(values).all():
        return 0.0
    size = float(np.linalg.norm(values))
    slope = float(np.linalg.norm(np.gradient(values, 2 / SAMPLES, axis=1)))
    return MARGIN * slope / size if size > 0 else 0.0
