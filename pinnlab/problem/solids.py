"""Solids of the plane: rectangles, disks, polygons and what is made of them.

A solid has a level: a function that is positive inside, 0 on the boundary and negative
outside. It works on NumPy and on JAX arrays alike.
"""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np

from pinnlab.problem.curves import Arc, Curve, Segment


SAMPLES = 2000
"""Places along a curve where it is looked whether it bounds a solid."""
CLOSE = 1e-7
"""How far to its sides, relative to the solid's size."""


@dataclass(frozen=True)
class Disk:
    """The points nearer to a center than a radius."""

    center: tuple[float, float]
    radius: float

    def level(self, x, y, numpy: ModuleType = np):
        """The distance from the circle, positive inside."""
        a, b = self.center
        return self.radius - numpy.hypot(x - a, y - b)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The boundary's pieces."""
        return (Arc(self.center, self.radius),)


@dataclass(frozen=True)
class Polygon:
    """What a closed line through corners, counterclockwise, has inside."""

    corners: tuple[tuple[float, float], ...]

    def level(self, x, y, numpy: ModuleType = np):
        """The distance from the line, positive inside."""
        distance, inside = math.inf, False
        for s in self.curves:
            (a, b), (c, d) = s.first, s.last
            share = ((x - a) * (c - a) + (y - b) * (d - b)) / s.length**2
            share = numpy.clip(share, 0.0, 1.0)
            near = numpy.hypot(x - a - share * (c - a), y - b - share * (d - b))
            distance = numpy.minimum(distance, near)
            # A ray to the right crosses the line an odd number of times.
            if b != d:
                crosses = ((b > y) != (d > y)) & (x < a + (y - b) / (d - b) * (c - a))
                inside = inside ^ crosses
        return numpy.where(inside, distance, -distance)

    @property
    def curves(self) -> tuple[Segment, ...]:
        """The boundary's pieces."""
        ends = (*self.corners[1:], self.corners[0])
        return tuple(Segment(a, b) for a, b in zip(self.corners, ends, strict=True))


@dataclass(frozen=True)
class Combined:
    """The union (`+`), difference (`-`) or intersection (`and`) of two solids."""

    operation: Literal["+", "-", "and"]
    first: "Solid"
    second: "Solid"

    def level(self, x, y, numpy: ModuleType = np):
        """Positive inside, 0 on the boundary."""
        a, b = self.first.level(x, y, numpy), self.second.level(x, y, numpy)
        if self.operation == "+":
            return numpy.maximum(a, b)
        return numpy.minimum(a, -b if self.operation == "-" else b)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The pieces of the parts' boundaries that bound the whole."""
        found: list[Curve] = []
        for curve in (*self.first.curves, *self.second.curves):
            found += _bounding(self, curve, found)
        return tuple(found)


Solid = Disk | Polygon | Combined


def extent(solid: Solid) -> np.ndarray:
    """The smallest box around a solid's boundary, [[x, y] lower, [x, y] upper]."""
    share = np.linspace(0.0, 1.0, SAMPLES + 1)
    points = np.concatenate([c.at(share) for c in solid.curves])
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _bounding(solid: Combined, curve: Curve, known: list[Curve]) -> list[Curve]:
    """The parts of a curve with the solid on one side only, outside to the right."""
    share = (np.arange(SAMPLES) + 0.5) / SAMPLES
    side = _sides(solid, curve, known, share)
    changes = np.flatnonzero(np.diff(side)) + 1
    if not len(changes):
        whole = {1: [curve], -1: [curve.turned()], 0: []}
        return whole[int(side[0])]
    cuts = [_cut(solid, curve, known, share[i - 1], share[i]) for i in changes]
    starts, ends = [0.0, *cuts], [*cuts, 1.0]
    kinds = [int(side[i]) for i in (0, *changes)]
    if curve.closed and kinds[0] == kinds[-1]:
        # The last part goes on with the first.
        starts, kinds = starts[1:], kinds[1:]
        ends = [*ends[1:-1], 1.0 + ends[0]]
    found = []
    for lower, upper, kind in zip(starts, ends, kinds, strict=True):
        if kind:
            part = curve.part(lower, upper)
            found.append(part if kind == 1 else part.turned())
    return found


def _sides(
    solid: Combined, curve: Curve, known: list[Curve], share: np.ndarray
) -> np.ndarray:
    """1 where the solid is on the curve's own inner side only, -1 where it is on the
    outer only, 0 elsewhere and on curves that are known."""
    points, normals = curve.at(share), curve.normal_at(share)
    apart = CLOSE * curve.length
    inner, outer = (solid.level(*(points + s * apart * normals).T) > 0 for s in (-1, 1))
    new = np.ones(len(points), bool)
    for other in known:
        new &= other.distance(points) > apart
    return np.where(new, inner.astype(int) - outer.astype(int), 0)


def _cut(
    solid: Combined, curve: Curve, known: list[Curve], lower: float, upper: float
) -> float:
    """Where the side changes between two shares, by bisection."""
    first = _sides(solid, curve, known, np.array([lower]))[0]
    for _ in range(50):
        middle = (lower + upper) / 2
        if _sides(solid, curve, known, np.array([middle]))[0] == first:
            lower = middle
        else:
            upper = middle
    return (lower + upper) / 2
