"""How time and memory of training grow with points, parameters and devices.

    python experiments/scaling.py [--large] [--repeats 5] [-o DIR]

Each measurement is a process of its own: Burgers' equation with a network of four
hidden layers, compiled, then the loss with its gradient and a look at fresh points
(with ten candidates for each point), `--repeats` times. The table scaling.csv has the
median seconds of both, the memory that XLA needs beside its arguments, and the peak of
the process. scaling.png has them against the theory: seconds grow as points times
parameters and fall as the devices, as long as there is a core for each. `--large` goes
to a million points and a hundred thousand parameters: half an hour and more.
"""

import argparse
import csv
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from pinnlab.cli.gallery import find_problem
from pinnlab.devices import make_mesh
from pinnlab.memory import peak_memory
from pinnlab.points import look
from pinnlab.problem.file import load_problem
from pinnlab.programs import compiled
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.training import prepare


DEPTH, CANDIDATES = 4, 10
POINTS, WIDTHS = (2_000, 8_000, 32_000), (10, 20, 40)
LARGE_POINTS, LARGE_WIDTHS = (10_000, 100_000, 1_000_000), (20, 60, 180)
FLAG = "--xla_force_host_platform_device_count="


@dataclass(frozen=True)
class Case:
    """What one process measures. `over`: what grows in its series."""

    over: str
    points: int
    width: int
    devices: int = 1


@dataclass(frozen=True)
class Measured:
    """What one process found; memory in MB."""

    over: str
    points: int
    parameters: int
    devices: int
    gradient_seconds: float
    look_seconds: float
    gradient_mb: float
    look_mb: float
    peak_mb: float


def main() -> None:
    """Measure all cases, write the table and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true", help="up to 1e6 points")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=Path("scaling"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = measure(Case(**json.loads(options.one)), options.repeats)
        print(json.dumps(dataclasses.asdict(found)))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for case in cases(options.large):
        rows.append(in_a_process(case, options.repeats))
        print(rows[-1], flush=True)
        write_table(options.output / "scaling.csv", rows)
    draw(rows).savefig(options.output / "scaling.png", dpi=150)
    for over in ("points", "parameters"):
        series = [r for r in rows if r.over == over]
        print(f"gradient: seconds grow as {over}^{exponent(series, over):.2f}")


def cases(large: bool) -> list[Case]:
    """Three series: over points, over parameters, over devices."""
    points, widths = (LARGE_POINTS, LARGE_WIDTHS) if large else (POINTS, WIDTHS)
    devices = [n for n in (1, 2, 4, 8) if n <= cores()]
    return [
        *(Case("points", n, widths[1]) for n in points),
        *(Case("parameters", points[1], w) for w in widths),
        *(Case("devices", points[1], widths[1], n) for n in devices),
    ]


def in_a_process(case: Case, repeats: int) -> Measured:
    """The measurement in a process of its own, with so many CPU devices.

    A device has one thread, so that several of them do not share their cores.
    """
    threads = " --xla_cpu_multi_thread_eigen=false" if case.over == "devices" else ""
    environment = os.environ | {"XLA_FLAGS": f"{FLAG}{case.devices}{threads}"}
    text = json.dumps(dataclasses.asdict(case))
    command = [sys.executable, __file__, "--one", text, "--repeats", str(repeats)]
    found = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return Measured(**json.loads(found.stdout.splitlines()[-1]))


def measure(case: Case, repeats: int) -> Measured:
    """Time and memory of the gradient and of a look, compiled before."""
    changes = {
        "solver.strategy": "nonlinear",
        "solver.optimizer": "adam",
        "solver.points": case.points,
        "solver.network.width": case.width,
        "solver.network.depth": DEPTH,
    }
    problem = load_problem(find_problem("burgers"), changes)
    with jax.enable_x64(True):
        system = build_system(problem)
        made = prepare(system, plan(system, read_settings(problem.solver), 1e-3), 0)
        objective, theta = made.objective.on(make_mesh(case.devices)), made.theta
        gradient = timed(lambda o, t: o.value_and_grad(t), objective, theta, repeats)
        key = jax.random.key(0)
        fresh = timed(
            lambda o, t: look(o, t, key, CANDIDATES)[1], objective, theta, repeats
        )
    peak = peak_memory() / 2**20
    return Measured(
        case.over, case.points, theta.size, case.devices,
        gradient[0], fresh[0], gradient[1], fresh[1], peak,
    )  # fmt: skip


def timed(
    function: Callable, objective: object, theta: object, repeats: int
) -> tuple[float, float]:
    """The median seconds of a compiled function, and its spare memory in MB."""
    program: Any = compiled(function, objective, theta)
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        jax.block_until_ready(program(objective, theta))
        seconds.append(time.perf_counter() - began)
    spare = program.compiled.memory_analysis().temp_size_in_bytes / 1e6
    return statistics.median(seconds[1:]), spare


def exponent(rows: list[Measured], over: str) -> float:
    """The slope of the gradient's seconds in logarithms."""
    x = np.log([getattr(r, over) for r in rows])
    y = np.log([r.gradient_seconds for r in rows])
    return float(np.polyfit(x, y, 1)[0])


def write_table(path: Path, rows: list[Measured]) -> None:
    """A row for each measurement."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([f.name for f in dataclasses.fields(Measured)])
        table.writerows(dataclasses.astuple(r) for r in rows)


def draw(rows: list[Measured]) -> Figure:
    """A column for each series: seconds above, memory below; dashed is the theory."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots(2, 3)
    for column, over in enumerate(("points", "parameters", "devices")):
        series = [r for r in rows if r.over == over]
        x = np.array([getattr(r, over) for r in series], float)
        above, below = axes[:, column]
        power = -1 if over == "devices" else 1
        for name, what in (("gradient_seconds", "gradient"), ("look_seconds", "look")):
            y = np.array([getattr(r, name) for r in series])
            (line,) = above.loglog(x, y, "o-", label=what)
            anchor = 0 if over == "devices" else -1
            theory = y[anchor] * (x / x[anchor]) ** power
            above.loglog(x, theory, "--", color=line.get_color(), lw=1)
        for name in ("gradient_mb", "look_mb", "peak_mb"):
            y = [getattr(r, name) for r in series]
            below.loglog(x, y, "o-", label=name.removesuffix("_mb"))
        below.set(xlabel=over)
        above.set_title("seconds" if column == 0 else "")
        below.set_title("memory in MB" if column == 0 else "")
        for ax in (above, below):
            ax.set_xticks(x, [f"{v:g}" for v in x])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.legend()
    return figure


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
