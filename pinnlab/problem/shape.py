"""The shape of a domain: which part of the box of the coordinates belongs to it."""

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np
from jaxtyping import Bool, Float

from pinnlab.problem.curves import Curve
from pinnlab.problem.solids import Solid, extent


SLACK = 1e-9
"""How far outside a point still counts as one of the edge, relative to the size."""
AROUND = ((1.0, 0.3), (-0.3, 1.0), (-1.0, -0.3), (0.3, -1.0))
"""Directions in which it is looked around a point, along no axis."""


@dataclass(frozen=True)
class Shape:
    """A solid in the plane of two coordinates, its edge, and named parts of that.

    - `columns`: the indices of the two coordinates.
    - `curves`: the pieces of the edge.
    - `parts`: pairs of a name and its pieces, or the text of a place.
    """

    text: str
    columns: tuple[int, int]
    solid: Solid
    curves: tuple[Curve, ...]
    parts: tuple[tuple[str, tuple[Curve, ...] | str], ...] = ()

    @cached_property
    def box(self) -> Float[np.ndarray, "2 2"]:
        """The smallest box around it: lower and upper corner."""
        return extent(self.solid)

    @cached_property
    def size(self) -> float:
        """The longer side of its box."""
        return float(np.max(self.box[1] - self.box[0]))

    @cached_property
    def area(self) -> float:
        """Its area, by Gauss' theorem."""
        return sum(c.swept for c in self.curves)

    @property
    def share(self) -> float:
        """The share of its box that it fills."""
        return self.area / float(np.prod(self.box[1] - self.box[0]))

    def contains(self, points: Float[np.ndarray, "n dim"]) -> Bool[np.ndarray, " n"]:
        """Which points belong to it, its edge included.

        The level is 0 on seams of what is united, which are inside, and on lines that
        what is left out shares with the rest, which are not: there it is looked around.
        """
        slack, level = SLACK * self.size, self.level(points)
        inside = level > slack
        near = np.flatnonzero(np.abs(level) <= slack)
        flat = points[near][:, self.columns]
        for x, y in AROUND:
            there = flat + 100 * slack * np.array([x, y])
            inside[near] |= self.solid.level(*there.T) > 0
        left = near[~inside[near]]
        for curve in self.curves if len(left) else ():
            there = points[left][:, self.columns]
            inside[left] |= curve.distance(there) <= slack
            left = left[~inside[left]]
        return inside

    def level(self, points, numpy: ModuleType = np):
        """Positive inside, negative outside, [n] at [n, dim]; on JAX arrays too."""
        i, j = self.columns
        return self.solid.level(points[:, i], points[:, j], numpy)
