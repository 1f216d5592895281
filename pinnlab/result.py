"""What a run leaves behind: plain NumPy arrays and a report, no JAX."""

from dataclasses import dataclass, field
from importlib import import_module

import numpy as np


MASK = "mask"
"""The variable that is 1 inside of a shape: no quantity of the problem."""


@dataclass(frozen=True)
class EquationCheck:
    """The residual of one equation on fresh points, relative to its terms' size."""

    name: str
    text: str
    heldout: float
    training: float

    @property
    def ratio(self) -> float:
        """Held-out over training residual; much above 1 means over-fitting."""
        return self.heldout / self.training if self.training > 0 else float("inf")


@dataclass(frozen=True)
class ConditionCheck:
    """How well one condition holds at one place, on a fresh dense sample.

    `violation` is the largest absolute residual, `relative` the same divided by the
    size of the condition's terms.
    """

    name: str
    place: str
    text: str
    enforced: str
    points: int
    violation: float
    relative: float


@dataclass(frozen=True)
class FieldError:
    """The error of one field against an independent truth on a uniform grid.

    - `against`: "exact", "reference" or "estimate".
    - `own`: the relative L2 error of the truth itself.
    """

    field: str
    rel_l2: float
    maximum: float
    against: str
    own: float = 0.0


@dataclass(frozen=True)
class FieldEstimate:
    """The relative L2 error of one field, estimated from the residuals."""

    field: str
    rel_l2: float


@dataclass(frozen=True)
class ReferenceCheck:
    """The classical solver on the same problem.

    - `method`: with its resolution; "" where there is none, and `reason` why.
    - `error`: of its own, estimated; `seconds`: altogether, compilation included.
    - `seconds_alike`: of the cheapest classical solve that is as good as the solution
        (infinite where none was, or where the solution's error is not known).
    """

    method: str
    reason: str
    error: float
    seconds: float
    seconds_alike: float


@dataclass(frozen=True)
class Cost:
    """Wall seconds by phase, iterations, model size and peak memory."""

    compile_seconds: float
    train_seconds: float
    verify_seconds: float
    iterations: int
    parameters: int
    peak_memory_mb: float


@dataclass(frozen=True)
class RunCheck:
    """One check of the programs of a run: whether it holds, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class TermGradient:
    """A term's share of the gradients' sizes; its cosine with all others' gradient."""

    term: str
    share: float
    cosine: float


@dataclass(frozen=True)
class ResidualSpectrum:
    """Shares of a residual's energy by frequency along a coordinate."""

    equation: str
    coordinate: str
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Diagnosis:
    """What `--debug` saw, and the one change that it suggests ("" for none).

    - `failures`: parts of the equations that were not finite in training.
    """

    suggestion: str
    step_memory_mb: float
    failures: tuple[str, ...]
    checks: tuple[RunCheck, ...]
    gradients: tuple[TermGradient, ...]
    spectra: tuple[ResidualSpectrum, ...]


@dataclass(frozen=True)
class MemberCheck:
    """One member of an ensemble: the same problem from another seed.

    - `heldout`: the largest held-out residual of an equation, relative to its terms.
    - `condition`: the largest relative violation of a condition.
    - `rel_l2`: the worst field's relative L2 error, NaN where no truth is known.
    - `estimate`: of the same, NaN where there is none.
    """

    seed: int
    heldout: float
    condition: float
    rel_l2: float
    estimate: float
    iterations: int
    verdict: str
    stop: str


@dataclass(frozen=True)
class Report:
    """The truth report: the verdict and the evidence for it.

    `members`: those of an ensemble, where the solution is the best of several.
    """

    verdict: str
    reason: str
    suggestion: str
    target: float
    strategy: str
    equations: tuple[EquationCheck, ...]
    conditions: tuple[ConditionCheck, ...]
    fields: tuple[FieldError, ...]
    cost: Cost
    warnings: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    reference: ReferenceCheck | None = None
    estimates: tuple[FieldEstimate, ...] = ()
    members: tuple[MemberCheck, ...] = ()

    def _repr_html_(self) -> str:
        # Views belong to a layer above; they are looked up when a notebook asks.
        return import_module("pinnlab.notebook").report_html(self)

    @property
    def rel_l2(self) -> float | None:
        """The worst field's relative L2 error, None where no truth is known."""
        return max((f.rel_l2 for f in self.fields), default=None)


@dataclass(frozen=True)
class Result:
    """A finished run as data: everything the result file holds.

    `axes` maps each coordinate to its grid; `variables` maps names to arrays over the
    grid in coordinate order; above three coordinates the grid is a list of points
    and every entry of `axes` and `variables` has the one dimension "point".
    `model` maps tree paths to arrays; `history` maps columns to arrays, one row a
    recorded step, `history_stage` naming the stage of each row. Attributes:
    seed, created, versions, device and the like.
    """

    problem: str
    solver: str
    axes: dict[str, np.ndarray]
    variables: dict[str, np.ndarray]
    model: dict[str, np.ndarray]
    history: dict[str, np.ndarray]
    history_stage: tuple[str, ...]
    report: Report
    attributes: dict[str, str | int | float] = field(default_factory=dict)
