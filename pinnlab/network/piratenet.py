"""PirateNets: gated residual blocks that are the identity at first.

    U = s(W_U x + b_U),  V = s(W_V x + b_V)       of the input features x
    f = s(W_1 h + b_1),       z = f U + (1 - f) V
    g = s(W_2 z + b_2),       z = g U + (1 - g) V
    h <- alpha s(W_3 z + b_3) + (1 - alpha) h     with trained alpha, 0 at first

(Wang, Li, Chen and Perdikaris, 2024). So training begins with a linear combination of
the features, for which random Fourier features are a good choice, and a network that
is deep becomes so only where it helps. A block counts as three layers.
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


class ResidualBlock(eqx.Module):
    """Three layers and the weight `alpha` of what they add."""

    layers: tuple[Layer, Layer, Layer]
    alpha: Float[Array, ""]


class PirateNet(AbstractNetwork):
    """Input features, two encoders U and V, residual blocks, an output layer.

    - `scales`: the size of each output; fixed.
    """

    features: InputFeatures = eqx.field(static=True)
    encoders: tuple[Layer, Layer]
    blocks: tuple[ResidualBlock, ...]
    last: Layer
    activation: str = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        x, s = self.features(point), activation(self.activation)
        u, v = (s(encoder(x)) for encoder in self.encoders)
        for block in self.blocks:
            z = x
            for layer in block.layers[:2]:
                z = v + s(layer(z)) * (u - v)
            x = x + block.alpha * (s(block.layers[2](z)) - x)
        return self.last(x) * jnp.asarray(self.scales, x.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        x, name = self.features.propagate(channels), self.activation
        u, v = (activate(name, encoder.propagate(x)) for encoder in self.encoders)
        difference = total(u, mapped(jnp.negative, v))
        for block in self.blocks:
            z = x
            for layer in block.layers[:2]:
                gate = activate(name, layer.propagate(z))
                z = total(v, product(gate, difference))
            new = activate(name, block.layers[2].propagate(z))
            x = total(
                mapped(lambda c, a=block.alpha: a * c, new),
                mapped(lambda c, a=block.alpha: (1 - a) * c, x),
            )
        return scaled(self.last.propagate(x), self.scales)


def make_piratenet(
    key: PRNGKeyArray,
    features: InputFeatures,
    sizes: tuple[int, ...],
    activation: str,
    factorized: bool,
    scales: tuple[float, ...],
) -> PirateNet:
    """`sizes`: units inside each block, all the same, then the outputs."""
    first, second, last, *keys = jax.random.split(key, len(sizes) + 2)
    count, width = features.count, sizes[0]
    ends, inner = (count, width), (count, width, width, count)
    (u,), (v,) = (
        make_layers(k, ends, activation, factorized=factorized) for k in (first, second)
    )
    blocks = []
    for k in keys:
        a, b, c = make_layers(k, inner, activation, factorized=factorized)
        blocks.append(ResidualBlock((a, b, c), jnp.zeros(())))
    (out,) = make_layers(last, (count, sizes[-1]), activation, factorized=factorized)
    return PirateNet(features, (u, v), tuple(blocks), out, activation, scales)
