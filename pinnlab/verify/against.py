"""What a solution is measured against, and its errors."""

from dataclasses import dataclass

import numpy as np

from pinnlab.fields import Model
from pinnlab.metrics import maximum_error, relative_l2
from pinnlab.probe import Probe
from pinnlab.reference.reference import Reference
from pinnlab.result import FieldError
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import exact_solution


@dataclass(frozen=True)
class Truth:
    """What a solution is measured against, on the grid of the result.

    - `values`: of each field it knows, [m]; NaN where it knows nothing.
    - `own`: the relative L2 error of each field's values.
    - `points`: where the values are, [m, dim], if not on that grid.
    """

    name: str
    values: dict[str, np.ndarray]
    own: dict[str, float]
    points: np.ndarray | None = None


def exact_truth(system: System, grid: np.ndarray) -> Truth | None:
    """The declared exact solution at [m, dim] points, where there is one."""
    exact = exact_solution(system.problem)
    if not exact:
        return None
    found = array_values(system.problem, tuple(exact.values()), grid)
    values = dict(zip(exact, found.T, strict=True))
    return Truth("exact", values, dict.fromkeys(exact, 0.0))


def reference_truth(reference: Reference, grid: np.ndarray) -> Truth:
    """The classical solution at [m, dim] points."""
    found = reference.at(grid)
    values = dict(zip(reference.fields, found.T, strict=True))
    return Truth("reference", values, reference.errors)


def field_errors(
    probe: Probe, model: Model, truth: Truth, grid: np.ndarray
) -> tuple[FieldError, ...]:
    """The errors of a model in all fields that the truth knows."""
    found = probe.fields(model, grid if truth.points is None else truth.points)
    return truth_errors(dict(zip(probe.system.fields, found.T, strict=True)), truth)


def truth_errors(values: dict[str, np.ndarray], truth: Truth) -> tuple[FieldError, ...]:
    """The errors of values [m] by field in all fields that the truth knows."""
    found: list[FieldError] = []
    for name, right in truth.values.items():
        keep = np.isfinite(right)
        ours = values[name][keep]
        found.append(
            FieldError(
                name,
                relative_l2(ours, right[keep]),
                maximum_error(ours, right[keep]),
                truth.name,
                truth.own[name],
            )
        )
    return tuple(found)
