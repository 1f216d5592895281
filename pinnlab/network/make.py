"""A network from settings: its kind, sizes and input features."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from pinnlab.network.base import AbstractNetwork
from pinnlab.network.fbpinn import make_fbpinn
from pinnlab.network.features import InputFeatures
from pinnlab.network.kan import make_kan
from pinnlab.network.layer import make_layers
from pinnlab.network.mlp import MLP, Parallel
from pinnlab.network.modified_mlp import make_modified_mlp
from pinnlab.network.piratenet import make_piratenet
from pinnlab.network.siren import make_siren
from pinnlab.network.spinn import make_spinn


KINDS = ("mlp", "modified_mlp", "piratenet", "siren", "kan", "fbpinn", "spinn")


def make_network(
    *,
    key: PRNGKeyArray,
    lower: tuple[float, ...],
    upper: tuple[float, ...],
    outputs: int,
    width: int,
    depth: int,
    kind: str = "mlp",
    activation: str = "tanh",
    periodic: tuple[int, ...] = (),
    harmonics: int = 1,
    fourier: int = 0,
    fourier_scale: float = 1.0,
    factorized: bool = False,
    separate: bool = False,
    scales: tuple[float, ...] = (),
    frequency: float = 10.0,
    degree: int = 4,
    windows: tuple[int, ...] = (),
) -> AbstractNetwork:
    """A network of one of the `KINDS`, or one for each output.

    **Arguments:**

    - `lower`, `upper`: the box that is scaled to [-1, 1].
    - `width`, `depth`: units in a hidden layer, hidden layers (or blocks).
    - `activation`: ignored by "siren" (always sines) and "kan" (polynomials).
    - `periodic`: coordinates in which the network is exactly periodic.
    - `fourier`: random Fourier features, with frequencies of size `fourier_scale`.
    - `factorized`: random weight factorization (Wang et al., 2022); not for "siren"
        and "kan".
    - `separate`: one network for each output.
    - `scales`: the size of each output, 1 if empty.
    - `frequency`: the highest frequency of a "siren"'s first layer.
    - `degree`: of the polynomials of a "kan".
    - `windows`: of an "fbpinn", along each coordinate; 2 along each if empty.

    Raises `ValueError` for another kind.
    """
    scales = scales or (1.0,) * outputs
    if separate and outputs > 1:
        keys = jax.random.split(key, outputs)
        return Parallel(
            tuple(
                make_network(
                    key=k, lower=lower, upper=upper, outputs=1, width=width,
                    depth=depth, kind=kind, activation=activation, periodic=periodic,
                    harmonics=harmonics, fourier=fourier, fourier_scale=fourier_scale,
                    factorized=factorized, scales=(s,), frequency=frequency,
                    degree=degree, windows=windows,
                )
                for k, s in zip(keys, scales, strict=True)
            )
        )  # fmt: skip
    key, wave_key = jax.random.split(key)
    sizes = ((*(width,) * depth, outputs), activation, factorized, tuple(scales))
    if kind == "spinn":
        ways = jax.random.split(wave_key, len(lower))
        alone = tuple(
            InputFeatures(
                (lower[i],), (upper[i],), (0,) if i in periodic else (), harmonics,
                _waves(ways[i], fourier, int(i not in periodic), fourier_scale),
            )
            for i in range(len(lower))
        )  # fmt: skip
        return make_spinn(key, alone, *sizes)
    waves = _waves(wave_key, fourier, len(lower) - len(periodic), fourier_scale)
    features = InputFeatures(lower, upper, periodic, harmonics, waves)
    match kind:
        case "mlp":
            hidden, *_, scales = sizes
            every = (features.count, *hidden)
            layers = make_layers(key, every, activation, factorized=factorized)
            return MLP(features, layers, activation, scales)
        case "modified_mlp":
            return make_modified_mlp(key, features, *sizes)
        case "piratenet":
            return make_piratenet(key, features, *sizes)
        case "siren":
            return make_siren(key, features, sizes[0], frequency, sizes[-1])
        case "kan":
            return make_kan(key, features, sizes[0], degree, sizes[-1])
        case "fbpinn":
            ones = tuple(1 if i in periodic else 2 for i in range(len(lower)))
            return make_fbpinn(key, features, windows or ones, *sizes)
    raise ValueError(f"unknown kind of network '{kind}' (one of: {', '.join(KINDS)})")


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
