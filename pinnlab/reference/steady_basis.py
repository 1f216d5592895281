"""Functions of the coordinates: Chebyshev polynomials, Fourier modes, their products.

On a line, a polynomial is written through its m-th derivative, where m is the order of
the equation: then the equation acts on the unknowns as the identity plus integrals, and
the condition number does not grow with the resolution (Greengard, 1991). Products of
such functions are badly conditioned; with several coordinates m is 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev


BATCH = 4096
"""Points at which fields are evaluated together."""


@dataclass(frozen=True)
class Chebyshev:
    """Piecewise polynomials, `count` on each of the elements between `edges`.

    With xi in [-1, 1] on an element, its functions are xi^j / j! for j < m and the
    m-fold integral from 0 of T_{j-m}(xi) for j >= m; m is `integrations`.
    """

    edges: tuple[float, ...]
    count: int
    integrations: int

    @property
    def elements(self) -> int:
        """The number of elements."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """The number of functions."""
        return self.elements * self.count

    def matrix(self, points: np.ndarray, order: int) -> np.ndarray:
        """The functions' derivatives at [n] points, [n, size].

        A point on an edge belongs to the element on its right.
        """
        edges = np.asarray(self.edges)
        where = np.searchsorted(edges[1:-1], points, side="right")
        found = np.zeros((len(points), self.size))
        for i in range(self.elements):
            inside = where == i
            half = (edges[i + 1] - edges[i]) / 2
            xi = (points[inside] - (edges[i] + edges[i + 1]) / 2) / half
            values = chebyshev.chebvander(xi, self.count - 1) @ self._series(order)
            columns = slice(i * self.count, (i + 1) * self.count)
            found[inside, columns] = values / half**order
        return found

    def collocation(self, count: int) -> np.ndarray:
        """`count` Chebyshev points of the first kind on each element, ascending."""
        edges = np.asarray(self.edges)
        centers, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        return (centers[:, None] + halves[:, None] * _unit_points(count)).ravel()

    def prolong(self, coefficients: np.ndarray, finer: "Basis") -> np.ndarray:
        """The same function in a finer basis, along the first axis.

        The new elements are parts of the old ones.
        """
        assert isinstance(finer, Chebyshev)
        rest = coefficients.shape[1:]
        if self.edges == finer.edges:
            found = np.zeros((self.elements, finer.count, *rest))
            found[:, : self.count] = coefficients.reshape(-1, self.count, *rest)
            return found.reshape(finer.size, *rest)
        columns = coefficients.reshape(self.size, -1)
        edges, m = np.asarray(finer.edges), finer.integrations
        centers, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        count = finer.count - m
        values = self.matrix(finer.collocation(count), m) @ columns
        fit = np.linalg.inv(chebyshev.chebvander(_unit_points(count), count - 1))
        parts = [self.matrix(centers, j) @ columns for j in range(m)]
        found = np.empty((finer.elements, finer.count, columns.shape[1]))
        for j, part in enumerate(parts):
            found[:, j] = part * halves[:, None] ** j
        found[:, m:] = fit @ values.reshape(finer.elements, count, -1)
        found[:, m:] *= halves[:, None, None] ** m
        return found.reshape(finer.size, *rest)

    def tails(self, coefficients: np.ndarray) -> np.ndarray:
        """The last Chebyshev coefficients of [size] on each element, [elements]."""
        series = self._series(0) @ coefficients.reshape(self.elements, -1).T
        return np.abs(series[-3:]).max(axis=0)

    def from_chebyshev(self) -> np.ndarray:
        """The functions' coefficients of T_0, T_1, ... on one element, by column.

        A polynomial has the coefficients u(0), u'(0), ... and those of u^(m).
        """
        unit, m = np.eye(self.count), self.integrations
        middle = np.zeros(1)
        parts = [
            chebyshev.chebval(middle, chebyshev.chebder(unit, j)).T for j in range(m)
        ]
        return np.concatenate([*parts, chebyshev.chebder(unit, m)])

    @cached_property
    def _known(self) -> dict[int, np.ndarray]:
        return {}

    def _series(self, order: int) -> np.ndarray:
        """The Chebyshev coefficients of the functions' derivatives, by column."""
        if order not in self._known:
            self._known[order] = integrated(self.count, self.integrations, order)
        return self._known[order]


def _unit_points(count: int) -> np.ndarray:
    return -np.cos(np.pi * (np.arange(count) + 0.5) / count)


