"""Separable networks: products of functions of one coordinate, in slabs of one of them.

    u_f(x) = sum over n of C[slab, f, n_1, .., n_d] product_i phi_(n_i)(x_i)

One layer of fixed features (Chebyshev polynomials and harmonics) whose output weights
are the only numbers; SPINN (Cho et al., 2023) learns the features too. Within a slab of
the marching coordinate the polynomials are those of the slab.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.jets import Channels
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.basis import chebyshev, harmonics


FEW = 32
"""So many slabs are all evaluated at every point of a batch, by one product of
matrices: that is faster than to copy for each point the numbers of its slab."""

GRID = 4
"""A grid may have so many times more points than are asked for."""


class Separable(AbstractNetwork):
    """A network of separable features.

    - `coefficients`: [slabs, outputs, modes...], a mode axis for each coordinate.
    - `edges`: where slabs begin and end along the coordinate `march`.
    - `lower`, `upper`: the box; `periodic`: indices of periodic coordinates.
    """

    coefficients: Float[Array, "slabs outputs ..."]
    edges: Float[Array, " slabs+1"]
    march: int = eqx.field(static=True)
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    periodic: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        slab = self._slab(point)
        return self._derivative(point, slab, (0,) * len(self.lower))

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values; `channels` are those of the point itself."""
        point = channels[(0,) * len(self.lower)]
        assert point is not None
        slab = self._slab(point)
        return {orders: self._derivative(point, slab, orders) for orders in channels}

    def slabs_of(self, points: np.ndarray) -> np.ndarray:
        """The slab of each of the points [n, dim]."""
        inner = np.asarray(self.edges[1:-1])
        return np.sum(points[:, self.march, None] > inner, axis=1)

    def derivative(
        self, points: Float[np.ndarray, "n dim"], output: int, orders: tuple[int, ...]
    ) -> Float[np.ndarray, " n"]:
        """A partial derivative at many points, in NumPy: nothing is compiled."""
        slabs = self.slabs_of(points)
        found = np.zeros(len(points))
        for slab in np.unique(slabs):
            here = slabs == slab
            found[here] = self._in_slab(int(slab), points[here], output, orders)
        return found

    def _in_slab(
        self, slab: int, points: np.ndarray, output: int, orders: tuple[int, ...]
    ) -> np.ndarray:
        lower, upper = np.array(self.lower), np.array(self.upper)
        lower[self.march], upper[self.march] = self.edges[slab : slab + 2]
        slopes = 2 / (upper - lower)
        columns = ((2 * points - upper - lower) / (upper - lower)).T
        # Points of a grid share their coordinates: a value is computed once for each.
        lines = [np.unique(z, return_inverse=True) for z in columns]
        is_grid = math.prod(len(line) for line, _ in lines) <= GRID * len(points)
        found = np.asarray(self.coefficients[slab, output])
        for i in reversed(range(len(orders))):
            family = harmonics if i in self.periodic else chebyshev
            z = lines[i][0] if is_grid else columns[i]
            row = family(z, found.shape[i], orders[i]) * slopes[i] ** orders[i]
            if is_grid or i == len(orders) - 1:
                # [modes of those before i, points, the points of those after]
                found = np.moveaxis(np.tensordot(found, row, (i, 1)), -1, i)
            else:
                found = np.einsum("...mn,nm->...n", found, row)
        return found[tuple(at for _, at in lines)] if is_grid else found

    def _slab(self, point: Float[Array, " dim"]) -> Array:
        inner = jnp.asarray(self.edges[1:-1], point.dtype)
        return jnp.sum(point[self.march] > inner).astype(int)

    def _derivative(
        self, point: Float[Array, " dim"], slab: Array, orders: tuple[int, ...]
    ) -> Float[Array, " out"]:
        # [slabs, outputs, modes...], the marching coordinate's first.
        found = jnp.moveaxis(self.coefficients, 2 + self.march, 2)
        few = len(found) <= FEW
        found = found if few else found[slab]
        others = [i for i in range(len(orders)) if i != self.march]
        for i in reversed(others):
            row, slope = self._functions(point, slab, i, orders[i], found.shape[-1])
            found = (found @ row.astype(found.dtype)) * slope ** orders[i]
        found = found[slab] if few else found
        order = orders[self.march]
        row, slope = self._functions(point, slab, self.march, order, found.shape[-1])
        return (found @ row.astype(found.dtype)) * slope**order

    def _functions(
        self, point: Float[Array, " dim"], slab: Array, i: int, order: int, count: int
    ) -> tuple[Array, Array | float]:
        """The functions of coordinate i at the point, and the slope of its scaling."""
        if i == self.march:
            lower, upper = self.edges[slab], self.edges[slab + 1]
        else:
            lower, upper = self.lower[i], self.upper[i]
        z = (2 * point[i] - upper - lower) / (upper - lower)
        family = harmonics if i in self.periodic else chebyshev
        return family(z, count, order, jnp), 2 / (upper - lower)


def blank_separable(
    lower: tuple[float, ...],
    upper: tuple[float, ...],
    periodic: tuple[int, ...],
    outputs: int,
    modes: tuple[int, ...],
    slabs: int,
    march: int,
) -> Separable:
    """A separable network of zeros with equal slabs."""
    edges = jnp.linspace(lower[march], upper[march], slabs + 1)
    coefficients = jnp.zeros((slabs, outputs, *modes))
    return Separable(coefficients, edges, march, lower, upper, periodic)
