"""Features that are even or odd along some coordinates, from those of both signs.

The sum over all signs g of chi(g) sin(sum_i g_i w_i z_i + theta), theta the angle of
the other coordinates, is

    2^m sin(theta + s pi/2) prod_even cos(w_i z_i) prod_odd sin(w_i z_i)

with s the number of odd coordinates among the m mirrored ones.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.linear.features import Features
from pinnlab.system.forms import LinearForm, Piece


@dataclass(frozen=True)
class Parity:
    """Kinds of symmetry along `mirrored` coordinates: `odd` [parts, mirrored]."""

    mirrored: tuple[int, ...]
    odd: np.ndarray

    @property
    def turns(self) -> int:
        """The number of combinations of signs."""
        return 2 ** len(self.mirrored)

    @property
    def signs(self) -> np.ndarray:
        """What each part is multiplied with under every combination: [parts, turns]."""
        flips = list(itertools.product((0, 1), repeat=len(self.mirrored)))
        return (-1.0) ** (
            self.odd.astype(int) @ np.array(flips).reshape(self.turns, -1).T
        )

    def matrices(
        self, features: Features, form: LinearForm, fields: tuple[str, ...]
    ) -> list[np.ndarray]:
        """The rows of a form for each part, [n, fields * N / turns].

        `features` are those of all combinations, the plain ones first. All pieces are
        taken at the same places.
        """
        count = features.count // self.turns
        waves = _Waves(features, count, self.mirrored, form.pieces[0].location[:, 0])
        return [waves.rows(form, fields, tuple(odd)) for odd in self.odd]


class _Waves:
    """Sines and cosines along each mirrored coordinate, and of the other angles."""

    def __init__(
        self,
        features: Features,
        count: int,
        mirrored: tuple[int, ...],
        points: np.ndarray,
    ):
        lower, upper = features.lower, features.upper
        self.rates = features.frequencies[:count]
        self.slopes = 2 * self.rates / (upper - lower)
        self.mirrored = mirrored
        self.others = [i for i in range(len(lower)) if i not in mirrored]
        scaled = (2 * points - upper - lower) / (upper - lower)
        self.along = {i: scaled[:, i, None] * self.rates[:, i] for i in mirrored}
        angles = scaled[:, self.others] @ self.rates[:, self.others].T
        self.along[-1] = angles + features.phases[:count]
        self.known: dict[tuple[int, int], np.ndarray] = {}

    def _wave(self, axis: int, quarter: int) -> np.ndarray:
        """sin of an angle plus some quarters of a turn, but for the sign."""
        key = axis, quarter % 2
        if key not in self.known:
            self.known[key] = (np.cos if quarter % 2 else np.sin)(self.along[axis])
        return self.known[key]

    def rows(
        self, form: LinearForm, fields: tuple[str, ...], odd: tuple[bool, ...]
    ) -> np.ndarray:
        """[n, fields * N]"""
        rows = np.zeros((len(form.rest), len(fields), len(self.rates)))
        groups: dict[tuple, list[tuple[Piece, float]]] = {}
        for p in form.pieces:
            quarters = [
                p.orders[i] + (not o) for i, o in zip(self.mirrored, odd, strict=True)
            ]
            quarters.append(sum(odd) + sum(p.orders[i] for i in self.others))
            sign = np.prod([-1.0 if q % 4 in (2, 3) else 1.0 for q in quarters])
            key = (p.field, *(q % 2 for q in quarters))
            groups.setdefault(key, []).append((p, float(sign)))
        for (field, *quarters), own in groups.items():
            factors = [
                sign * np.prod(self.slopes ** np.array(p.orders), axis=1)
                for p, sign in own
            ]
            coefficients = np.stack([p.coefficient[:, 0] for p, _ in own], axis=1)
            block = (2 ** len(self.mirrored) * coefficients) @ np.stack(factors)
            for axis, quarter in zip((*self.mirrored, -1), quarters, strict=True):
                block *= self._wave(axis, quarter)
            rows[:, fields.index(field)] += block
        return rows.reshape(len(rows), -1)
