"""The points on which results are stored and errors measured."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from pinnlab.problem.problem import Problem
from pinnlab.sampling import sample
from pinnlab.system.terms import EVERYWHERE


GRID = {1: 1001, 2: 201, 3: 49}
CLOUD = 20_000


@dataclass(frozen=True)
class ResultGrid:
    """A uniform grid of a problem's domain; above three coordinates, scattered points.

    - `axes`: the coordinates' values, as in the result file.
    - `points`: those that belong to the domain, the last coordinate running fastest.
    - `inside`: which points of the grid these are; None where all are.
    """

    axes: dict[str, np.ndarray]
    points: Float[np.ndarray, "m dim"]
    inside: Bool[np.ndarray, "..."] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array over the grid; of a list where there is none."""
        sizes = tuple(len(v) for v in self.axes.values())
        return sizes if len(self.axes) in GRID else sizes[:1]

    def spread(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, "..."]:
        """Values at the points as an array over the grid, NaN outside the domain."""
        if self.inside is None:
            return values.reshape(self.shape)
        found = np.full(self.shape, np.nan)
        found[self.inside] = values
        return found


def result_grid(problem: Problem) -> ResultGrid:
    """The grid of a problem's result."""
    dim, names = len(problem.axes), [a.name for a in problem.axes]
    if dim not in GRID:
        points = sample(problem, EVERYWHERE, CLOUD, seed=5)
        return ResultGrid(dict(zip(names, points.T, strict=True)), points)
    lines = [np.linspace(a.lower, a.upper, GRID[dim]) for a in problem.axes]
    axes = dict(zip(names, lines, strict=True))
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([m.ravel() for m in mesh], axis=1)
    if problem.shape is None:
        return ResultGrid(axes, points)
    inside = problem.shape.contains(points)
    return ResultGrid(axes, points[inside], inside.reshape(mesh[0].shape))
