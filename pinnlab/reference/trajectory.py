"""A marched solution: values at saved times on a grid of space, and in between."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float

from pinnlab.reference.grid import Line, barycentric, interpolate


DEGREE = 9


class Marched(Protocol):
    """A solution that was marched."""

    @property
    def values(self) -> np.ndarray:
        """[fields, times, ...]: finite where the march was."""
        ...

    def at(self, points: np.ndarray) -> np.ndarray:
        """The fields at points [m, dim] as [m, fields]."""
        ...

    def missed(self, points: np.ndarray) -> np.ndarray:
        """The part of the norm of the initial values that is lost, for each field."""
        ...


@dataclass(frozen=True, eq=False)
class Samples:
    """Ascending times; between them a polynomial through the nearest ten."""

    nodes: Float[np.ndarray, " count"]

    def interpolation(
        self, points: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, "m count"]:
        """The matrix from values at the nodes to values at points."""
        points = np.asarray(points, float)
        count = len(self.nodes)
        width = min(DEGREE + 1, count)
        first = np.searchsorted(self.nodes, points) - width // 2
        first = np.clip(first, 0, count - width)
        matrix = np.zeros((len(points), count))
        for start in np.unique(first):
            rows = np.flatnonzero(first == start)
            nodes = self.nodes[start : start + width]
            gaps = (nodes[:, None] - nodes) / (nodes[-1] - nodes[0])
            np.fill_diagonal(gaps, 1.0)
            weights = 1 / gaps.prod(axis=1)
            matrix[rows[:, None], np.arange(start, start + width)] = barycentric(
                nodes, weights, points[rows]
            )
        return matrix


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Fields at saved times on a grid.

    - `times`: ascending.
    - `lines`: those of space, in order.
    - `time`: the index of time among the coordinates.
    - `values`: [fields, times, *space].
    - `start`, `initial`: where it started, and the exact values there at points of
        space [n, space] as [fields, n].
    """

    times: Float[np.ndarray, " times"]
    lines: tuple[Line, ...]
    time: int
    values: np.ndarray
    start: float
    initial: Callable[[np.ndarray], np.ndarray]

    def missed(
        self, points: Float[np.ndarray, "m dim"]
    ) -> Float[np.ndarray, " fields"]:
        """The part of the norm of the initial values that the grid has lost."""
        places = np.unique(np.delete(points, self.time, axis=1), axis=0)
        first = np.argmin(np.abs(self.times - self.start))
        found = interpolate(self.lines, self.values[:, first], places)
        return lost(found, self.initial(places))

    def at(self, points: Float[np.ndarray, "m dim"]) -> Float[np.ndarray, "m fields"]:
        """The fields at points, coordinates in the problem's order."""
        samples = Samples(self.times)
        lines = (*self.lines[: self.time], samples, *self.lines[self.time :])
        values = np.moveaxis(self.values, 1, 1 + self.time)
        found = interpolate(lines, values, points)
        first = np.asarray(points)[:, self.time] == self.start
        if first.any():
            found[:, first] = self.initial(np.delete(points[first], self.time, axis=1))
        return found.T


def lost(
    found: Float[np.ndarray, "fields n"], given: Float[np.ndarray, "fields n"]
) -> Float[np.ndarray, " fields"]:
    """The part of the norm of what was given that is not found."""
    norms, all_of_it = (np.linalg.norm(a, axis=1) for a in (found, given))
    return (all_of_it - norms) / np.where(all_of_it > 0, all_of_it, np.inf)
