"""Separable networks: products of functions of one coordinate, in slabs of one of them.

    u_f(x) = sum over n of C[slab, f, n_1, .., n_d] product_i phi_(n_i)(x_i)

One layer of fixed features (Chebyshev polynomials and harmonics) whose output weights
are the only numbers; SPINN (Cho et al., 2023) learns the features too. Within a slab of
the marching coordinate the polynomials are those of the slab.
"""

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

    def slab(self, which: int) -> "Separable":
        """The same function in one slab: a network with that slab alone."""
        return eqx.tree_at(
            lambda n: (n.coefficients, n.edges),
            self,
            (self.coefficients[which, None], self.edges[which : which + 2]),
        )

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
