"""The points on which results are stored and errors measured."""

import numpy as np

from pinnlab.problem.problem import Problem
from pinnlab.sampling import sample
from pinnlab.system.terms import EVERYWHERE


GRID = {1: 1001, 2: 201, 3: 49}
CLOUD = 20_000


def grid_axes(problem: Problem) -> dict[str, np.ndarray]:
    """The grid of the result file by coordinate; above three, a list of points."""
    dim = len(problem.axes)
    if dim in GRID:
        return {a.name: np.linspace(a.lower, a.upper, GRID[dim]) for a in problem.axes}
    points = sample(problem, EVERYWHERE, CLOUD, seed=5)
    return {a.name: points[:, i] for i, a in enumerate(problem.axes)}


def grid_shape(axes: dict[str, np.ndarray]) -> tuple[int, ...]:
    """The shape of an array over the grid; above three coordinates, of a list."""
    sizes = tuple(len(v) for v in axes.values())
    return sizes if len(axes) in GRID else sizes[:1]


def grid_points(problem: Problem, axes: dict[str, np.ndarray]) -> np.ndarray:
    """All points of the grid, [n, dim], the last coordinate running fastest."""
    if len(axes) not in GRID:
        return np.stack(list(axes.values()), axis=1)
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)
