"""A classical solution as a result: the same layout, without a model."""

import numpy as np

from pinnlab.grids import result_grid
from pinnlab.problem.problem import Problem
from pinnlab.provenance import provenance
from pinnlab.reference.reference import Reference
from pinnlab.reference.solve import solve_reference
from pinnlab.result import Cost, FieldError, Report, Result
from pinnlab.system.system import build_system
from pinnlab.verify.against import exact_truth, truth_errors
from pinnlab.verify.classical import reference_check
from pinnlab.verify.reference_file import STATED


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
    grid = result_grid(problem)
    values = dict(zip(reference.fields, reference.at(grid.points).T, strict=True))
    variables = dict(values)
    truth = exact_truth(build_system(problem, "rows"), grid.points)
    fields: tuple[FieldError, ...] = ()
    if truth is not None:
        variables |= {f"{name}_exact": v for name, v in truth.values.items()}
        fields = truth_errors(values, truth)
    return Result(
        problem=problem.source,
        solver="",
        axes=grid.axes,
        variables={n: grid.spread(np.asarray(v)) for n, v in variables.items()},
        model={},
        history={n: np.zeros(0) for n in ("step", "time", "loss", "heldout", "error")},
        history_stage=(),
        report=_report(reference, error, fields),
        attributes=provenance(problem)
        | {"problem_name": problem.name, "seed": 0, STATED: reference.error},
    )


def _report(
    reference: Reference, wanted: float, fields: tuple[FieldError, ...]
) -> Report:
    return Report(
        verdict="reference",
        reason=f"a classical solution, own error {reference.error:.1e}",
        suggestion="" if reference.error <= wanted else "raise --budget",
        target=wanted,
        strategy=reference.method,
        equations=(),
        conditions=(),
        fields=fields,
        cost=Cost(0.0, reference.seconds, 0.0, 0, 0, 0.0),
        reference=reference_check(reference, reference.seconds, reference.error),
    )
