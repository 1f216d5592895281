"""The unknown numbers of one slab, the box of a slab, and what was found for it."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Range:
    """The box of one slab: [dim] each."""

    lower: np.ndarray
    upper: np.ndarray

    def points(self, unit: np.ndarray) -> np.ndarray:
        """From [-1, 1]^dim."""
        return self.lower + (self.upper - self.lower) * (unit + 1) / 2

    def unit(self, points: np.ndarray) -> np.ndarray:
        """To [-1, 1]^dim."""
        return (2 * points - self.upper - self.lower) / (self.upper - self.lower)

    def factor(self, orders: tuple[int, ...]) -> float:
        """What a derivative by the scaled coordinates is multiplied with."""
        return float(np.prod((2 / (self.upper - self.lower)) ** np.array(orders)))


@dataclass(frozen=True)
class Numbers:
    """Coefficients [fields, modes...] of one slab, and those of the singular functions,
    [fields, singular]."""

    modes: np.ndarray
    singular: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def size(self) -> float:
        """The norm of them all."""
        return float(
            np.hypot(np.linalg.norm(self.modes), np.linalg.norm(self.singular))
        )


@dataclass(frozen=True)
class Solved:
    """What was found for one slab.

    - `residual`: the norm of all scaled rows, before and after.
    - `converged`: whether the last step was small.
    """

    numbers: Numbers
    residual: float
    converged: bool

    @property
    def coefficients(self) -> np.ndarray:
        """Those of the separable functions, [fields, modes...]."""
        return self.numbers.modes
