"""Random sine features sin(w . x + b), and the rows that linear forms make of them."""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.linear.box import FULL, TOGETHER, Box
from pinnlab.network.sines import Sines
from pinnlab.sampling import unit_points
from pinnlab.system.forms import LinearForm, Piece


@dataclass(frozen=True)
class Features(Sines):
    """Sines as features of a linear problem."""

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
        angles = self.angles(points)
        return np.sin(angles, out=angles) @ coefficients.T

    def waves(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sin and cos of every angle at [n, dim] points: [n, N] each."""
        angles = self.angles(points)
        return np.sin(angles), np.cos(angles)

    def on(self, lower: np.ndarray, upper: np.ndarray) -> "Features":
        """The same functions with another box scaled to [-1, 1]."""
        slope = (upper - lower) / (self.upper - self.lower)
        shift = (upper + lower - self.upper - self.lower) / (self.upper - self.lower)
        phases = self.phases + self.frequencies @ shift
        return Features(self.frequencies * slope, phases, lower, upper)

    def matrix(self, form: LinearForm, fields: tuple[str, ...]) -> np.ndarray:
        """The rows of a form, [n, fields * N]."""
        rows = np.zeros((len(form.rest), len(fields), self.count))
        for pieces in _together(form):
            own = [p for p, _ in pieces]
            factors = np.stack([self.factor(p.orders) for p in own])
            wave = np.cos if sum(own[0].orders) % 2 else np.sin
            field = fields.index(own[0].field)
            for q in range(own[0].location.shape[1]):
                coefficients = np.stack([p.coefficient[:, q] for p in own], axis=1)
                angles = self.angles(own[0].location[:, q])
                rows[:, field] += wave(angles, out=angles) * (coefficients @ factors)
        return rows.reshape(len(rows), -1)

    def summands(
        self, form: LinearForm, fields: tuple[str, ...], coefficients: np.ndarray
    ) -> np.ndarray:
        """The values of every piece of a form, [n, pieces].

        `coefficients`: [fields * N].
        """
        every = coefficients.reshape(len(fields), -1)
        found = np.zeros((len(form.rest), len(form.pieces)))
        for pieces in _together(form):
            own = [p for p, _ in pieces]
            weights = np.stack(
                [self.factor(p.orders) * every[fields.index(p.field)] for p in own],
                axis=1,
            )
            wave = np.cos if sum(own[0].orders) % 2 else np.sin
            for q in range(own[0].location.shape[1]):
                values = wave(self.angles(own[0].location[:, q])) @ weights
                for j, (p, k) in enumerate(pieces):
                    found[:, k] += p.coefficient[:, q] * values[:, j]
        return found

    def size(self, form: LinearForm) -> float:
        """About the RMS of the form's largest piece over all features."""
        rms = lambda values: float(np.sqrt(np.mean(values**2)))
        sizes = [0.0]
        for p in form.pieces:
            coefficients = np.linalg.norm(p.coefficient, axis=1)
            sizes.append(rms(coefficients) * rms(self.factor(p.orders)) / np.sqrt(2))
        return max(sizes)


def _together(form: LinearForm) -> list[list[tuple[Piece, int]]]:
    """Pieces of one field at the same places that take the same wave, numbered."""
    groups: dict[tuple, list[tuple[Piece, int]]] = {}
    for k, p in enumerate(form.pieces):
        key = (id(p.location), sum(p.orders) % 2, p.field)
        groups.setdefault(key, []).append((p, k))
    return list(groups.values())


def draw(
    count: int,
    box: Box,
    lower: np.ndarray,
    upper: np.ndarray,
    rng: np.random.Generator,
    mirrored: tuple[int, ...] = (),
) -> Features:
    """Features with frequencies in the box, evenly spread, and random phases.

    In a periodic coordinate the frequencies are multiples of pi (its period is 2 in the
    scaled box), so that every feature is exactly periodic. Above `FULL` coordinates a
    feature depends on `TOGETHER` of them, drawn at random, unless they are mixed: a box
    of many dimensions would need too many (Potts and Schmischke, 2021).

    With `mirrored` coordinates the features are those of all combinations of their
    signs, one combination after another; the count is rounded up.
    """
    dim, turns = len(lower), 2 ** len(mirrored)
    count = -(-count // turns)
    seed = int(rng.integers(2**31))
    # Low-discrepancy frequencies are three to ten times as accurate as random ones.
    unit = unit_points("sobol", count, dim, seed) if dim <= FULL else None
    place = 2 * (rng.random((count, dim)) if unit is None else unit) - 1
    place[:, list(mirrored)] = np.abs(place[:, list(mirrored)])
    frequencies = place * box.width
    if dim > FULL and not box.is_mixed:
        order = np.argsort(rng.random(frequencies.shape), axis=1)
        frequencies[order >= TOGETHER] = 0
    for i in box.periodic:
        most = box.harmonics(i) // 2
        least = 0 if i in mirrored else -most
        share = place[:, i] if i in mirrored else (place[:, i] + 1) / 2
        steps = (most + 1 - least) * share
        frequencies[:, i] = np.pi * np.minimum(least + np.floor(steps), most)
    for i in np.flatnonzero(box.center):
        size = box.center[i] + box.width[i] * (2 * np.abs(place[:, i]) - 1)
        frequencies[:, i] = np.where(place[:, i] < 0, -size, size)
    phases = rng.uniform(0, 2 * np.pi, count)
    if len(mirrored) == dim:
        # The phase is a factor then: the cosine's or the sine's.
        phases[:] = np.pi / 4
    every = [frequencies * factors for factors in _turns(mirrored, dim)]
    return Features(np.concatenate(every), np.tile(phases, turns), lower, upper)


def _turns(mirrored: tuple[int, ...], dim: int) -> np.ndarray:
    """The factors of the coordinates under every combination of reflections."""
    choices = itertools.product((1.0, -1.0), repeat=len(mirrored))
    factors = np.ones((2 ** len(mirrored), dim))
    factors[:, list(mirrored)] = list(choices)
    return factors
