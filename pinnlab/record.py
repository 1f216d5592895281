"""What is written down of a run: why it ended, what was measured and when."""

from dataclasses import dataclass, field
from enum import Enum


class Stop(Enum):
    """Why training ended."""

    BUDGET = "the budget was used up"
    ITERATIONS = "the iterations were done"
    TARGET = "the target was met"
    CONVERGED = "it converged"
    STALLED = "no step lowers the loss any more"
    INTERRUPTED = "it was interrupted"
    DIVERGED = "the loss stayed non-finite after several restarts"


@dataclass(frozen=True)
class Observation:
    """What is known after a piece of training."""

    stage: str
    iteration: int
    elapsed: float
    loss: float
    heldout: float
    error: float | None


@dataclass
class Record:
    """The growing history of a run."""

    rows: list[Observation] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    compile_seconds: float = 0.0
    train_seconds: float = 0.0
    iterations: int = 0
