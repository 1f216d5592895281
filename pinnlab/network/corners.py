"""Networks of singular functions at corners, whose weights are their only numbers."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pinnlab.equation.jets import Channels
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.singular import heat_functions, laplace_functions


class AbstractExpansion(AbstractNetwork):
    """A sum of functions of two coordinates all of whose derivatives are known."""

    @abstractmethod
    def derivative(
        self, point: Float[Array, " 2"], orders: tuple[int, ...]
    ) -> Float[Array, " out"]:
        """A derivative of the values."""

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        return self.derivative(point, (0, 0))

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values; `channels` are those of the point itself."""
        point = channels[(0, 0)]
        assert point is not None
        return {orders: self.derivative(point, orders) for orders in channels}


class AbstractCorners(AbstractExpansion):
    """Singular functions around points of two coordinates, and their weights.

    - `places`: the points, [corners, 2].
    - `slopes`: the scaled coordinates are slopes * (point - place), [corners, 2].
    - `powers`: which functions, [functions, .], integers.
    - `coefficients`: [corners, outputs, functions (or twice as many)].
    """

    places: eqx.AbstractVar[Float[Array, "corners 2"]]
    slopes: eqx.AbstractVar[Float[Array, "corners 2"]]
    powers: eqx.AbstractVar[Int[Array, "functions columns"]]
    coefficients: eqx.AbstractVar[Float[Array, "corners outputs columns"]]

    @abstractmethod
    def functions(
        self, local: Float[Array, "corners 2"], orders: tuple[int, ...]
    ) -> Float[Array, "corners columns"]:
        """Derivatives, by the scaled coordinates, of all functions."""

    def derivative(
        self, point: Float[Array, " 2"], orders: tuple[int, ...]
    ) -> Float[Array, " out"]:
        """A derivative of the values."""
        found = self.functions(self.slopes * (point - self.places), orders)
        scale = jnp.prod(self.slopes ** jnp.asarray(orders), axis=1)
        return jnp.einsum("cos,cs,c->o", self.coefficients, found, scale)


class HeatCorners(AbstractCorners):
    """`heat_functions`; `time` is the coordinate of first order."""

    places: Float[Array, "corners 2"]
    slopes: Float[Array, "corners 2"]
    powers: Int[Array, "functions 2"]
    coefficients: Float[Array, "corners outputs functions"]
    time: int = eqx.field(static=True)

    def functions(
        self, local: Float[Array, "corners 2"], orders: tuple[int, ...]
    ) -> Float[Array, "corners functions"]:
        """Derivatives of every t^j F_k."""
        t, x = self.time, 1 - self.time
        ordered = jnp.stack([local[:, t], local[:, x]], axis=1)
        return heat_functions(ordered, self.powers, (orders[t], orders[x]), jnp)


class LaplaceCorners(AbstractCorners):
    """`laplace_functions`."""

    places: Float[Array, "corners 2"]
    slopes: Float[Array, "corners 2"]
    powers: Int[Array, "functions 3"]
    coefficients: Float[Array, "corners outputs 2*functions"]

    def functions(
        self, local: Float[Array, "corners 2"], orders: tuple[int, ...]
    ) -> Float[Array, "corners 2*functions"]:
        """Derivatives of the parts of every z^k conj(z)^j log(z)^m."""
        return laplace_functions(local, self.powers, (orders[0], orders[1]), jnp)


def blank_corners(outputs: int, time: int | None) -> HeatCorners | LaplaceCorners:
    """No corners; `time` is the coordinate of first order, None for Laplace's."""
    places, none = jnp.zeros((0, 2)), jnp.zeros((0, outputs, 0))
    powers = jnp.zeros((0, 3 if time is None else 2), int)
    if time is None:
        return LaplaceCorners(places, places, powers, none)
    return HeatCorners(places, places, powers, none, time)
