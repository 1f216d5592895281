"""Sines of the scaled coordinates, sin(w . z + b), with their derivatives, in NumPy."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sines:
    """N sines of the coordinates scaled to [-1, 1].

    `frequencies` [N, dim], `phases` [N]; `lower`, `upper` [dim] are the box.
    """

    frequencies: np.ndarray
    phases: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def scaled(self, points: np.ndarray) -> np.ndarray:
        """The scaled coordinates of [n, dim] points."""
        return (2 * points - self.upper - self.lower) / (self.upper - self.lower)

    def angles(self, points: np.ndarray) -> np.ndarray:
        """w . z + b of every sine at [n, dim] points: [n, N]."""
        angles = self.scaled(points) @ self.frequencies.T
        angles += self.phases
        return angles

    def factor(self, orders: tuple[int, ...]) -> np.ndarray:
        """What d^orders multiplies the sine (or cosine, at odd order) with: [N]."""
        sign = -1.0 if sum(orders) % 4 in (2, 3) else 1.0
        slope = 2 * self.frequencies / (self.upper - self.lower)
        return sign * np.prod(slope ** np.array(orders), axis=1)
