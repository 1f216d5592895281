"""pinnlab beside DeepXDE and jinns: time to an error, cost of a gradient, lines.

    python -m venv peers && peers/bin/pip install deepxde torch jinns
    python experiments/peers/peers.py --python peers/bin/python [--seeds 3] [-o DIR]

Problems: Burgers' equation (nu = 0.01/pi) and Poisson's on the unit square. The others'
scripts beside this file follow their documentation; `race.py` measures them in their
own environment. pinnlab is its command line with default settings, a run for each
target. Every run leaves a file in DIR/runs and is not done again; the tables peers.md
and the picture peers.png are made anew each time. `--quick` takes one seed and races of
60 seconds. All use the cores that this process may use; run nothing beside it.
"""

import argparse
import csv
import datetime
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from gradient import gradient_milliseconds
from matplotlib.figure import Figure

from pinnlab import __version__
from pinnlab.hdf5 import read_result
from pinnlab.plotting import save_figure
from pinnlab.plotting.panels import log_across
from pinnlab.plotting.style import COLORS


HERE = Path(__file__).parent
PROBLEMS = ("burgers", "poisson_2d")
OTHERS = ("deepxde", "jinns")
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5)
WANTED = 1e-3
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Look:
    """An error at a time of training, and what was compiled before, in seconds."""

    seconds: float
    compiling: float
    error: float


Curve = list[Look]
Gradients = dict[tuple[str, str], float]


