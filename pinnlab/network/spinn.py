"""Separable networks with learned factors.

    u_f(x) = sum over r of N_1(x_1)_rf ... N_d(x_d)_rf

(Cho et al., 2023): a network of one coordinate for each factor. Points are scattered
here, so its gain is the form of the solution and not the cost of a tensor grid.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.jets import Channels, mapped, product
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import make_layers, scaled
from pinnlab.network.mlp import MLP


class SPINN(AbstractNetwork):
    """The sum over `rank` products of `factors`, one for each coordinate.

    - `scales`: the size of each output; fixed.
    """

    factors: tuple[MLP, ...]
    rank: int = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        shape = (self.rank, len(self.scales))
        parts = [f(point[i : i + 1]) for i, f in enumerate(self.factors)]
        found = jnp.sum(math.prod(parts[1:], start=parts[0]).reshape(shape), axis=0)
        return found * jnp.asarray(self.scales, found.dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values; `channels` are those of the point itself."""
        parts = []
        for i, factor in enumerate(self.factors):
            # A factor has no derivatives along the other coordinates.
            own = {
                o: None if v is None or sum(o) != o[i] else v[i : i + 1]
                for o, v in channels.items()
            }
            parts.append(factor.propagate(own))
        every = parts[0]
        for part in parts[1:]:
            every = product(every, part)
        shape = (self.rank, len(self.scales))
        found = mapped(lambda v: jnp.sum(v.reshape(shape), axis=0), every)
        return scaled(found, self.scales)


def make_spinn(
    key: PRNGKeyArray,
    features: tuple[InputFeatures, ...],
    sizes: tuple[int, ...],
    activation: str,
    factorized: bool,
    scales: tuple[float, ...],
) -> SPINN:
    """`features`: of each coordinate alone; `sizes`: units in the hidden layers, the
    last of which is the rank too, then the outputs."""
    *hidden, outputs = sizes
    rank, count = hidden[-1], hidden[-1] * outputs
    factors = []
    keys = jax.random.split(key, len(features))
    for i, (k, own) in enumerate(zip(keys, features, strict=True)):
        every = (own.count, *hidden, count)
        layers = make_layers(k, every, activation, factorized=factorized)
        # The sum over the rank is as large as one product.
        size = rank**-0.5 if i == 0 else 1.0
        factors.append(MLP(own, layers, activation, (size,) * count))
    return SPINN(tuple(factors), rank, scales)
