"""How good the error estimate is: estimate / true error, over the gallery.

    python experiments/effectivity.py [--only burgers,kdv] [--runs auto:20] [-o DIR]

Every problem is solved in several ways (a strategy and seconds of training each), so
that solutions of several accuracies are there; the error of each is estimated without a
truth, then compared with the exact or classical solution. Rows are kept in
DIR/effectivity.csv and not made again; DIR/effectivity.md is the table. A row is one
field of one solution; an estimate counts as good between a third and three times the
true error. A truth counts where it is ten times better than the error it measures.
"""

import argparse
import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import jax
import numpy as np

from pinnlab import load_problem, solve
from pinnlab.cli.gallery import find_problem, gallery
from pinnlab.errors import ProblemError
from pinnlab.grids import result_grid
from pinnlab.probe import Probe
from pinnlab.solution import Solution
from pinnlab.verify.against import Truth, field_errors
from pinnlab.verify.estimate import Estimate, estimated
from pinnlab.verify.verified import known


DESCRIPTION = "Estimates of the error over true errors, for the gallery."
RUNS = "nonlinear:10,auto:15"
REFERENCE_ERROR, REFERENCE_SECONDS, ESTIMATE_SECONDS = 1e-7, 60.0, 15.0
GOOD = 3.0
USABLE_TRUTH = 10.0
"""A truth must be this much better than the error that it measures."""


@dataclass(frozen=True)
class Row:
    """One field of one solution; `estimate` is empty where there is none, and why."""

    problem: str
    field: str
    run: str
    error: float
    estimate: float | None
    why: str

    @property
    def effectivity(self) -> float | None:
        """Estimate over true error."""
        return None if self.estimate is None else self.estimate / self.error


def main() -> None:
    """Makes the rows that are missing, then the table."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--only", default="", help="problems, separated by commas")
    parser.add_argument("--runs", default=RUNS, help="strategies and seconds")
    parser.add_argument("-o", "--output", type=Path, default=Path("effectivity"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    store = options.output / "effectivity.csv"
    rows = read(store)
    names = [n for n in options.only.split(",") if n] or [e.name for e in gallery()]
    for name in names:
        for run in options.runs.split(","):
            if any(r.problem == name and r.run == run for r in rows):
                continue
            print(f"{name}, {run}", flush=True)
            try:
                rows += measured(name, run)
            except (ProblemError, FloatingPointError) as failure:
                print(f"  {failure}")
            write(store, rows)
    (options.output / "effectivity.md").write_text(markdown(rows))
    print(markdown(rows))


def measured(name: str, run: str) -> Iterator[Row]:
    """The rows of one solution. Nothing where no truth is good enough."""
    strategy, seconds = run.split(":")
    wish = {} if strategy == "auto" else {"solver.strategy": strategy}
    problem = load_problem(find_problem(name), wish)
    target = 1e-6 if strategy == "auto" else 1e-9
    solution = solve(problem, target=target, budget=float(seconds), reference=False)
    grid = result_grid(problem).points
    with jax.enable_x64(True):
        system = solution.system
        probe = Probe(system)
        truth = known(system, grid, REFERENCE_ERROR, REFERENCE_SECONDS).truth
        if truth is None:
            return
        worst = max(e.heldout for e in solution.report.equations)
        found = estimated(probe, solution.model, grid, ESTIMATE_SECONDS, worst)
        yield from compared(name, run, solution, probe, truth, found, grid)


def compared(
    name: str,
    run: str,
    solution: Solution,
    probe: Probe,
    truth: Truth,
    found: Estimate | str,
    grid: np.ndarray,
) -> Iterator[Row]:
    """A row for each field whose true error is known well enough."""
    estimates: dict[str, float] = {}
    if isinstance(found, Estimate):
        estimates = {f.field: f.rel_l2 for f in found.fields}
    why = found if isinstance(found, str) else ""
    for error in field_errors(probe, solution.model, truth, grid):
        if error.rel_l2 > USABLE_TRUTH * error.own:
            estimate = estimates.get(error.field)
            yield Row(name, error.field, run, error.rel_l2, estimate, why)


def read(store: Path) -> list[Row]:
    """The rows that were kept."""
    if not store.exists():
        return []
    with store.open(newline="") as file:
        return [
            Row(
                r["problem"],
                r["field"],
                r["run"],
                float(r["error"]),
                float(r["estimate"]) if r["estimate"] else None,
                r["why"],
            )
            for r in csv.DictReader(file)
        ]


def write(store: Path, rows: list[Row]) -> None:
    """Keeps the rows."""
    with store.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(r) for r in rows)


def markdown(rows: list[Row]) -> str:
    """The share of good estimates, then every row."""
    known = [r.effectivity for r in rows if r.effectivity is not None]
    good = sum(1 / GOOD <= e <= GOOD for e in known)
    lines = [
        f"Of {len(rows)} fields {len(known)} have an estimate; {good} of these "
        f"({good / max(len(known), 1):.0%}) are within a factor of {GOOD:g}.",
        "",
        "| problem | field | run | true error | estimate | estimate / error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        found = "-" if r.estimate is None else f"{r.estimate:.1e}"
        ratio = r.why if r.effectivity is None else f"{r.effectivity:.2f}"
        lines.append(
            f"| {r.problem} | {r.field} | {r.run} | {r.error:.1e} | {found} | {ratio} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
