"""What every network can do."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from pinnlab.equation.jets import Channels


class AbstractNetwork(eqx.Module):
    """A function from a point to the fields' raw values.

    Trainable numbers are array leaves; everything else is static.
    """

    @abstractmethod
    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point; any JAX derivative may be taken of it."""

    @abstractmethod
    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values from the jets of the point."""
