"""Sums of networks, and networks that are others on each piece of the domain."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from pinnlab.equation.jets import Channels
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.corners import blank_corners
from pinnlab.network.plane import blank_plane


class Sum(AbstractNetwork):
    """The sum of networks."""

    networks: tuple[AbstractNetwork, ...]

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        found = [n(point) for n in self.networks]
        return sum(found[1:], start=found[0])

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the sum."""
        parts = [n.propagate(channels) for n in self.networks]
        return {o: _total([p[o] for p in parts]) for o in channels}


def _total(parts: list[Array | None]) -> Array | None:
    found = [p for p in parts if p is not None]
    return sum(found[1:], start=found[0]) if found else None


class Piecewise(AbstractNetwork):
    """Another network on each piece of one coordinate.

    - `network`: networks of one structure; every array has a first axis for the pieces.
    - `edges`: where the pieces meet, increasing; an edge belongs to the piece below it.
    - `axis`: the coordinate's index.
    """

    network: AbstractNetwork
    edges: Float[Array, " pieces-1"]
    axis: Int[Array, ""]

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        return self._each(lambda n: n(point))[self._piece(point)]

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values; `channels` are those of the point itself."""
        point = channels[(0,) * len(next(iter(channels)))]
        assert point is not None
        piece = self._piece(point)
        every = self._each(lambda n: n.propagate(channels))
        return {o: None if v is None else v[piece] for o, v in every.items()}

    def _each(self, apply: Callable[[AbstractNetwork], PyTree]) -> PyTree:
        arrays, static = eqx.partition(self.network, eqx.is_array)
        return jax.vmap(lambda a: apply(eqx.combine(a, static)))(arrays)

    def _piece(self, point: Float[Array, " dim"]) -> Array:
        return jnp.sum(point[self.axis] > self.edges.astype(point.dtype))


def stacked(networks: list[AbstractNetwork]) -> AbstractNetwork:
    """Networks of one structure as one, whose arrays have a first axis for them."""
    join = lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0]
    return jax.tree.map(join, *networks)


def blank_pieces(
    smooth: AbstractNetwork,
    dim: int,
    outputs: int,
    time: int | None,
    around: bool = False,
) -> Piecewise:
    """One piece: a network and, in two coordinates, corners of no functions.

    **Arguments:**

    - `time`: the coordinate of first order of a heat equation, None for Laplace's.
    - `around`: with functions around points of the plane, of which there are none yet.
    """
    networks: tuple[AbstractNetwork, ...] = (smooth,)
    if dim == 2:
        networks = (smooth, blank_corners(outputs, time))
    if around:
        networks = (*networks, blank_plane(outputs))
    return Piecewise(stacked([Sum(networks)]), jnp.zeros(0), jnp.asarray(0))
