"""Which frequencies features may have: an interval of each coordinate."""

import itertools
from dataclasses import dataclass, replace

import numpy as np


FULL, TOGETHER = 3, 2
"""Above `FULL` coordinates a feature depends on `TOGETHER` of them, or on all."""
ALL_AT_FIRST = 600
"""Features that depend on all of many coordinates: of no grid, their number is free."""


@dataclass(frozen=True)
class Box:
    """Frequencies of both signs whose distance from `center` is at most `width`.

    [dim] each. The center is 0 where frequencies begin at 0; elsewhere the coordinate
    has a band around it. Along the `periodic` ones frequencies are multiples of pi.
    `density`: of the features, relative to the fewest that are worth a try.
    `is_mixed`: whether features of many coordinates depend on all of them.
    """

    center: np.ndarray
    width: np.ndarray
    periodic: tuple[int, ...] = ()
    density: float = 1.0
    is_mixed: bool = False

    @property
    def size(self) -> int:
        """The number of features that a box needs: it must follow the volume.

        A band holds a slow function times a cosine and one times a sine.
        """
        if self.is_mixed:
            return int(self.density * ALL_AT_FIRST)
        twice = np.where(self.center > 0, 2, 1)
        if len(self.width) > FULL:
            sides = 0.64 * self.width + 4.0
            pairs = itertools.combinations(twice * sides, TOGETHER)
            return int(self.density * sum(1.2 * np.prod(p) for p in pairs)) + 10
        extra = 10.0 if len(self.width) <= 2 else 6.0
        sides = 0.64 * self.width + extra
        for i in self.periodic:
            # Frequencies that are drawn at random fall on some harmonics too seldom.
            sides[i] = 2 * self.harmonics(i)
        return int(self.density * 1.2 * np.prod(twice * sides)) + 10

    def harmonics(self, i: int) -> int:
        """The number of harmonics along a periodic coordinate."""
        return 2 * int(self.width[i] / np.pi) + 1

    @property
    def text(self) -> str:
        """The intervals in words."""
        parts = [
            f"{c:.3g} +- {w:.3g}" if c else f"{w:.3g}"
            for c, w in zip(self.center, self.width, strict=True)
        ]
        return f"({', '.join(parts)})"

    def times(self, factors: np.ndarray | float) -> "Box":
        """Wider by factors; a band that reaches 0 begins there."""
        width = factors * self.width
        low = width >= self.center
        center = np.where(low, 0, self.center)
        width = width + self.center - center
        return replace(self, center=center, width=width)

    def denser(self, factor: float) -> "Box":
        """The same frequencies with more features."""
        return replace(self, density=factor * self.density)

    def mixed(self) -> "Box":
        """The same frequencies, in features that depend on all coordinates."""
        return replace(self, is_mixed=True)

    def widened(self, factor: float) -> list["Box"]:
        """The box with each coordinate widened, and with all (last)."""
        count = len(self.width)
        every = self.times(factor)
        if count > FULL or count == 1:
            return [every]
        axes = np.arange(count)
        return [*(self.times(np.where(axes == i, factor, 1)) for i in axes), every]
