"""A solution with its report and all that its file holds, from an outcome."""

import time

import numpy as np
import tomli_w

from pinnlab.grids import ResultGrid
from pinnlab.memory import peak_memory
from pinnlab.network import trained_numbers
from pinnlab.outcome import Job, Outcome
from pinnlab.probe import Probe
from pinnlab.provenance import provenance
from pinnlab.record import Record
from pinnlab.result import MASK, Cost, Result
from pinnlab.settings import settings_table
from pinnlab.solution import Solution, variables_on
from pinnlab.verify.estimate import Estimate
from pinnlab.verify.verdict import judge, report
from pinnlab.verify.verified import Verified


def solution_of(
    outcome: Outcome,
    probe: Probe,
    job: Job,
    warnings: tuple[str, ...],
    verified: Verified,
    grid: ResultGrid,
    began: float,
) -> Solution:
    """The solution with its verdict. `began`: when verification did."""
    system, record = outcome.system, outcome.record
    judgment = judge(verified.evidence, job.target, outcome.stop.value)
    variables = _variables(outcome, probe, verified, grid)
    cost = Cost(
        record.compile_seconds,
        record.train_seconds,
        time.perf_counter() - began,
        record.iterations,
        trained_numbers(outcome.model.network),
        peak_memory() / 2**20,
    )
    events = tuple(dict.fromkeys((*warnings, *record.events)))
    result = Result(
        problem=system.problem.source,
        solver=tomli_w.dumps(settings_table(outcome.settings)),
        axes=grid.axes,
        variables=variables,
        model={},
        history=_history(record),
        history_stage=tuple(r.stage for r in record.rows),
        report=report(
            judgment,
            verified.evidence,
            job.target,
            outcome.reason,
            cost,
            events,
            verified.reference,
        ),
        attributes=provenance(system.problem) | {"stop": outcome.stop.value},
    )
    return Solution(
        system, outcome.settings, job.seed, outcome.scales, outcome.model, result
    )


def _variables(
    outcome: Outcome, probe: Probe, verified: Verified, grid: ResultGrid
) -> dict[str, np.ndarray]:
    """Fields, residuals, the truth and estimated errors on the grid."""
    variables = variables_on(probe, outcome.model, grid)
    if grid.inside is not None:
        variables[MASK] = grid.inside.astype(np.uint8)
    if verified.truth is not None and verified.truth.points is None:
        for name, values in verified.truth.values.items():
            variables[f"{name}_{verified.truth.name}"] = grid.spread(values)
    if isinstance(verified.estimate, Estimate):
        for name, values in verified.estimate.values.items():
            variables[f"{name}_error_estimate"] = grid.spread(values)
    return variables


def _history(record: Record) -> dict[str, np.ndarray]:
    rows = record.rows
    return {
        "step": np.array([r.iteration for r in rows]),
        "time": np.array([r.elapsed for r in rows]),
        "loss": np.array([r.loss for r in rows]),
        "heldout": np.array([r.heldout for r in rows]),
        "error": np.array([np.nan if r.error is None else r.error for r in rows]),
    }
