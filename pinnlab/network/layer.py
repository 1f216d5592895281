"""Affine layers, and the distribution of their first weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.jets import Channels, linear


SINE_FREQUENCY = 3.0
"""First-layer weights of sine networks are uniform up to this frequency."""

GAINS = {"gelu": 1.5, "swish": 1.7}
"""What keeps the units' size from layer to layer: 1 / RMS of s(z) for normal z."""


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


def make_layer(
    key: PRNGKeyArray,
    inputs: int,
    outputs: int,
    activation: str,
    *,
    first: bool = False,
    factorized: bool = False,
    frequency: float = SINE_FREQUENCY,
) -> Layer:
    """Glorot weights times the activation's gain, small random biases.

    Sine: weights of size 1/sqrt(inputs), in the first layer up to `frequency`, and
    uniform phases (Sitzmann et al., 2020, with lower frequencies).
    """
    weight_key, bias_key, scale_key = jax.random.split(key, 3)
    shape = (outputs, inputs)
    bias: Array
    if activation == "sin":
        bound = frequency if first else (6 / inputs) ** 0.5 / 2
        weight = jax.random.uniform(weight_key, shape, minval=-bound, maxval=bound)
        bias = jax.random.uniform(bias_key, (outputs,), minval=-np.pi, maxval=np.pi)
    else:
        size = GAINS.get(activation, 1.0) * (2 / (inputs + outputs)) ** 0.5
        weight = size * jax.random.normal(weight_key, shape)
        bias = 0.1 * jax.random.normal(bias_key, (outputs,))
    if not factorized:
        return Layer(weight, bias)
    log_scale = 0.5 + 0.1 * jax.random.normal(scale_key, (outputs,))
    return Layer(weight / jnp.exp(log_scale)[:, None], bias, log_scale)


def make_layers(
    key: PRNGKeyArray,
    sizes: tuple[int, ...],
    activation: str,
    *,
    factorized: bool = False,
) -> tuple[Layer, ...]:
    """Layers one after another, from `sizes[0]` inputs to `sizes[-1]` outputs."""
    return tuple(
        make_layer(
            k, sizes[i], sizes[i + 1], activation, first=i == 0, factorized=factorized
        )
        for i, k in enumerate(jax.random.split(key, len(sizes) - 1))
    )


def scaled(channels: Channels, scales: tuple[float, ...]) -> Channels:
    """Each output times its fixed size."""
    return {
        o: None if v is None else v * jnp.asarray(scales, v.dtype)
        for o, v in channels.items()
    }
