"""Functions whose derivatives at the same points are asked for again and again."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np


MOST = 256
"""Arrays of points that are remembered; then the oldest is forgotten."""


@dataclass(frozen=True)
class Remembered(ABC):
    """Functions of two coordinates that remember their derivatives.

    - `memory`: of each array of points, by its identity.
    """

    memory: dict = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def columns(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """A derivative of every function at [..., 2] points, [..., functions].

        Remembered for each array of points: every search for features asks again.
        """
        known = self.memory.setdefault(id(points), (points, {}))[1]
        if len(self.memory) > MOST:
            del self.memory[next(iter(self.memory))]
        if orders not in known:
            known[orders] = self.computed(points, orders)
        return known[orders]

    @abstractmethod
    def computed(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """What `columns` gives, computed anew."""
