"""Spectral grids: nodes, quadrature, derivatives and interpolation on a box.

Fourier points in periodic directions, Chebyshev-Gauss-Lobatto points in the others
(Trefethen, 2000).
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


CHUNK = 4_000_000
"""Numbers held at once while scattered points are interpolated."""


@dataclass(frozen=True)
class Line:
    """The nodes of one coordinate.

    - `count`: the number of nodes; a periodic line leaves its upper end out.
    """

    name: str
    lower: float
    upper: float
    count: int
    periodic: bool = False

    @cached_property
    def nodes(self) -> Float[np.ndarray, " count"]:
        """Equispaced if periodic, else Chebyshev-Gauss-Lobatto; ascending."""
        if self.periodic:
            return self.lower + self.length * np.arange(self.count) / self.count
        last = self.count - 1
        unit = np.sin(np.pi * (2 * np.arange(self.count) - last) / (2 * last))
        return (self.lower + self.upper) / 2 + self.length / 2 * unit

    @property
    def length(self) -> float:
        """The length of the interval."""
        return self.upper - self.lower

    @cached_property
    def weights(self) -> Float[np.ndarray, " count"]:
        """Quadrature weights: trapezoidal if periodic, else Clenshaw-Curtis."""
        if self.periodic:
            return np.full(self.count, self.length / self.count)
        return self.length / 2 * _clenshaw_curtis(self.count)

    def matrix(self, order: int) -> Float[np.ndarray, "count count"]:
        """The dense matrix of the derivative of some order at the nodes."""
        return _matrix(self, order)

    def multipliers(self, order: int) -> np.ndarray:
        """(i k)^order for the wave numbers of a real transform of a periodic line.

        The highest of an even count has no odd derivative at the nodes.
        """
        k = 2 * np.pi / self.length * np.arange(self.count // 2 + 1)
        if order % 2 and self.count % 2 == 0:
            k[-1] = 0
        return (1j * k) ** order

    def interpolation(
        self, points: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, "m count"]:
        """The matrix from values at the nodes to values at points."""
        points = np.asarray(points, float)
        if self.periodic:
            return _trigonometric(self, points)
        return barycentric(self.nodes, _signs(self.count), points)


class Interpolating(Protocol):
    """One direction of a tensor grid: it can be interpolated along."""

    def interpolation(self, points: np.ndarray) -> np.ndarray:
        """The matrix from values at the nodes to values at points."""
        ...


@dataclass(frozen=True)
class Grid:
    """A tensor grid, one line for each coordinate."""

    lines: tuple[Line, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes in each direction."""
        return tuple(line.count for line in self.lines)

    @cached_property
    def points(self) -> Float[np.ndarray, "n dim"]:
        """All nodes, the last coordinate running fastest."""
        mesh = np.meshgrid(*(line.nodes for line in self.lines), indexing="ij")
        return np.reshape(mesh, (len(mesh), -1)).T if mesh else np.zeros((1, 0))

    @cached_property
    def weights(self) -> np.ndarray:
        """The quadrature weights of the nodes, of the grid's shape."""
        return reduce(np.multiply.outer, (line.weights for line in self.lines))

    def derivative(self, values: Array | np.ndarray, orders: tuple[int, ...]) -> Array:
        """The partial derivative of values [*batch, *shape], of the same shape.

        It is JAX code: compile it, and call it inside `jax.enable_x64`.
        """
        found = jnp.asarray(values)
        for i, (line, order) in enumerate(zip(self.lines, orders, strict=True)):
            if order:
                axis = found.ndim - len(self.lines) + i
                found = _derivative(line, found, axis, order)
        return found

    def interpolate(
        self, values: np.ndarray, points: Float[np.ndarray, "m dim"]
    ) -> np.ndarray:
        """Values at points, [*batch, m], of values [*batch, *shape]."""
        return interpolate(self.lines, values, points)


def interpolate(
    lines: tuple[Interpolating, ...],
    values: np.ndarray,
    points: Float[np.ndarray, "m dim"],
) -> np.ndarray:
    """Values [*batch, *shape] interpolated to points: [*batch, m].

    Points that (nearly) form a tensor grid are done line by line.
    """
    values, points = np.asarray(values), np.asarray(points, float)
    batch = values.shape[: values.ndim - len(lines)]
    flat = values.reshape(-1, *values.shape[len(batch) :])
    found = [np.unique(column, return_inverse=True) for column in points.T]
    if math.prod(len(unique) for unique, _ in found) <= 4 * len(points):
        matrices = [
            line.interpolation(unique)
            for line, (unique, _) in zip(lines, found, strict=True)
        ]
        places = tuple(place.ravel() for _, place in found)
        result = [_on_tensor(matrices, one)[places] for one in flat]
    else:
        result = [_scattered(lines, one, points) for one in flat]
    return np.stack(result).reshape(*batch, len(points))


