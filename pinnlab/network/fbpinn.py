"""Finite-basis networks: a small network for each of many overlapping windows.

    u(x) = sum over windows j of w_j(x) N_j((x - c_j) / h_j)

(Moseley, Markham and Nissen-Meyer, 2023). Each network sees its own window scaled to
[-1, 1], so high frequencies become low ones. The windows are products over coordinates
of differences of smooth steps, which add up to 1 exactly. Every network is evaluated at
every point: the cost grows with the number of windows.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import (
    Channels,
    activate,
    linear,
    mapped,
    product,
    shifted,
)
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import Layer, make_layers


STEEPNESS = 2.0
"""Of the steps: one goes from 2 % to 98 % within a window's width."""
REACH = 1.5
"""Half the width that a network sees, in half widths of its window."""


class FBPINN(AbstractNetwork):
    """Input features, and a network for each window of the coordinates among them.

    - `windows`: how many along each coordinate that is not periodic.
    - `layers`: those of all networks, stacked along a first axis.
    - `scales`: the size of each output; fixed.
    """

    features: InputFeatures = eqx.field(static=True)
    windows: tuple[int, ...] = eqx.field(static=True)
    layers: tuple[Layer, ...]
    activation: str = eqx.field(static=True)
    scales: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " out"]:
        """The values at a point."""
        features = self.features(point)
        dtype = features.dtype
        weight = jnp.ones(1, dtype)
        for i, count in enumerate(self.windows):
            first, second = _steps(count, dtype)
            step = activation("tanh")(first.matrix[:, 0] * features[i] + first.bias)
            weight = (weight[:, None] * second(step)).ravel()
        slope, shift = self._local(dtype)
        x = slope * features + shift
        for layer in self.layers[:-1]:
            x = activation(self.activation)(jax.vmap(Layer.__call__)(layer, x))
        values = jax.vmap(Layer.__call__)(self.layers[-1], x)
        return weight @ values * jnp.asarray(self.scales, dtype)

    def propagate(self, channels: Channels) -> Channels:
        """The jets of the values."""
        features = self.features.propagate(channels)
        value = features[(0,) * len(next(iter(features)))]
        assert value is not None
        weight = self._weights(features, value.dtype)
        slope, shift = self._local(value.dtype)
        x = shifted(mapped(lambda v: slope * v, features), shift)
        for layer in self.layers[:-1]:
            x = activate(self.activation, jax.vmap(Layer.propagate)(layer, x))
        values = jax.vmap(Layer.propagate)(self.layers[-1], x)
        every = product(mapped(lambda v: v[:, None], weight), values)
        scales = jnp.asarray(self.scales, value.dtype)
        return mapped(lambda v: jnp.sum(v, axis=0) * scales, every)

    def _weights(self, features: Channels, dtype: jnp.dtype) -> Channels:
        """The jets of all windows, the last coordinate's counting fastest."""
        weight: Channels = dict.fromkeys(features)
        weight[(0,) * len(next(iter(features)))] = jnp.ones(1, dtype)
        for i, count in enumerate(self.windows):
            first, second = _steps(count, dtype)
            z = mapped(lambda v, i=i: v[i : i + 1], features)
            step = activate("tanh", linear(z, first.matrix, first.bias))
            outer = product(
                mapped(lambda v: v[:, None], weight), second.propagate(step)
            )
            weight = mapped(jnp.ravel, outer)
        return weight

    def _local(
        self, dtype: jnp.dtype
    ) -> tuple[Float[Array, "windows in"], Float[Array, "windows in"]]:
        """Slope and shift from all features to those that each network sees."""
        slope = np.ones((math.prod(self.windows), self.features.count))
        shift = np.zeros_like(slope)
        for i, count in enumerate(self.windows):
            if count == 1:
                continue
            after = math.prod(self.windows[i + 1 :])
            number = np.arange(len(slope)) // after % count
            slope[:, i] = count / REACH
            shift[:, i] = -(2 * number + 1 - count) / REACH
        return jnp.asarray(slope, dtype), jnp.asarray(shift, dtype)


def _steps(count: int, dtype: jnp.dtype) -> tuple[Layer, Layer]:
    """The windows of one coordinate as two fixed layers with tanh between them.

    Between two windows is a step s = (1 + tanh)/2; window k is s_(k-1) - s_k, the first
    1 - s_0 and the last the last s.
    """
    edges = -1 + 2 * np.arange(1, count) / count
    slope = np.full((count - 1, 1), STEEPNESS * count)
    differences = np.eye(count, count - 1, -1) - np.eye(count, count - 1)
    one = np.zeros(count)
    one[0] = 1
    arrays = (
        (slope, -slope[:, 0] * edges),
        (differences / 2, one + differences.sum(axis=1) / 2),
    )
    first, second = (
        Layer(jnp.asarray(a, dtype), jnp.asarray(b, dtype)) for a, b in arrays
    )
    return first, second


def make_fbpinn(
    key: PRNGKeyArray,
    features: InputFeatures,
    windows: tuple[int, ...],
    sizes: tuple[int, ...],
    activation: str,
    factorized: bool,
    scales: tuple[float, ...],
) -> FBPINN:
    """`windows`: along each coordinate, 1 where it is periodic; `sizes`: units in the
    hidden layers of each network, then the outputs."""
    free = [n for i, n in enumerate(windows) if i not in features.periodic]
    every = (features.count, *sizes)
    parts = [
        make_layers(k, every, activation, factorized=factorized)
        for k in jax.random.split(key, math.prod(free))
    ]
    layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
    return FBPINN(features, tuple(free), layers, activation, scales)
