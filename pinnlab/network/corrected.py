"""A network with a second one that corrects it (multi-stage training; Wang and Lai,
2024)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from pinnlab.equation.jets import Channels, mapped, total
from pinnlab.network.base import AbstractNetwork


class Corrected(AbstractNetwork):
    """`base` plus `size` times `correction`; the correction alone is trained.

    What is left to learn is small, and of size 1 for the correction.
    """

    base: AbstractNetwork
    correction: AbstractNetwork
    size: Float[Array, " out"]

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        found = self.correction(point)
        return self.base(point) + jnp.asarray(self.size, found.dtype) * found

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        scaled = lambda v: v * jnp.asarray(self.size, v.dtype)
        correction = mapped(scaled, self.correction.propagate(channels))
        return total(self.base.propagate(channels), correction)

    def trainable(self) -> PyTree[bool]:
        """Which leaves training changes."""
        found = jax.tree.map(lambda leaf: False, self)
        own = jax.tree.map(eqx.is_inexact_array, self.correction)
        return eqx.tree_at(lambda n: n.correction, found, own)
