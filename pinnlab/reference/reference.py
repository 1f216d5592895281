"""A classical solution that knows its own error."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


class NoReference(Exception):
    """There is no classical solution of this problem here, and why."""

    def __init__(self, reason: str):
        Exception.__init__(self, reason)
        self.reason = reason


@dataclass(frozen=True)
class Effort:
    """What one resolution gave: its estimated error and what it cost.

    - `resolution`: for people, as in "Fourier 512, 4000 steps".
    - `error`: the largest relative L2 error of any field, estimated.
    - `seconds`: of this solve alone, without compilation.
    """

    resolution: str
    error: float
    seconds: float


@dataclass(frozen=True)
class Reference:
    """A classical solution of a problem.

    - `fields`: the real fields, in the order of the columns of `at`.
    - `at`: maps points [m, dim] (coordinates in the problem's order) to [m, fields].
    - `errors`: the estimated relative L2 error of each field on the result grid.
    - `seconds`: everything together, compilation included.
    - `efforts`: the resolutions tried, coarse to fine.
    - `method`: one line for people.
    """

    fields: tuple[str, ...]
    at: Callable[[Float[np.ndarray, "m dim"]], Float[np.ndarray, "m fields"]]
    errors: dict[str, float]
    seconds: float
    efforts: tuple[Effort, ...]
    method: str

    @property
    def error(self) -> float:
        """The largest error of any field."""
        return max(self.errors.values())

    def seconds_to(self, error: float) -> float | None:
        """The seconds of the cheapest solve with at most this error; None if none."""
        good = [e.seconds for e in self.efforts if e.error <= error]
        return min(good, default=None)
