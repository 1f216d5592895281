"""SIREN: sine networks with the first weights of Sitzmann et al. (2020).

The first layer's weights are uniform up to omega_0 / inputs, all others' up to
sqrt(6 / inputs), so that every layer's angles are normal with variance one, and the
phases are uniform. The published factor omega_0 in front of every layer only rescales
its weights; here they are stored as they act.
"""

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from pinnlab.network.features import InputFeatures
from pinnlab.network.layer import Layer
from pinnlab.network.mlp import MLP


def make_siren(
    key: PRNGKeyArray,
    features: InputFeatures,
    sizes: tuple[int, ...],
    frequency: float,
    scales: tuple[float, ...],
) -> MLP:
    """`sizes`: units in each hidden layer, then the outputs; `frequency`: omega_0."""
    every = (features.count, *sizes)
    keys = jax.random.split(key, len(sizes))
    layers = []
    for i, k in enumerate(keys):
        inputs, outputs = every[i], every[i + 1]
        bound = frequency / inputs if i == 0 else (6 / inputs) ** 0.5
        weight_key, bias_key = jax.random.split(k)
        shape, phase = (outputs, inputs), jnp.pi if i < len(keys) - 1 else 0.0
        layers.append(
            Layer(
                jax.random.uniform(weight_key, shape, minval=-bound, maxval=bound),
                jax.random.uniform(bias_key, (outputs,), minval=-phase, maxval=phase),
            )
        )
    return MLP(features, tuple(layers), "sin", scales)
