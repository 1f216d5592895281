"""Faces that are mirrors: odd and even extensions to a periodic box twice as long.

Where the equations, the initial values and the conditions on both faces of a direction
are unchanged by u(x) -> s u(2a - x) with s = -1 (Dirichlet) or 1 (Neumann), so is the
solution, and its extension is as smooth as it is.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import ZERO, Integral, Partial, walk
from pinnlab.equation.structure import affine
from pinnlab.problem.problem import Axis
from pinnlab.reference.evolution import Evolution, Key
from pinnlab.reference.grid import Line
from pinnlab.system.arrays import Values
from pinnlab.system.terms import Term


SAMPLES = 64
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Interval:
    """A direction of a periodic box."""

    name: str
    lower: float
    upper: float

    def line(self, count: int) -> Line:
        """Its nodes."""
        return Line(self.name, self.lower, self.upper, count, periodic=True)


def periodic_box(evolution: Evolution) -> tuple[Interval, ...] | None:
    """The box extended by reflection where it is not periodic; None if it cannot be."""
    found: list[Interval] = []
    for axis in evolution.space:
        if axis.name in evolution.problem.periodic:
            found.append(Interval(axis.name, axis.lower, axis.upper))
        elif is_mirrored(evolution, axis):
            found.append(Interval(axis.name, axis.lower, 2 * axis.upper - axis.lower))
        else:
            return None
    return tuple(found)


def is_mirrored(evolution: Evolution, axis: Axis) -> bool:
    """Whether both faces of an axis are mirrors of the problem, with the same signs."""
    if any(isinstance(n, Integral) for e in evolution.equations for n in walk(e)):
        return False
    index = evolution.names.index(axis.name)
    admitted = [_signs(evolution, field, axis, index) for field in evolution.fields]
    return any(
        all(
            _invariant(evolution, axis, side, signs)
            for side in (axis.lower, axis.upper)
        )
        for signs in itertools.product(*admitted)
    )


def _signs(evolution: Evolution, field: str, axis: Axis, index: int) -> tuple[int, ...]:
    """The signs under which the field's conditions on the two faces hold by symmetry.

    An odd function has no even derivatives at the mirror, an even one no odd ones.
    """
    signs: set[int] = {1, -1}
    for term in evolution.walls:
        if term.place.fixed[0][0] != axis.name:
            continue
        atom = _homogeneous(term)
        if atom is None:
            return ()
        if atom.field == field:
            signs &= {1 if atom.orders[index] % 2 else -1}
    sides = {
        t.place.fixed[0][1] for t in evolution.walls if t.place.fixed[0][0] == axis.name
    }
    return tuple(signs) if sides == {axis.lower, axis.upper} else ()


def _homogeneous(term: Term) -> Partial | None:
    """The derivative that a condition says is zero."""
    form = affine(term.residual)  # pyright: ignore[reportArgumentType]
    if form is None or form.rest != ZERO or len(form.coefficients) != 1:
        return None
    (atom,) = form.coefficients
    return atom if isinstance(atom, Partial) else None


def _invariant(
    evolution: Evolution, axis: Axis, side: float, signs: tuple[int, ...]
) -> bool:
    """Compare equations and initial values at random points and at their images."""
    rng = np.random.default_rng(0)
    lower = np.array([a.lower for a in evolution.space])
    upper = np.array([a.upper for a in evolution.space])
    points = lower + (upper - lower) * rng.random((SAMPLES, len(lower)))
    image = points.copy()
    column = [a.name for a in evolution.space].index(axis.name)
    image[:, column] = 2 * side - image[:, column]
    sign = dict(zip(evolution.fields, signs, strict=True))
    start = evolution.initial_values(points)
    flip = np.array([sign[f] for f, _ in evolution.components])[:, None]
    if not _close(evolution.initial_values(image), flip * start):
        return False
    index = evolution.names.index(axis.name)
    keys = (*evolution.wanted, *evolution.highest)
    jets = {k: rng.normal(size=SAMPLES) for k in keys}
    mirrored = {k: sign[k[0]] * (-1) ** k[1][index] * v for k, v in jets.items()}
    for part in (0.25, 0.75):
        t = evolution.start + part * (evolution.end - evolution.start)
        here = _residuals(evolution, t, points, jets)
        there = _residuals(evolution, t, image, mirrored)
        for a, b in zip(here, there, strict=True):
            if not (_close(a, b) or _close(a, -b)):
                return False
    return True


def _residuals(
    evolution: Evolution, t: float, points: np.ndarray, jets: dict[Key, np.ndarray]
) -> list[np.ndarray]:
    full = np.insert(points, evolution.time, t, axis=1)
    values = Values(
        dict(zip(evolution.names, full.T, strict=True)),
        evolution.problem.parameters,
        lambda field, orders, places: jets[field, orders],
        depth=0,
    )
    return [values.value(e) for e in evolution.equations]


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    scale = max(1e-300, float(np.max(np.abs(a), initial=0.0)))
    return bool(np.max(np.abs(a - b), initial=0.0) <= TOLERANCE * scale)
