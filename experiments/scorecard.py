"""The scorecard: errors reached in a given time by `pinnlab solve`, default settings.

    python experiments/scorecard.py [--only burgers,kdv] [--quick] [--seeds 3] [-o DIR]

Every goal is a row: a problem, an error and seconds of training. Problems are those of
the gallery, and of the folder `problems` beside this file. Each
run is the command line's own, in a process of its own; its result file stays in
DIR/runs, and a run whose file is there is not done again. The tables scorecard.md and
scorecard.h5 are made anew from the files each time. `--quick` takes one seed of the
goals that need at most ten seconds. A moonshot is a wish beyond the goals of its row.

The error is the relative L2 error on the result's grid against the exact solution or
our own classical reference, whose own error is a column; the worst field counts. That
of cavity_400 is taken on both centre lines, against those of `cavity_reference.py`, as
is that of cavity_100 everywhere.
"""

import argparse
import datetime
import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result
from pinnlab.result import Result


DESCRIPTION = "Errors reached in a given time, against the goals."
QUICK_SECONDS = 10
GRACE = 300
"""Seconds that a run may take beyond its budget: compilation and verification."""


@dataclass(frozen=True)
class Goal:
    """An error to reach in some seconds on two cores.

    - `fields`: those that count; all if empty.
    - `inside`: bounds of a coordinate within which the error is taken.
    - `published`: the best published error, on whatever hardware.
    - `moonshot`: whether it is a wish beyond the goals of its row.
    """

    row: int
    problem: str
    error: float
    seconds: int
    published: str
    fields: tuple[str, ...] = ()
    inside: tuple[str, float, float] | None = None
    moonshot: bool = False

    @property
    def label(self) -> str:
        """The problem, and where the error is taken if not everywhere."""
        if self.inside is None:
            return self.problem
        name, lower, upper = self.inside
        return f"{self.problem}, {lower:g} <= {name} <= {upper:g}"


GOALS = (
    Goal(1, "poisson_2d", 1e-12, 2, "6e-8 in 468 s"),
    Goal(2, "poisson_multiscale", 1e-10, 60, "4.5e-14 in 281 s (H100)"),
    Goal(3, "helmholtz_14", 1e-10, 5, "1e-6 .. 1e-8"),
    Goal(3, "helmholtz_66", 1e-10, 60, "1e-6 .. 1e-8"),
    Goal(4, "laplace_four_holes", 3e-4, 30, "1.2e-2"),
    Goal(4, "laplace_four_holes", 3e-5, 120, "1.2e-2"),
    Goal(4, "laplace_four_holes", 1e-6, 120, "1.2e-2", moonshot=True),
    Goal(5, "poisson_boltzmann", 1e-3, 60, "1.4e-2"),
    Goal(5, "poisson_boltzmann", 1e-5, 60, "1.4e-2", moonshot=True),
    Goal(6, "heat_multiscale", 1e-6, 60, "6.2e-2"),
    Goal(6, "heat_multiscale", 1e-9, 60, "6.2e-2", moonshot=True),
    Goal(7, "heat_1d", 1e-10, 10, "2.8e-8"),
    Goal(7, "heat_4d", 1e-5, 120, "1e-5 (GPU)"),
    Goal(7, "heat_4d", 1e-9, 120, "1e-5 (GPU)", moonshot=True),
    Goal(8, "burgers", 1e-4, 45, "8.3e-9 (GPU, most of an hour)"),
    Goal(8, "burgers", 5e-6, 180, "8.3e-9 (GPU, most of an hour)"),
    Goal(8, "burgers", 1e-8, 180, "8.3e-9 (GPU, most of an hour)", moonshot=True),
    Goal(9, "burgers_sharp", 1e-4, 300, "2.7e-7 (GPU)"),
    Goal(10, "allen_cahn", 1e-4, 120, "1.9e-6 (GPU)"),
    Goal(10, "allen_cahn", 1e-5, 120, "1.9e-6 (GPU)", inside=("x", -0.95, 0.95)),
    Goal(10, "allen_cahn", 1e-7, 120, "1.9e-6 (GPU)", (), ("x", -0.95, 0.95), True),
    Goal(11, "kdv", 1e-4, 120, "8.2e-11 in 1210 s (H100)"),
    Goal(11, "kdv", 1e-7, 120, "8.2e-11 in 1210 s (H100)", moonshot=True),
    Goal(12, "kuramoto_sivashinsky", 1e-2, 600, "5.1e-7 in 87 min (H100)"),
    Goal(12, "kuramoto_sivashinsky", 1e-4, 600, "5.1e-7 in 87 min (H100)"),
    Goal(
        12, "kuramoto_sivashinsky", 1e-6, 600, "5.1e-7 in 87 min (H100)", moonshot=True
    ),
    Goal(13, "wave_1d", 1e-10, 5, "1.2e-15 in 635 s (H100)"),
    Goal(14, "convection_50", 1e-9, 5, "about 1e-12"),
    Goal(14, "reaction_5", 1e-8, 60, "9.9e-3"),
    Goal(15, "cavity_100", 1e-3, 300, "1.1e-4 in 403 s (H100)", fields=("u", "v")),
    Goal(15, "cavity_100", 1e-5, 300, "1.1e-4 in 403 s (H100)", ("u", "v"), None, True),
    Goal(16, "cavity_400", 1e-2, 600, "1.4e-2 in 90 s (GPU)", fields=("u", "v")),
    Goal(17, "schrodinger", 1e-5, 300, "2e-3"),
    Goal(18, "poisson_5d", 1e-10, 30, "3e-16 in 407 s (H100)"),
    Goal(18, "poisson_10d", 1e-6, 120, "6e-12 in 54 min (H100)"),
    Goal(18, "poisson_5d_product", 1e-2, 300, "-"),
    Goal(18, "poisson_5d_product", 1e-4, 300, "-", moonshot=True),
)