def main() -> None:
    """Runs what is missing, then writes tables and picture."""
    parser = argparse.ArgumentParser(description="pinnlab beside other libraries.")
    parser.add_argument("--python", type=Path, required=True, help="of the others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=600.0, help="of a race")
    parser.add_argument("--quick", action="store_true", help="a short first look")
    parser.add_argument("-o", "--output", type=Path, default=Path("peers-results"))
    options = parser.parse_args()
    seeds = range(1 if options.quick else options.seeds)
    seconds = 60.0 if options.quick else options.seconds
    runs = options.output / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    curves: dict[tuple[str, str], list[Curve]] = {}
    for problem in PROBLEMS:
        for library in ("pinnlab", *OTHERS):
            found = [
                ours(problem, seed, seconds, runs)
                if library == "pinnlab"
                else raced(library, problem, seed, seconds, runs, options.python)
                for seed in seeds
            ]
            curves[problem, library] = found
    costs = {
        (library, p): cost(library, p, runs, options.python)
        for library in ("pinnlab", *OTHERS)
        for p in PRECISIONS
    }
    text = markdown(curves, costs, seconds, versions(options.python))
    (options.output / "peers.md").write_text(text)
    save_figure(picture(curves), options.output / "peers.png", dpi=110)
    print(text)


# --------------------------------------------------------------------------- the runs


def ours(problem: str, seed: int, seconds: float, runs: Path) -> Curve:
    """A point for each target that pinnlab was asked for."""
    found = []
    for target in TARGETS:
        path = runs / f"pinnlab-{problem}-{target:.0e}-{seed}.h5"
        if not path.exists():
            print(path.stem, flush=True)
            command = [
                sys.executable, "-m", "pinnlab", "solve", problem, "--no-plot",
                "--no-reference", "--target", repr(target), "--budget", f"{seconds:g}s",
                "--seed", str(seed), "-o", str(path),
            ]  # fmt: skip
            subprocess.run(command, capture_output=True)
        report = read_result(path).report
        assert report.rel_l2 is not None
        cost = report.cost
        found.append(Look(cost.train_seconds, cost.compile_seconds, report.rel_l2))
    return sorted(found, key=lambda look: look.seconds)


def raced(
    library: str, problem: str, seed: int, seconds: float, runs: Path, python: Path
) -> Curve:
    """The curve of another library; empty where its script failed."""
    path = runs / f"{library}-{problem}-{seed}.csv"
    truth = runs / f"truth-{library}-{problem}.csv"
    points = exact(problem)
    if (library, problem) == ("deepxde", "burgers"):
        points = points[:, [1, 0, 2]]  # Time is the last coordinate there.
    np.savetxt(truth, points, delimiter=",")
    arguments = ["--seed", str(seed), "--seconds", str(seconds), "--truth", str(truth)]
    return measured(library, problem, path, python, arguments)


def cost(library: str, precision: str, runs: Path, python: Path) -> float:
    """Milliseconds of the loss of Burgers' equation with its gradient."""
    if library == "pinnlab":
        return gradient_milliseconds(precision)
    path = runs / f"{library}-gradient-{precision}.csv"
    found = measured(library, "gradient", path, python, ["--precision", precision])
    return found[0].seconds if found else float("nan")


def measured(
    library: str, what: str, path: Path, python: Path, arguments: list[str]
) -> Curve:
    """The rows that race.py leaves, unless they are there."""
    if not path.exists():
        print(path.stem, flush=True)
        program = [str(python.absolute()), str(HERE / "race.py"), library, what]
        command = [*program, *arguments, "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"  failed:\n{done.stderr[-1500:]}", flush=True)
            return []
    with path.open(newline="") as file:
        return [Look(*map(float, row)) for row in list(csv.reader(file))[1:]]


def exact(problem: str) -> np.ndarray:
    """Rows of two coordinates and the exact solution, [4141, 3] or [1681, 3]."""
    if problem == "poisson_2d":
        x, y = (g.ravel() for g in np.meshgrid(*[np.linspace(0, 1, 41)] * 2))
        return np.stack([x, y, np.sin(np.pi * x) * np.sin(np.pi * y)], axis=1)
    grids = np.linspace(0, 1, 41), np.linspace(-1, 1, 101)
    t, x = (g.ravel() for g in np.meshgrid(*grids))
    # Cole and Hopf: the trapezoidal rule is spectrally accurate for these integrals.
    nu = 0.01 / np.pi
    s = np.linspace(-16, 16, 4001)
    y = np.pi * (x[:, None] - np.sqrt(4 * nu * t)[:, None] * s)
    exponent = -np.cos(y) / (2 * np.pi * nu) - s**2
    weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    u = -(np.sin(y) * weight).sum(axis=1) / weight.sum(axis=1)
    return np.stack([t, x, u], axis=1)


# ------------------------------------------------------------------ tables and picture


def first(curve: Curve) -> Look | None:
    """The first look that had the wanted error."""
    return next((look for look in curve if look.error <= WANTED), None)


def lines(library: str, problem: str) -> int:
    """Lines that a user writes: no blanks, no comments, no exact solution."""
    if library == "pinnlab":
        path = HERE.parent.parent / "problems" / f"{problem}.toml"
        text = path.read_text()
        kept = [part for part in text.split("\n\n") if not part.startswith(TRUTH)]
        rows = "\n".join(kept).splitlines()
    else:
        rows = (HERE / f"{library}_{problem}.py").read_text().splitlines()
    return sum(bool(r.strip()) and not r.strip().startswith(("#", '"""')) for r in rows)


TRUTH = ("[exact]", "[definitions]")
"""Tables of our problem files that only state the exact solution."""


def markdown(
    curves: dict[tuple[str, str], list[Curve]],
    costs: Gradients,
    seconds: float,
    version: str,
) -> str:
    """Both tables, with what they were made by."""
    cores = len(os.sched_getaffinity(0))
    text = [
        f"Made on {datetime.date.today()} by `python experiments/peers/peers.py` on "
        f"{cores} cores ({platform.machine()}), Python {platform.python_version()}: "
        f"{version}. Races ended after {seconds:g} s of training; medians (worst) over "
        f"{len(next(iter(curves.values())))} seeds.",
        "",
        f"Time to a relative L2 error of {WANTED:g}; compilation, where it is apart, "
        "is not in it:",
        "",
        "| problem | library | seconds | compiling | smallest error | lines |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (problem, library), found in curves.items():
        cells = [problem, library, *_reached(found, seconds)]
        text.append("| " + " | ".join([*cells, str(lines(library, problem))]) + " |")
    text += [
        "",
        "One loss with its gradient, tanh 3 x 20, 2540 points and those of the "
        "conditions, Burgers' equation, in milliseconds:",
        "",
        "| library | " + " | ".join(PRECISIONS) + " |",
        "| --- |" + " --- |" * len(PRECISIONS),
    ]
    for library in ("pinnlab", *OTHERS):
        cells = [f"{costs[library, p]:.1f}" for p in PRECISIONS]
        text.append("| " + " | ".join([library, *cells]) + " |")
    return "\n".join([*text, ""])


def _reached(found: list[Curve], limit: float) -> list[str]:
    """Seconds to the wanted error, compilation, and the smallest error of a median."""
    if not all(found):
        return ["the script failed", "-", "-"]
    looks = [first(c) for c in found]
    times = [np.inf if k is None else k.seconds for k in looks]
    shown = [f"{t:.1f}" if np.isfinite(t) else f"above {limit:g}" for t in
             (statistics.median(times), max(times))]  # fmt: skip
    smallest = statistics.median(min(k.error for k in c) for c in found)
    compiling = statistics.median(c[-1].compiling for c in found)
    return [f"{shown[0]} ({shown[1]})", f"{compiling:.1f}", f"{smallest:.1e}"]


def picture(curves: dict[tuple[str, str], list[Curve]]) -> Figure:
    """Error against time: a line for each race, a point for each run of pinnlab."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for ax, problem in zip(figure.subplots(1, 2), PROBLEMS, strict=True):
        for color, library in zip(COLORS, ("pinnlab", *OTHERS), strict=False):
            for i, curve in enumerate(curves[problem, library]):
                shown = [(k.seconds, k.error) for k in curve if k.seconds > 0]
                label = library if i == 0 else None
                # A point is a run of its own.
                style = "o" if library == "pinnlab" else "-"
                times, errors = np.reshape(shown, (-1, 2)).T
                ax.plot(times, errors, style, ms=4, lw=1.2, color=color, label=label)
        ax.axhline(WANTED, color="black", lw=0.8, ls=":")
        ax.set(yscale="log", title=problem)
        ax.set(xlabel="training seconds", ylabel="relative $L^2$ error")
        log_across(ax)
        ax.legend()
    return figure


def versions(python: Path) -> str:
    """The packages that took part."""
    names = ("deepxde", "torch", "jinns", "jax")
    program = (
        "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
    )
    done = subprocess.run(
        [python, "-c", program, *names], capture_output=True, text=True, check=True
    )
    theirs = [f"{n} {v}" for n, v in zip(names, done.stdout.split(), strict=True)]
    return f"pinnlab {__version__} (jax {jax.__version__}), " + ", ".join(theirs)


if __name__ == "__main__":
    main()