def _on_tensor(matrices: list[np.ndarray], values: np.ndarray) -> np.ndarray:
    for axis, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return values


def _scattered(
    lines: tuple[Interpolating, ...], values: np.ndarray, points: np.ndarray
) -> np.ndarray:
    inner = math.prod(values.shape[1:])
    step = max(1, CHUNK // max(inner, *values.shape))
    found: list[np.ndarray] = []
    for start in range(0, len(points), step):
        part = points[start : start + step]
        rows = lines[0].interpolation(part[:, 0])
        current = (rows @ values.reshape(len(values), -1)).reshape(
            len(part), *values.shape[1:]
        )
        for i, line in enumerate(lines[1:], 1):
            current = np.einsum(
                "mj,mj...->m...", line.interpolation(part[:, i]), current
            )
        found.append(current)
    return np.concatenate(found) if found else np.zeros(0)


def barycentric(
    nodes: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    points: Float[np.ndarray, " m"],
) -> Float[np.ndarray, "m n"]:
    """The matrix of barycentric interpolation (Berrut and Trefethen, 2004)."""
    gaps = points[:, None] - nodes
    hit = gaps == 0
    matrix = weights / np.where(hit, 1.0, gaps)
    matrix /= matrix.sum(axis=1, keepdims=True)
    exact = hit.any(axis=1)
    matrix[exact] = hit[exact]
    return matrix


def _trigonometric(line: Line, points: np.ndarray) -> np.ndarray:
    """sin(n a)/(n tan(a)), or with a sine below for an odd count."""
    n = line.count
    a = np.pi / line.length * (points[:, None] - line.nodes)
    a -= np.pi * np.round(a / np.pi)
    below = np.tan(a) if n % 2 == 0 else np.sin(a)
    small = np.abs(a) < 1e-14
    # For an even count the numerator has the period pi, for an odd one its sign and
    # that of the sine cancel.
    return np.where(small, 1.0, np.sin(n * a) / (n * np.where(small, 1.0, below)))


def _signs(count: int) -> np.ndarray:
    """Barycentric weights of the Chebyshev-Gauss-Lobatto nodes."""
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    signs[[0, -1]] /= 2
    return signs


def _clenshaw_curtis(count: int) -> np.ndarray:
    last = count - 1
    theta = np.pi * np.arange(count) / last
    k = np.arange(1, last // 2 + 1)
    b = np.where(2 * k == last, 1.0, 2.0) / (4.0 * k**2 - 1)
    weights = 2 / last * (1 - np.cos(2 * np.outer(theta, k)) @ b)
    weights[[0, -1]] /= 2
    return weights


@lru_cache(maxsize=64)
def _matrix(line: Line, order: int) -> np.ndarray:
    if order == 0:
        return np.eye(line.count)
    if line.periodic:
        transform = np.fft.rfft(np.eye(line.count), axis=0)
        transform *= line.multipliers(order)[:, None]
        return np.fft.irfft(transform, line.count, axis=0)
    return _chebyshev(line.count, order) * (2 / line.length) ** order


def _chebyshev(count: int, order: int) -> np.ndarray:
    """Welfert's recursion (1997) on [-1, 1]; the diagonal is minus the row's sum.

    Differences of nodes are products of sines, which keeps their digits (Don and
    Solomonoff, 1995).
    """
    theta = np.pi * np.arange(count) / (count - 1)
    gaps = 2 * np.sin(np.add.outer(theta, theta) / 2)
    gaps *= np.sin(np.subtract.outer(theta, theta) / 2)
    np.fill_diagonal(gaps, 1.0)
    signs = _signs(count)
    ratio = signs / signs[:, None]
    matrix = np.eye(count)
    for k in range(1, order + 1):
        matrix = k / gaps * (ratio * np.diag(matrix)[:, None] - matrix)
        np.fill_diagonal(matrix, 0.0)
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def _derivative(line: Line, values: Array, axis: int, order: int) -> Array:
    if not line.periodic:
        moved = jnp.tensordot(line.matrix(order), values, (1, axis))
        return jnp.moveaxis(moved, 0, axis)
    shape = [1] * values.ndim
    shape[axis] = -1
    factors = line.multipliers(order).reshape(shape)
    transform = jnp.fft.rfft(values, axis=axis) * factors
    return jnp.fft.irfft(transform, line.count, axis=axis)
