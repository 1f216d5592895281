"""The modified multilayer perceptron: every layer is gated by two encoders.

    U = s(W_U x + b_U),  V = s(W_V x + b_V),  Z = s(W h + b),  h <- Z U + (1 - Z) V

(Wang, Teng and Perdikaris, 2021). The products of units let a shallow network turn
sharp corners; a layer costs about 1.5 times that of a plain one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import Channels, activate, mapped, product, total
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import Layer, make_layers, scaled


class ModifiedMLP(AbstractNetwork):
    """Input features, two encoders U and V, gated hidden layers, an output layer.

    - `scales`: the size of each output; fixed.
    """

    features: InputFeatures = eqx.field(static=True)
    encoders: tuple[Layer, Layer]
    layers: tuple[Layer, ...]
    activation: str = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        x, s = self.features(point), activation(self.activation)
        u, v = (s(encoder(x)) for encoder in self.encoders)
        for layer in self.layers[:-1]:
            x = v + s(layer(x)) * (u - v)
        return self.layers[-1](x) * jnp.asarray(self.scales, x.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        channels = self.features.propagate(channels)
        u, v = (activate(self.activation, e.propagate(channels)) for e in self.encoders)
        difference = total(u, mapped(jnp.negative, v))
        for layer in self.layers[:-1]:
            gate = activate(self.activation, layer.propagate(channels))
            channels = total(v, product(gate, difference))
        return scaled(self.layers[-1].propagate(channels), self.scales)


def make_modified_mlp(
    key: PRNGKeyArray,
    features: InputFeatures,
    sizes: tuple[int, ...],
    activation: str,
    factorized: bool,
    scales: tuple[float, ...],
) -> ModifiedMLP:
    """`sizes`: units in each hidden layer, all the same, then the outputs."""
    first, second, rest = jax.random.split(key, 3)
    ends = (features.count, sizes[0])
    (u,), (v,) = (
        make_layers(k, ends, activation, factorized=factorized) for k in (first, second)
    )
    every = (features.count, *sizes)
    layers = make_layers(rest, every, activation, factorized=factorized)
    return ModifiedMLP(features, (u, v), layers, activation, scales)
