"""A network from settings: sizes, features and the distribution of first weights."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pinnlab.network.base import AbstractNetwork
from pinnlab.network.features import InputFeatures
from pinnlab.network.mlp import MLP, Layer, Parallel


SINE_FREQUENCY = 3.0
"""First-layer weights of sine networks are uniform up to this frequency."""

GAINS = {"gelu": 1.5, "swish": 1.7}
"""What keeps the units' size from layer to layer: 1 / RMS of s(z) for normal z."""


def make_network(
    *,
    key: PRNGKeyArray,
    lower: tuple[float, ...],
    upper: tuple[float, ...],
    outputs: int,
    width: int,
    depth: int,
    activation: str = "tanh",
    periodic: tuple[int, ...] = (),
    harmonics: int = 1,
    fourier: int = 0,
    fourier_scale: float = 1.0,
    factorized: bool = False,
    separate: bool = False,
    scales: tuple[float, ...] = (),
) -> AbstractNetwork:
    """A multilayer perceptron, or one for each output.

    **Arguments:**

    - `lower`, `upper`: the box that is scaled to [-1, 1].
    - `width`, `depth`: units in a hidden layer, hidden layers.
    - `periodic`: coordinates in which the network is exactly periodic.
    - `fourier`: random Fourier features, with frequencies of size `fourier_scale`.
    - `factorized`: random weight factorization (Wang et al., 2022).
    - `separate`: one network for each output.
    - `scales`: the size of each output, 1 if empty.
    """
    scales = scales or (1.0,) * outputs
    if separate and outputs > 1:
        keys = jax.random.split(key, outputs)
        return Parallel(
            tuple(
                make_network(
                    key=k, lower=lower, upper=upper, outputs=1, width=width,
                    depth=depth, activation=activation, periodic=periodic,
                    harmonics=harmonics, fourier=fourier, fourier_scale=fourier_scale,
                    factorized=factorized, scales=(s,),
                )
                for k, s in zip(keys, scales, strict=True)
            )
        )  # fmt: skip
    key, wave_key = jax.random.split(key)
    waves = _waves(wave_key, fourier, len(lower) - len(periodic), fourier_scale)
    features = InputFeatures(lower, upper, periodic, harmonics, waves)
    sizes = (features.count, *(width,) * depth, outputs)
    layers = tuple(
        _layer(k, sizes[i], sizes[i + 1], activation, i == 0, factorized)
        for i, k in enumerate(jax.random.split(key, len(sizes) - 1))
    )
    return MLP(features, layers, activation, tuple(scales))


def _waves(
    key: PRNGKeyArray, count: int, dim: int, scale: float
) -> tuple[tuple[float, ...], ...]:
    if not count or not dim:
        return ()
    first, second = jax.random.split(key)
    frequencies = scale * jax.random.normal(first, (count, dim))
    phases = jax.random.uniform(second, (count, 1), maxval=2 * jnp.pi)
    rows = np.concatenate([np.asarray(frequencies), np.asarray(phases)], axis=1)
    return tuple(tuple(float(v) for v in row) for row in rows)


def _layer(
    key: PRNGKeyArray,
    inputs: int,
    outputs: int,
    activation: str,
    first: bool,
    factorized: bool,
) -> Layer:
    """Glorot weights times the activation's gain, small random biases.

    Sine: weights of size 1/sqrt(inputs) and uniform phases (Sitzmann et al., 2020,
    with lower frequencies).
    """
    weight_key, bias_key, scale_key = jax.random.split(key, 3)
    shape = (outputs, inputs)
    bias: Array
    if activation == "sin":
        bound = SINE_FREQUENCY if first else (6 / inputs) ** 0.5 / 2
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
