"""Solids of the plane: rectangles, disks, polygons and what is made of them.

A solid has a level: a function that is positive inside, 0 on the boundary and negative
outside. It works on NumPy and on JAX arrays alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Literal

import numpy as np

from pinnlab.problem.crossings import cuts
from pinnlab.problem.curves import Arc, Curve, Segment


CLOSE, FLOOR = 1e-7, 1e-11
"""How far to the sides of a part it is looked, relative to it; and at least, to all."""


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
        x, y = numpy.asarray(x)[..., None], numpy.asarray(y)[..., None]
        a, b = np.array(self.corners).T
        d = np.roll(b, -1)
        across, up = np.roll(a, -1) - a, d - b
        share = ((x - a) * across + (y - b) * up) / (across**2 + up**2)
        share = numpy.clip(share, 0.0, 1.0)
        near = numpy.hypot(x - a - share * across, y - b - share * up)
        distance = numpy.min(near, axis=-1)
        # A ray to the right crosses the line an odd number of times.
        slope = across / np.where(up == 0, 1.0, up)
        crosses = ((b > y) != (d > y)) & (x < a + (y - b) * slope)
        inside = numpy.sum(crosses, axis=-1) % 2 == 1
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

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The pieces of the parts' boundaries that bound the whole."""
        boxes = [extent(s) for s in (self.first, self.second) if s.curves]
        size = float(np.ptp(np.concatenate(boxes), axis=0).max()) if boxes else 0.0
        return _bounding(self, size)


Solid = Disk | Polygon | Combined


def extent(solid: Solid) -> np.ndarray:
    """The smallest box around a solid's boundary, [[x, y] lower, [x, y] upper]."""
    boxes = np.stack([c.box for c in solid.curves])
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def _bounding(solid: Combined, size: float) -> tuple[Curve, ...]:
    """The parts of two solids' pieces with the whole on one side only, to the left.

    Pieces are cut where they meet those of the other solid; between two cuts nothing
    changes. What both have is taken once.
    """
    first, second = solid.first.curves, solid.second.curves
    found: list[Curve] = []
    lower, upper = extent(solid.second) if second else np.full((2, 2), np.nan)
    for curve in first:
        if np.any((curve.box[0] > upper) | (curve.box[1] < lower)):
            # Far from the second solid.
            found += [curve] if solid.operation != "and" else []
            continue
        found += _parts(solid, curve, cuts(curve, second, size), (), size)
    known = tuple(found)
    for curve in second:
        found += _parts(solid, curve, cuts(curve, first, size), known, size)
    return tuple(found)


def _parts(
    solid: Combined, curve: Curve, at: np.ndarray, known: Sequence[Curve], size: float
) -> list[Curve]:
    """The parts of one piece between its cuts, those alike in one."""
    if curve.closed and len(at):
        limits = np.append(at, 1.0 + at[0])
    else:
        limits = np.concatenate([[0.0], at, [1.0]])
    middles = (limits[1:] + limits[:-1]) / 2
    lengths = np.diff(limits) * curve.length
    kinds = _sides(
        solid, curve, known, middles, np.maximum(lengths * CLOSE, FLOOR * size)
    )
    changes = np.flatnonzero(np.diff(kinds)) + 1
    if curve.closed and len(changes) and kinds[0] == kinds[-1]:
        # The last part goes on with the first.
        limits = np.append(limits[changes[0] : -1], 1.0 + limits[: changes[0] + 1])
        kinds = np.roll(kinds, -changes[0])
        changes = np.flatnonzero(np.diff(kinds)) + 1
    if not len(changes):
        whole = {1: [curve], -1: [curve.turned()], 0: []}
        return whole[int(kinds[0])]
    starts = [0, *changes.tolist()]
    ends = [*changes.tolist(), len(kinds)]
    found = []
    for lower, upper in zip(starts, ends, strict=True):
        if kinds[lower]:
            part = curve.part(limits[lower], limits[upper])
            found.append(part if kinds[lower] == 1 else part.turned())
    return found


def _sides(
    solid: Combined,
    curve: Curve,
    known: Sequence[Curve],
    share: np.ndarray,
    apart: np.ndarray,
) -> np.ndarray:
    """1 where the solid is on the curve's own inner side only, -1 where it is on the
    outer only, 0 elsewhere and on curves that are known."""
    points, normals = curve.at(share), curve.normal_at(share)
    away = apart[:, None] * normals
    inner, outer = (solid.level(*(points + s * away).T) > 0 for s in (-1, 1))
    kinds = inner.astype(int) - outer.astype(int)
    for other in known if kinds.any() else ():
        kinds = np.where(other.distance(points) > apart, kinds, 0)
    return kinds
