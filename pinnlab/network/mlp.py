"""Multilayer perceptrons, plain or with factorized weights, alone or side by side."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import Channels, activate, linear
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures


class Layer(eqx.Module):
    """An affine layer. With `log_scale`, row i of the weight is times exp(log_scale_i)
    (random weight factorization; Wang et al., 2022)."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]
    log_scale: Float[Array, " out"] | None = None

    @property
    def matrix(self) -> Float[Array, "out in"]:
        """The weight as it acts."""
        if self.log_scale is None:
            return self.weight
        return jnp.exp(self.log_scale)[:, None] * self.weight

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The layer at one input."""
        return x @ self.matrix.T + self.bias

    def propagate(self, channels: Channels) -> Channels:
        """The layer on jets."""
        return linear(channels, self.matrix, self.bias)


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
        found = self.layers[-1].propagate(channels)
        return {
            o: None if v is None else v * jnp.asarray(self.scales, v.dtype)
            for o, v in found.items()
        }


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
