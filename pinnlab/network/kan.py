"""Kolmogorov-Arnold networks of Chebyshev polynomials.

    y_o = b_o + sum over inputs i and degrees k = 1 .. K of c_oik T_k(tanh x_i)

Every edge has a function of its own (Liu et al., 2024), here a polynomial (SS et al.,
2024). A layer has K times the numbers of a plain one of the same width.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import Channels, activate, mapped, product, shifted, total
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import Layer, make_layers, scaled


class ChebyshevKAN(AbstractNetwork):
    """Input features and layers of polynomials of degree up to `degree`.

    - `layers`: affine maps of all polynomials of all inputs, degree after degree.
    - `scales`: the size of each output; fixed.
    """

    features: InputFeatures = eqx.field(static=True)
    layers: tuple[Layer, ...]
    degree: int = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        x = self.features(point)
        for layer in self.layers:
            z = activation("tanh")(x)
            rows = [z, 2 * z * z - 1]
            while len(rows) < self.degree:
                rows.append(2 * z * rows[-1] - rows[-2])
            x = layer(jnp.concatenate(rows[: self.degree]))
        return x * jnp.asarray(self.scales, x.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        channels = self.features.propagate(channels)
        for layer in self.layers:
            channels = layer.propagate(self._polynomials(channels))
        return scaled(channels, self.scales)

    def _polynomials(self, channels: Channels) -> Channels:
        z = activate("tanh", channels)
        twice = mapped(lambda v: 2 * v, z)
        rows = [z, shifted(product(twice, z), -1.0)]
        while len(rows) < self.degree:
            before = mapped(jnp.negative, rows[-2])
            rows.append(total(product(twice, rows[-1]), before))
        found: Channels = {}
        for orders in channels:
            # A channel of z that is zero is zero for all of its polynomials, but not
            # the other way round.
            parts = [r[orders] for r in rows[: self.degree]]
            like = next((p for p in parts if p is not None), None)
            found[orders] = (
                None
                if like is None
                else jnp.concatenate(
                    [jnp.zeros_like(like) if p is None else p for p in parts]
                )
            )
        return found


def make_kan(
    key: PRNGKeyArray,
    features: InputFeatures,
    sizes: tuple[int, ...],
    degree: int,
    scales: tuple[float, ...],
) -> ChebyshevKAN:
    """`sizes`: units in each hidden layer, then the outputs."""
    every = (features.count, *sizes)
    keys = jax.random.split(key, len(sizes))
    layers = tuple(
        make_layers(k, (degree * every[i], every[i + 1]), "tanh")[0]
        for i, k in enumerate(keys)
    )
    return ChebyshevKAN(features, layers, degree, scales)
