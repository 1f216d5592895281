"""Random sine features sin(w . x + b), and the rows that linear forms make of them."""

from dataclasses import dataclass

import numpy as np

from pinnlab.linear.box import FULL, TOGETHER, Box
from pinnlab.linear.forms import LinearForm


@dataclass(frozen=True)
class Features:
    """N features of the coordinates scaled to [-1, 1].

    `frequencies` [N, dim], `phases` [N]; `lower`, `upper` [dim] are the box.
    """

    frequencies: np.ndarray
    phases: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def count(self) -> int:
        """The number of features."""
        return len(self.phases)

    @property
    def singular(self) -> np.ndarray:
        """Which functions are singular somewhere, [N]: none."""
        return np.zeros(self.count, bool)

    def values(self, points: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The fields at [n, dim] points from [fields, N] coefficients, [n, fields]."""
        return self.waves(points)[0] @ coefficients.T

    def waves(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sin and cos of every feature's angle at [n, dim] points: [n, N] each."""
        scaled = (2 * points - self.upper - self.lower) / (self.upper - self.lower)
        angles = scaled @ self.frequencies.T + self.phases
        return np.sin(angles), np.cos(angles)

    def on(self, lower: np.ndarray, upper: np.ndarray) -> "Features":
        """The same functions with another box scaled to [-1, 1]."""
        slope = (upper - lower) / (self.upper - self.lower)
        shift = (upper + lower - self.upper - self.lower) / (self.upper - self.lower)
        phases = self.phases + self.frequencies @ shift
        return Features(self.frequencies * slope, phases, lower, upper)

    def factor(self, orders: tuple[int, ...]) -> np.ndarray:
        """What d^orders multiplies the sine (or cosine, at odd order) with: [N]."""
        sign = -1.0 if sum(orders) % 4 in (2, 3) else 1.0
        slope = 2 * self.frequencies / (self.upper - self.lower)
        return sign * np.prod(slope ** np.array(orders), axis=1)

    def matrix(
        self, form: LinearForm, fields: tuple[str, ...]
    ) -> tuple[np.ndarray, float]:
        """The rows of a form, [n, fields * N], and the RMS of its largest piece."""
        rows = np.zeros((len(form.rest), len(fields) * self.count))
        largest = 0.0
        places: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for piece in form.pieces:
            place = id(piece.location)
            if place not in places:
                nodes = range(piece.location.shape[1])
                places[place] = [self.waves(piece.location[:, q]) for q in nodes]
            block = np.zeros((len(form.rest), self.count))
            for q, waves in enumerate(places[place]):
                block += piece.coefficient[:, q, None] * waves[sum(piece.orders) % 2]
            block *= self.factor(piece.orders)
            largest = max(largest, float(np.sqrt(np.mean(block**2))))
            j = fields.index(piece.field) * self.count
            rows[:, j : j + self.count] += block
        return rows, largest


def draw(
    count: int,
    box: Box,
    lower: np.ndarray,
    upper: np.ndarray,
    rng: np.random.Generator,
) -> Features:
    """Features with frequencies uniform in the box and uniform phases.

    In a periodic coordinate the frequencies are multiples of pi (its period is 2 in the
    scaled box), so that every feature is exactly periodic. Above `FULL` coordinates a
    feature depends on `TOGETHER` of them, drawn at random: a box of many dimensions
    would need too many (Potts and Schmischke, 2021).
    """
    dim = len(lower)
    frequencies = rng.uniform(-1, 1, (count, dim)) * box.width
    if dim > FULL:
        order = np.argsort(rng.random(frequencies.shape), axis=1)
        frequencies[order >= TOGETHER] = 0
    for i in box.periodic:
        most = box.harmonics(i) // 2
        frequencies[:, i] = np.pi * rng.integers(-most, most + 1, count)
    for i in np.flatnonzero(box.center):
        frequencies[:, i] += box.center[i] * rng.choice([-1, 1], count)
    return Features(frequencies, rng.uniform(0, 2 * np.pi, count), lower, upper)