def integrated(count: int, integrations: int, order: int) -> np.ndarray:
    """Chebyshev series of the derivatives of the functions of one element.

    **Returns:** [count, count], a column for each function.
    """
    found = np.zeros((count, count))
    times = integrations - order
    for j in range(max(order, 0), integrations):
        power = np.zeros(j - order + 1)
        power[-1] = 1 / np.prod(np.arange(1, j - order + 1))
        found[: j - order + 1, j] = chebyshev.poly2cheb(power)
    highest = np.eye(count - integrations)
    if times >= 0:
        series = chebyshev.chebint(highest, times) if times else highest
    else:
        series = chebyshev.chebder(highest, -times)
    found[: len(series), integrations:] = series
    return found


@dataclass(frozen=True)
class Fourier:
    """1, cos, sin, cos 2, sin 2, ... of 2 pi (x - lower)/(upper - lower)."""

    lower: float
    upper: float
    count: int

    @property
    def size(self) -> int:
        """The number of functions, odd."""
        return self.count

    def matrix(self, points: np.ndarray, order: int) -> np.ndarray:
        """The functions' derivatives at [n] points, [n, size]."""
        rate = 2 * np.pi / (self.upper - self.lower)
        modes = np.arange(1, self.count // 2 + 1)
        angle = rate * np.outer(points - self.lower, modes) + order * np.pi / 2
        found = np.empty((len(points), self.count))
        found[:, 0] = order == 0
        found[:, 1::2] = np.cos(angle) * (rate * modes) ** order
        found[:, 2::2] = np.sin(angle) * (rate * modes) ** order
        return found

    def collocation(self, count: int) -> np.ndarray:
        """`count` equispaced points, the upper end left out."""
        return self.lower + (self.upper - self.lower) * np.arange(count) / count

    def prolong(self, coefficients: np.ndarray, finer: "Basis") -> np.ndarray:
        """The same function in a finer basis, along the first axis."""
        found = np.zeros((finer.count, *coefficients.shape[1:]))
        found[: self.count] = coefficients
        return found


Basis = Chebyshev | Fourier


@dataclass(frozen=True)
class Space:
    """Products of functions of the coordinates: what a field is sought in."""

    bases: tuple[Basis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of functions in each coordinate."""
        return tuple(b.size for b in self.bases)

    @property
    def size(self) -> int:
        """The number of products."""
        return int(np.prod(self.shape))

    @property
    def cuts(self) -> tuple[tuple[float, ...], ...]:
        """The edges between elements, for each coordinate."""
        return tuple(
            b.edges[1:-1] if isinstance(b, Chebyshev) else () for b in self.bases
        )

    def matrix(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """The products' derivatives at [n, dim] points, [n, size]."""
        found = np.ones((len(points), 1))
        for basis, column, order in zip(self.bases, points.T, orders, strict=True):
            factor = basis.matrix(column, order)
            found = (found[:, :, None] * factor[:, None, :]).reshape(len(points), -1)
        return found

    def values(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The function with [size] coefficients at [n, dim] points, [n]."""
        lines = zip(self.bases, points.T, strict=True)
        first, *others = (basis.matrix(column, 0) for basis, column in lines)
        found = first @ coefficients.reshape(first.shape[1], -1)
        for factor in others:
            inner = found.reshape(len(points), factor.shape[1], -1)
            found = np.einsum("nj,njk->nk", factor, inner)
        return found.ravel()

    def prolong(self, coefficients: np.ndarray, finer: "Space") -> np.ndarray:
        """The coefficients of the same function in a finer space."""
        tensor = coefficients.reshape(self.shape)
        for i, (old, new) in enumerate(zip(self.bases, finer.bases, strict=True)):
            moved = np.moveaxis(tensor, i, 0)
            moved = old.prolong(moved, new)
            tensor = np.moveaxis(moved, 0, i)
        return tensor.ravel()


@dataclass(frozen=True)
class Expansion:
    """Fields as coefficients in their spaces."""

    spaces: Mapping[str, Space]
    coefficients: Mapping[str, np.ndarray]

    def values(self, points: np.ndarray) -> np.ndarray:
        """The fields at [n, dim] points, [n, fields]."""
        found = np.empty((len(points), len(self.spaces)))
        for start in range(0, len(points), BATCH):
            part = slice(start, start + BATCH)
            for k, (field, space) in enumerate(self.spaces.items()):
                found[part, k] = space.values(self.coefficients[field], points[part])
        return found

    def prolong(self, finer: Mapping[str, Space]) -> np.ndarray:
        """The coefficients of the same fields in finer spaces, one after the other."""
        return np.concatenate(
            [s.prolong(self.coefficients[f], finer[f]) for f, s in self.spaces.items()]
        )
