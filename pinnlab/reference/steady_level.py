"""A solution at one resolution, and how it compares with the one before."""

from dataclasses import dataclass

import numpy as np

from pinnlab.reference.steady_basis import Expansion
from pinnlab.reference.steady_check import comparison_points, relative_difference
from pinnlab.reference.steady_statements import Posed


CONTRADICTION = 1e-3
"""What may be left of a condition, relative to the unknowns."""
ROUNDING = 2e-14
"""The smallest error that is stated."""


@dataclass(frozen=True, eq=False)
class Level:
    """A solved resolution.

    - `values`: the fields on the grid of comparison; `differences` to the level before.
    - `left`: what is left of the rows, relative; `worst` names the worst row.
    """

    expansion: Expansion
    values: np.ndarray
    differences: np.ndarray
    left: float
    worst: str
    seconds: float

    @property
    def errors(self) -> np.ndarray:
        """The error that is stated for each field."""
        return np.maximum(self.differences, max(self.left, ROUNDING))

    @property
    def is_contradiction(self) -> bool:
        """Whether the rows are not satisfied though the solution has settled."""
        return self.left > max(CONTRADICTION, 10 * float(self.differences.max()))

    @property
    def label(self) -> str:
        """The resolution for people."""
        spaces = self.expansion.spaces.values()
        meshes = {len(s.cuts[0]) + 1 for s in spaces}
        if max(meshes) > 1 and all(len(s.shape) == 1 for s in spaces):
            size = max(s.size for s in spaces)
            return f"{size} on {max(meshes)} elements"
        shapes = {s.shape for s in spaces}
        return ", ".join("x".join(map(str, s)) for s in sorted(shapes, reverse=True))

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return sum(s.size for s in self.expansion.spaces.values())


def solved_level(
    posed: Posed,
    expansion: Expansion,
    coarser: Level | None,
    left: float,
    worst: str,
    seconds: float,
) -> Level:
    """A solution and its difference to a coarser one, infinite where there is none."""
    values = expansion.values(comparison_points(posed.problem))
    if coarser is None:
        differences = np.full(values.shape[1], np.inf)
    else:
        differences = relative_difference(coarser.values, values)
    return Level(expansion, values, differences, left, worst, seconds)
