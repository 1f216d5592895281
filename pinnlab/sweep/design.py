"""Designs that draw their combinations from ranges, instead of taking them all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pinnlab.errors import ProblemError
from pinnlab.sampling import unit_points
from pinnlab.sweep.axes import Axis
from pinnlab.sweep.ranges import Range
from pinnlab.sweep.values import Settings, Value, label


GRID = "grid"
SAMPLERS = {"random": "uniform", "sobol": "sobol"}
DESIGNS = (GRID, *SAMPLERS)

DRAW = "draw"
"""The dimension of what was drawn."""

MOST_DRAWS = 64
"""Times more points than wanted that are drawn in search of new combinations."""


@dataclass(frozen=True)
class Factor:
    """Settings to be drawn together: a range of one, or the rows of an axis."""

    keys: tuple[str, ...]
    choices: Range | tuple[tuple[Value, ...], ...]

    def at(self, share: float) -> Settings:
        """The settings at a share of the way, 0 to below 1."""
        if isinstance(self.choices, Range):
            return {self.keys[0]: self.choices.drawn(share)}
        row = self.choices[int(share * len(self.choices))]
        return dict(zip(self.keys, row, strict=True))


@dataclass(frozen=True)
class Design:
    """`count` different combinations, drawn by one of `SAMPLERS` with a seed.

    With another count the first combinations stay the same.
    """

    kind: str
    count: int
    seed: int

    def drawn(
        self, factors: Sequence[Factor], left_out: Callable[[Settings], bool]
    ) -> Axis:
        """The combinations as one axis.

        Raises `ProblemError` where there are not so many that are not left out.
        """
        keys = tuple(k for f in factors for k in f.keys)
        found: dict[tuple[str, ...], tuple[Value, ...]] = {}
        points = 2 * self.count
        while len(found) < self.count and points <= MOST_DRAWS * self.count:
            unit = unit_points(SAMPLERS[self.kind], points, len(factors), self.seed)
            for shares in unit:
                settings: Settings = {}
                for factor, share in zip(factors, shares, strict=True):
                    settings |= factor.at(float(share))
                if not left_out(settings):
                    row = tuple(settings[k] for k in keys)
                    found[tuple(map(label, row))] = row
            points *= 4
        if len(found) < self.count:
            message = (
                f"{self.count} runs are more than the axes have combinations: "
                f"{len(found)} were found"
            )
            raise ProblemError(message, key="runs")
        return Axis(keys, tuple(found.values())[: self.count], DRAW)
