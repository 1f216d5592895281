"""A network times sizes that are arrays: what networks of other sizes can share."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from pinnlab.equation.jets import Channels
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.corrected import Corrected


class Scaled(AbstractNetwork):
    """`inner` times `scales`, which are fixed.

    The sizes of a plain network are constants of its compiled programs, and depend on
    its seed and on the problem's parameters; here they are arrays, so that one program
    serves all.
    """

    inner: AbstractNetwork
    scales: Float[Array, " out"]

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        found = self.inner(point)
        return found * jnp.asarray(self.scales, found.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        found = self.inner.propagate(channels)
        return {
            o: None if v is None else v * jnp.asarray(self.scales, v.dtype)
            for o, v in found.items()
        }


def trainable(network: AbstractNetwork) -> PyTree[bool]:
    """Which leaves of a network training changes."""
    if isinstance(network, Corrected):
        return network.trainable()
    found = jax.tree.map(eqx.is_inexact_array, network)
    if isinstance(found, Scaled):
        return eqx.tree_at(lambda n: n.scales, found, False)
    return found


def trained_numbers(network: AbstractNetwork) -> int:
    """How many numbers training has found."""
    if isinstance(network, Corrected):
        return trained_numbers(network.base) + trained_numbers(network.correction)
    arrays = eqx.filter(network, trainable(network))
    return sum(a.size for a in jax.tree.leaves(arrays))
