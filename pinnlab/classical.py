"""A classical solution as a result: the same layout, without a model."""

import math

import numpy as np

from pinnlab.grids import grid_axes, grid_points
from pinnlab.problem.problem import Problem
from pinnlab.provenance import provenance
from pinnlab.reference.reference import Reference
from pinnlab.reference.solve import solve_reference
from pinnlab.result import Cost, FieldError, ReferenceCheck, Report, Result
from pinnlab.system.system import build_system
from pinnlab.verify.against import exact_truth, truth_errors


def solve_classically(
    problem: Problem, *, error: float = 1e-8, seconds: float = 60.0
) -> Result:
    """Solve a problem by classical methods only.

    **Arguments:**

    - `error`: the relative L2 error wanted of every field.
    - `seconds`: no refinement is begun that would take longer.

    **Returns:** the result on the usual grid. Its verdict is `reference`; where an
    exact solution is declared the report holds the true errors.

    Raises `NoReference` with the reason where no method here can solve the problem.

    !!! example
        ```python
        result = solve_classically(load_problem("burgers"), error=1e-8)
        print(result.report.reference.method, result.report.reference.error)
        ```
    """
    reference = solve_reference(problem, error=error, seconds=seconds)
    axes = grid_axes(problem)
    grid = grid_points(problem, axes)
    found = reference.at(grid)
    shape = tuple(len(v) for v in axes.values())
    shape = shape if math.prod(shape) == len(grid) else (len(grid),)
    variables = {
        name: np.asarray(column).reshape(shape)
        for name, column in zip(reference.fields, found.T, strict=True)
    }
    truth = exact_truth(build_system(problem, "rows"), grid)
    fields: tuple[FieldError, ...] = ()
    if truth is not None:
        for name, values in truth.values.items():
            variables[f"{name}_exact"] = values.reshape(shape)
        values = dict(zip(reference.fields, found.T, strict=True))
        fields = truth_errors(values, truth)
    reached = "" if reference.error <= error else "the seconds did not suffice"
    return Result(
        problem=problem.source,
        solver="",
        axes=axes,
        variables=variables,
        model={},
        history={n: np.zeros(0) for n in ("step", "time", "loss", "heldout", "error")},
        history_stage=(),
        report=Report(
            "reference",
            f"a classical solution, own error {reference.error:.1e}",
            reached and "raise --budget",
            error,
            reference.method,
            (),
            (),
            fields,
            Cost(0.0, reference.seconds, 0.0, 0, 0, 0.0),
            (),
            reference=_check(reference),
        ),
        attributes=provenance(problem) | {"problem_name": problem.name, "seed": 0},
    )


def _check(reference: Reference) -> ReferenceCheck:
    cheapest = reference.seconds_to(reference.error)
    return ReferenceCheck(
        reference.method,
        "",
        reference.error,
        reference.seconds,
        math.inf if cheapest is None else cheapest,
    )
