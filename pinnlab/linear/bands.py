"""How fast the data of a linear problem vary: where the search for features begins.

A solution has at least the frequencies of its data. The search would find them step by
step where each step helps, but it sees nothing until the box holds them.
"""

from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import ZERO, Expression
from pinnlab.equation.structure import affine
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


LINES, SAMPLES = 6, 512
MARGIN = 1.2
HIGH, NARROW = 8.0, 0.1
"""A band is worth having from this frequency on, and up to this relative width."""


def bands(system: System, seed: int) -> np.ndarray:
    """The frequency of the data along each coordinate scaled to [-1, 1].

    |f'| / |f| along random lines through the sources and the conditions' values, which
    is w for sin(w x): 0 where they are constant.
    """
    rng = np.random.default_rng(seed)
    return MARGIN * np.array(
        [max([0.0, *(s.rate for s in own)]) for own in _spectra(system, rng)]
    )


def centers(system: System, seed: int) -> np.ndarray:
    """The one high frequency along each coordinate scaled to [-1, 1] that all data have
    that vary there; 0 where there is none, or the coordinate is periodic."""
    rng = np.random.default_rng(seed)
    found = np.zeros(len(system.coordinates))
    for i, own in enumerate(_spectra(system, rng)):
        rates = [s.rate for s in own if s.rate > 0]
        if not rates or system.coordinates[i] in system.problem.periodic:
            continue
        center = float(np.mean(rates))
        spread = max(*(abs(r - center) for r in rates), *(s.spread for s in own))
        if center >= HIGH and spread <= NARROW * center:
            found[i] = center
    return found


@dataclass(frozen=True)
class _Spectrum:
    """The frequency of data along a coordinate, and its standard deviation."""

    rate: float
    spread: float


def _spectra(system: System, rng: np.random.Generator) -> list[list[_Spectrum]]:
    """Of each coordinate, the spectra of all data that depend on the place there."""
    found: list[list[_Spectrum]] = [[] for _ in system.coordinates]
    for term in (*system.equations, *system.conditions):
        if not isinstance(term.residual, Expression):
            continue
        form = affine(term.residual)
        if form is None or form.rest == ZERO:
            continue
        for i, name in enumerate(system.coordinates):
            if name not in dict(term.place.fixed):
                found[i].append(_spectrum(system, term, form.rest, i, rng))
    return found


def _spectrum(
    system: System, term: Term, rest: Expression, axis: int, rng: np.random.Generator
) -> _Spectrum:
    lower = np.array([a.lower for a in system.problem.axes])
    upper = np.array([a.upper for a in system.problem.axes])
    base = np.repeat(rng.random((LINES, len(lower))), SAMPLES, axis=0)
    base[:, axis] = np.tile((np.arange(SAMPLES) + 0.5) / SAMPLES, LINES)
    points = lower + (upper - lower) * base
    for name, value in term.place.fixed:
        points[:, system.coordinates.index(name)] = value
    values = array_values(system.problem, (rest,), points).reshape(LINES, SAMPLES)
    size = float(np.linalg.norm(values[:, 2:-2]))
    if not np.isfinite(values).all() or size == 0:
        return _Spectrum(0.0, 0.0)
    slopes = np.asarray(np.gradient(values, 2 / SAMPLES, axis=1))
    bends = np.asarray(np.gradient(slopes, 2 / SAMPLES, axis=1))
    # |f'|^2 / |f|^2 is the mean of w^2, |f''|^2 / |f|^2 that of w^4.
    square = (float(np.linalg.norm(slopes[:, 2:-2])) / size) ** 2
    fourth = (float(np.linalg.norm(bends[:, 2:-2])) / size) ** 2
    rate = square**0.5
    deviation = max(fourth - square**2, 0.0) ** 0.5
    return _Spectrum(rate, deviation / (2 * rate) if rate > 0 else 0.0)
