"""What is asked for, and what the ways of solving led to."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jax.sharding import Mesh

from pinnlab.devices import make_mesh
from pinnlab.errors import ProblemError
from pinnlab.fields import Model
from pinnlab.keeper import Keeper
from pinnlab.programs import Inspect
from pinnlab.record import Observation, Record, Stop
from pinnlab.settings import Settings
from pinnlab.system.system import System
from pinnlab.team import ALONE, Team
from pinnlab.verify.known import error_of


@dataclass(frozen=True)
class Job:
    """What is asked for, and the devices and processes that train.

    Raises `ProblemError` unless target and budget are positive numbers.
    """

    target: float
    budget: float
    seed: int
    observe: Callable[[Observation], None]
    inspect: Inspect | None = None
    keeper: Keeper | None = None
    mesh: Mesh = field(default_factory=make_mesh)
    team: Team = ALONE

    def __post_init__(self) -> None:
        for name, unit in (("target", ""), ("budget", " of seconds")):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and value > 0):
                wanted = f"a positive number{unit}"
                raise ProblemError(f"{name} is {value!r}: expected {wanted}")


@dataclass(frozen=True)
class Outcome:
    """What one way of solving led to, before it is verified."""

    system: System
    settings: Settings
    scales: tuple[float, ...]
    model: Model
    points: np.ndarray
    heldout: float
    record: Record
    stop: Stop
    reason: str
    estimate: float | None = None

    @cached_property
    def score(self) -> float:
        """The known error, or else an estimate, or else the held-out residual."""
        error = error_of(self.system)
        if error is not None:
            return error.measured(self.model)
        return self.heldout if self.estimate is None else self.estimate


@dataclass(frozen=True)
class Tried:
    """The outcomes so far, and the history of all that was tried."""

    outcomes: list[Outcome]
    record: Record

    def extended(self, outcome: Outcome) -> "Tried":
        """With one more outcome, whose own record follows."""
        return Tried([*self.outcomes, outcome], merged(self.record, outcome.record))

    def interrupted(self) -> "Tried":
        """The same, and nothing else is tried. Raises where there is no outcome."""
        if not self.outcomes:
            raise KeyboardInterrupt
        *others, last = self.outcomes
        stopped = dataclasses.replace(last, stop=Stop.INTERRUPTED)
        return Tried([*others, stopped], self.record)


def chosen(
    tried: Tried, measure: Callable[[Outcome], tuple[float, ...]] | None = None
) -> Outcome:
    """The best outcome by its score or other measures, with the history of all."""
    few = len(tried.outcomes) == 1
    best = (
        tried.outcomes[0]
        if few
        else min(tried.outcomes, key=measure or (lambda o: (o.score,)))
    )
    stop = tried.outcomes[-1].stop
    return dataclasses.replace(best, record=tried.record, stop=stop)


def merged(a: Record, b: Record) -> Record:
    """The history of what was tried one after the other."""
    rows = [
        *a.rows,
        *(dataclasses.replace(r, elapsed=r.elapsed + a.train_seconds) for r in b.rows),
    ]
    return Record(
        rows,
        [*a.events, *b.events],
        a.compile_seconds + b.compile_seconds,
        a.train_seconds + b.train_seconds,
        a.iterations + b.iterations,
    )