@dataclass(frozen=True)
class Score:
    """What one run reached.

    - `own`: the error of the truth itself.
    - `classical`: seconds of the cheapest classical solve that is as good.
    """

    seed: int
    error: float
    seconds: float
    compiling: float
    memory: float
    own: float
    classical: float
    verdict: str


def main() -> None:
    """Runs what is missing and writes the tables."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--only", default="", help="problems, separated by commas")
    parser.add_argument("--quick", action="store_true", help="a short first look")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=Path("scorecard"))
    options = parser.parse_args()
    runs = options.output / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    goals = chosen(options.only, options.quick)
    seeds = range(1 if options.quick else options.seeds)
    for goal in goals:
        for seed in seeds:
            run(goal, seed, runs)
            write_tables(options.output, runs)
    print((options.output / "scorecard.md").read_text())


def chosen(only: str, quick: bool) -> list[Goal]:
    """The goals asked for. Ends the program for a name that is not on the card."""
    names = [n for n in only.split(",") if n]
    known = {g.problem for g in GOALS}
    if unknown := sorted(set(names) - known):
        sys.exit(f"not on the scorecard: {', '.join(unknown)}; there are {known}")
    picked = [g for g in GOALS if not names or g.problem in names]
    return [g for g in picked if not quick or names or g.seconds <= QUICK_SECONDS]


def place(goal: Goal, seed: int, runs: Path) -> Path:
    """The result file of a run."""
    return runs / f"{goal.problem}-{goal.error:.0e}-{goal.seconds}s-{seed}.h5"


def run(goal: Goal, seed: int, runs: Path) -> None:
    """One run of the command line, unless its file is there."""
    path = place(goal, seed, runs)
    if path.exists():
        return
    print(
        f"{goal.problem}: {goal.error:g} in {goal.seconds} s, seed {seed}", flush=True
    )
    command = [
        sys.executable, "-m", "pinnlab", "solve", where(goal.problem), "--no-plot",
        "--target", repr(goal.error), "--budget", f"{goal.seconds}s",
        "--seed", str(seed), "-o", str(path),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=2 * goal.seconds + GRACE
        )
    except subprocess.TimeoutExpired:
        print("  did not end")
        return
    if not path.exists():
        print(f"  left no result, status {done.returncode}:\n{done.stderr[-2000:]}")


def where(problem: str) -> str:
    """What the command line finds a problem by."""
    own = Path(__file__).parent / "problems" / f"{problem}.toml"
    return str(own) if own.exists() else problem


def score(goal: Goal, seed: int, path: Path) -> Score:
    """The score that a result file shows."""
    result = read_result(path)
    report = result.report
    fields = [f for f in report.fields if not goal.fields or f.field in goal.fields]
    own = max((f.own for f in fields), default=np.nan)
    error = max((f.rel_l2 for f in fields), default=np.nan)
    if goal.inside is not None and fields:
        error = max(error_inside(result, f.field, f.against, goal) for f in fields)
    check = report.reference
    return Score(
        seed,
        error,
        report.cost.train_seconds,
        report.cost.compile_seconds,
        report.cost.peak_memory_mb,
        own,
        np.inf if check is None else check.seconds_alike,
        report.verdict,
    )


def error_inside(result: Result, field: str, against: str, goal: Goal) -> float:
    """The relative L2 error where a coordinate is within bounds."""
    assert goal.inside is not None
    name, lower, upper = goal.inside
    axis = list(result.axes).index(name)
    keep = (result.axes[name] >= lower) & (result.axes[name] <= upper)
    ours, truth = (
        np.compress(keep, result.variables[v], axis)
        for v in (field, f"{field}_{against}")
    )
    return float(np.linalg.norm(ours - truth) / np.linalg.norm(truth))


def write_tables(output: Path, runs: Path) -> None:
    """scorecard.md and scorecard.h5 of all runs whose files are there."""
    scores: dict[Goal, list[Score]] = {}
    for goal in GOALS:
        for path in sorted(runs.glob(place(goal, 0, runs).name[:-4] + "*.h5")):
            try:
                found = score(goal, int(path.stem.rsplit("-", 1)[1]), path)
            except ProblemError as unreadable:
                print(unreadable)
            else:
                scores.setdefault(goal, []).append(found)
    (output / "scorecard.md").write_text(markdown(scores))
    temporary = output / "scorecard.h5.part"
    write_columns(temporary, scores)
    shutil.move(temporary, output / "scorecard.h5")


HEADER = (
    "| # | problem | goal | error, median (worst) | seconds, median | compiling | "
    "memory | own error of the truth | classical, as good | best published | reached |"
)


def markdown(scores: dict[Goal, list[Score]]) -> str:
    """The table, with what it was made by."""
    version = importlib.metadata.version
    lines = [
        f"Made on {datetime.date.today()} by `python experiments/scorecard.py` on "
        f"{cores()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"jax {version('jax')}, pinnlab {version('pinnlab-jax')}; seconds are of "
        "training, after compilation.",
        "",
        HEADER,
        "|" + " --- |" * (HEADER.count("|") - 1),
    ]
    return "\n".join([*lines, *(row(g, s) for g, s in scores.items()), ""])


def row(goal: Goal, scores: list[Score]) -> str:
    """One line of the table."""
    errors = [s.error for s in scores]
    middle, worst = statistics.median(errors), max(errors)
    own = max(s.own for s in scores)
    reached = "yes"
    if middle > goal.error or worst > 10 * goal.error:
        reached = "no"
    elif middle + own > goal.error:
        reached = "not decided by this truth"
    classical = min(s.classical for s in scores)
    cells = [
        str(goal.row),
        goal.label,
        f"{goal.error:.0e} in {goal.seconds} s" + ", moonshot" * goal.moonshot,
        f"{middle:.1e} ({worst:.1e}, {len(scores)} seeds)",
        f"{statistics.median(s.seconds for s in scores):.1f} s",
        f"{statistics.median(s.compiling for s in scores):.1f} s",
        f"{max(s.memory for s in scores) / 1024:.1f} GB",
        f"{own:.0e}",
        "-" if not np.isfinite(classical) else f"{classical:.2g} s",
        goal.published,
        reached,
    ]
    return "| " + " | ".join(cells) + " |"


def write_columns(path: Path, scores: dict[Goal, list[Score]]) -> None:
    """An HDF5 file of one dataset for each column, a row for each run."""
    rows = [(g, s) for g, found in scores.items() for s in found]
    with h5py.File(path, "w") as file:
        file.attrs["columns"] = "one row for each run; errors are relative L2"
        file["problem"] = [g.label for g, _ in rows]
        file["goal_error"] = [g.error for g, _ in rows]
        file["goal_seconds"] = [g.seconds for g, _ in rows]
        for name in Score.__dataclass_fields__:
            file[name] = [getattr(s, name) for _, s in rows]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
