"""Multilayer perceptrons, plain or with factorized weights, alone or side by side."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import Channels, activate
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import Layer, scaled


class MLP(AbstractNetwork):
    """Input features, hidden layers with an activation, an output layer, scales.

    - `scales`: the size of each output; fixed.
    """

    features: InputFeatures = eqx.field(static=True)
    layers: tuple[Layer, ...]
    activation: str = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        x = self.features(point)
        for layer in self.layers[:-1]:
            x = activation(self.activation)(layer(x))
        return self.layers[-1](x) * jnp.asarray(self.scales, x.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        channels = self.features.propagate(channels)
        for layer in self.layers[:-1]:
            channels = activate(self.activation, layer.propagate(channels))
        return scaled(self.layers[-1].propagate(channels), self.scales)


class Parallel(AbstractNetwork):
    """Networks side by side on the same point: one for each field."""

    networks: tuple[AbstractNetwork, ...]

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values of all networks."""
        return jnp.concatenate([n(point) for n in self.networks])

    def propagate(self, channels: Channels) -> Channels:
        """The jets of all networks."""
        parts = [n.propagate(channels) for n in self.networks]
        zero = parts[0][(0,) * len(next(iter(channels)))]
        assert zero is not None
        return {o: _stacked([p[o] for p in parts], zero) for o in channels}


def _stacked(parts: Sequence[Array | None], like: Array) -> Array | None:
    if all(p is None for p in parts):
        return None
    return jnp.concatenate([jnp.zeros_like(like) if p is None else p for p in parts])
