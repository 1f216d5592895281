"""Reflections that leave the equations as they are, and what is gained by them.

Where a reflection R about the middle of a coordinate maps every equation and condition
onto one of the system, data apart, the even and the odd part of the solution can be
found one after the other, from the even and the odd part of the data: two problems with
half the unknowns each. With several reflections there are as many parts as
combinations, and those whose data are zero are zero.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.linear.box import FULL
from pinnlab.linear.parity import Parity
from pinnlab.sampling import unit_points
from pinnlab.system.forms import LinearForm, linear_form
from pinnlab.system.system import System
from pinnlab.system.terms import Term


SAMPLES = 16
EXACT, NOTHING = 1e-10, 1e-12
"""How well coefficients must agree; below which share of the data a part is zero."""


@dataclass(frozen=True)
class Mirror:
    """The reflection of one coordinate, and what it makes of the terms.

    - `total`: of the coordinate's lower and upper bound.
    - `partners`: for every term (equations, then conditions) the term that it becomes,
        and the sign.
    """

    axis: int
    total: float
    partners: tuple[tuple[int, float], ...]

    def reflected(self, points: np.ndarray) -> np.ndarray:
        """[n, dim] points on the other side."""
        found = points.copy()
        found[:, self.axis] = self.total - points[:, self.axis]
        return found


def find_mirrors(system: System) -> tuple[Mirror, ...]:
    """The reflections of a linear system of few coordinates."""
    axes = range(len(system.coordinates))
    if len(axes) > FULL:
        return ()
    found = (_mirror(system, axis) for axis in axes)
    return tuple(m for m in found if m is not None)


def parity_of(mirrors: tuple[Mirror, ...]) -> Parity:
    """All kinds of symmetry, the even one first."""
    kinds = list(itertools.product((False, True), repeat=len(mirrors)))
    return Parity(tuple(m.axis for m in mirrors), np.array(kinds))


def representatives(mirrors: tuple[Mirror, ...], count: int) -> list[int]:
    """Of `count` terms the first of each set that reflections map onto each other."""
    found, seen = [], set[int]()
    for i in range(count):
        if i not in seen:
            found.append(i)
            orbit = {i}
            for m in mirrors:
                orbit |= {m.partners[j][0] for j in orbit}
            seen |= orbit
    return found


def parts_of_data(
    system: System, mirrors: tuple[Mirror, ...], which: int, points: np.ndarray
) -> np.ndarray:
    """The parts of a term's data at [n, dim] points: [parts, n]."""
    terms = (*system.equations, *system.conditions)
    rests = []
    for flips in itertools.product((False, True), repeat=len(mirrors)):
        index, sign, places = which, 1.0, points
        for mirror, flip in zip(mirrors, flips, strict=True):
            if flip:
                index, own = mirror.partners[index]
                sign, places = sign * own, mirror.reflected(places)
        rests.append(sign * linear_form(system, terms[index], places).rest)
    return parity_of(mirrors).signs @ np.stack(rests) / len(rests)


def needed(parts: list[np.ndarray]) -> np.ndarray:
    """Which parts have data, [parts]; the first one where none has.

    `parts`: of every term, [parts, n].
    """
    norms = np.array([np.linalg.norm(p, axis=1) for p in parts])
    found = np.any(norms > NOTHING * norms.max(axis=1, keepdims=True), axis=0)
    return found if found.any() else np.arange(len(found)) == 0


def _mirror(system: System, axis: int) -> Mirror | None:
    problem = system.problem
    total = problem.axes[axis].lower + problem.axes[axis].upper
    blank = Mirror(axis, total, ())
    terms = (*system.equations, *system.conditions)
    partners = []
    for i, term in enumerate(terms):
        others = [i, *(j for j in range(len(terms)) if j != i)]
        for j in others:
            sign = _sign(system, blank, term, terms[j])
            if sign is not None:
                partners.append((j, sign))
                break
        else:
            return None
    return Mirror(axis, total, tuple(partners))


def _sign(system: System, mirror: Mirror, term: Term, other: Term) -> float | None:
    """The sign with which a reflected term is another; None where it is not."""
    name = system.coordinates[mirror.axis]
    fixed = {
        n: mirror.total - v if n == name else v
        for n, v in dict(term.place.fixed).items()
    }
    if fixed != dict(other.place.fixed) or term.kind != other.kind:
        return None
    if term.place.where is not None or other.place.where is not None:
        return None
    axes = system.problem.axes
    lower = np.array([a.lower for a in axes])
    width = np.array([a.upper for a in axes]) - lower
    points = lower + width * unit_points("sobol", SAMPLES, len(axes), 0)
    for n, v in term.place.fixed:
        points[:, system.coordinates.index(n)] = v
    places = mirror.reflected(points)
    here = _coefficients(linear_form(system, term, points), points)
    there = _coefficients(linear_form(system, other, places), places)
    if here is None or there is None or set(here) != set(there):
        return None
    turned = {k: (-1.0) ** k[1][mirror.axis] * c for k, c in there.items()}
    for sign in (1.0, -1.0):
        if all(
            np.abs(sign * turned[k] - c).max() <= EXACT * np.abs(c).max()
            for k, c in here.items()
        ):
            return sign
    return None


def _coefficients(
    form: LinearForm, points: np.ndarray
) -> dict[tuple[str, tuple[int, ...]], np.ndarray] | None:
    """Of every derivative at the points themselves; None where there are others."""
    found = {}
    for p in form.pieces:
        if p.location.shape[1] != 1 or np.any(p.location[:, 0] != points):
            return None
        found[p.field, p.orders] = p.coefficient[:, 0]
    return found
