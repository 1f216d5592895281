"""Input features: scaled coordinates, exactly periodic ones, random Fourier ones."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.activations import activation
from pinnlab.equation.jets import Channels, activate, linear


@dataclass(frozen=True)
class InputFeatures:
    """Features of the point; all numbers here are fixed, none is trained.

    - `lower`, `upper`: the box; a coordinate is scaled to [-1, 1].
    - `periodic`: indices of coordinates that enter only through sin and cos of
      `harmonics` multiples of 2 pi (x - lower) / (upper - lower).
    - `waves`: rows (w, b) of features sin(w . x + b) of the scaled coordinates that are
      not periodic (random Fourier features; Tancik et al., 2020).
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[int, ...] = ()
    harmonics: int = 1
    waves: tuple[tuple[float, ...], ...] = ()

    @property
    def count(self) -> int:
        """The number of features."""
        free = len(self.lower) - len(self.periodic)
        return free + len(self.waves) + 2 * self.harmonics * len(self.periodic)

    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and shift of the scaled coordinates that are not periodic."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        free = [i for i in range(len(lower)) if i not in self.periodic]
        matrix = np.diag(2 / (upper - lower))[free]
        return matrix, -((upper + lower) / (upper - lower))[free]

    def _angles(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and shift of all angles whose sines are features."""
        matrix, shift = self._scaling()
        rows, phases = [], []
        if self.waves:
            w = np.array(self.waves)
            rows.append(w[:, :-1] @ matrix)
            phases.append(w[:, :-1] @ shift + w[:, -1])
        for i in self.periodic:
            rate = 2 * np.pi / (self.upper[i] - self.lower[i])
            for m in range(1, self.harmonics + 1):
                row = np.zeros((2, len(self.lower)))
                row[:, i] = m * rate
                rows.append(row)
                start = -m * rate * self.lower[i]
                phases.append(np.array([start, start + np.pi / 2]))
        if not rows:
            return np.zeros((0, len(self.lower))), np.zeros(0)
        return np.concatenate(rows), np.concatenate(phases)

    def __call__(self, point: Float[Array, " dim"]) -> Float[Array, " features"]:
        """The features of a point."""
        matrix, shift = self._scaling()
        dtype = point.dtype
        straight = jnp.asarray(matrix, dtype) @ point + jnp.asarray(shift, dtype)
        matrix, shift = self._angles()
        if not len(shift):
            return straight
        angles = jnp.asarray(matrix, dtype) @ point + jnp.asarray(shift, dtype)
        return jnp.concatenate([straight, activation("sin")(angles)])

    def propagate(self, channels: Channels) -> Channels:
        """The features' jets."""
        dtype = next(v for v in channels.values() if v is not None).dtype
        matrix, shift = (jnp.asarray(a, dtype) for a in self._scaling())
        straight = linear(channels, matrix, shift)
        matrix, shift = (jnp.asarray(a, dtype) for a in self._angles())
        if not shift.size:
            return straight
        waves = activate("sin", linear(channels, matrix, shift))
        sizes = self.count - shift.size, shift.size
        return {o: _joined(straight[o], waves[o], sizes, dtype) for o in channels}


def _joined(
    a: Array | None, b: Array | None, sizes: tuple[int, int], dtype: jnp.dtype
) -> Array | None:
    if a is None and b is None:
        return None
    first = jnp.zeros(sizes[0], dtype) if a is None else a
    second = jnp.zeros(sizes[1], dtype) if b is None else b
    return jnp.concatenate([first, second])
