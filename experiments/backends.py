"""Jacobian, sketch and steps on every kind of device that JAX finds: CPU against GPU.

    python experiments/backends.py [--repeats 10] [--precision float64] [-o FILE]

Each kind is measured in a process of its own, on its first device; a table has the
median milliseconds, compiled before, and how many times faster the others are than the
CPU. Without a GPU there is the CPU's column alone. The scorecard's rows 8 to 15 on the
same GPU:

    python experiments/scorecard.py --only burgers,burgers_sharp,allen_cahn,kdv,\
kuramoto_sivashinsky,wave_1d,convection_50,reaction_5,cavity_100
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
from scaling import timed

from pinnlab.cli.gallery import find_problem
from pinnlab.devices import single
from pinnlab.optimizer import LevenbergMarquardt, SketchedGaussNewton, SSBroyden
from pinnlab.optimizer.known import Known
from pinnlab.problem.file import load_problem
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.training import prepare


KINDS = ("cpu", "cuda", "rocm", "tpu")


@dataclass(frozen=True)
class Case:
    """A problem of the gallery, a network and points."""

    problem: str
    width: int
    depth: int
    points: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.problem}, {self.depth} x {self.width}, {self.points} points"


CASES = (
    Case("burgers", 20, 3, 2000),
    Case("burgers", 30, 3, 4000),
    Case("kovasznay", 20, 3, 2000),
)
MOST_NUMBERS = 3e8
"""A dense Jacobian is taken up to so many numbers."""


def main() -> None:
    """Measure on all kinds and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(CASES[int(options.one)], options)))
        return
    found = {kind: in_processes(kind, options) for kind in KINDS}
    text = table({k: f for k, f in found.items() if f}, options.precision)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


def in_processes(kind: str, options: argparse.Namespace) -> dict[str, float] | None:
    """All cases on a kind of device; None where there is none."""
    environment = os.environ | {"JAX_PLATFORMS": kind}
    probe = [sys.executable, "-c", "import jax; jax.devices()"]
    if subprocess.run(probe, env=environment, capture_output=True).returncode:
        return None
    rows: dict[str, float] = {}
    for i, case in enumerate(CASES):
        command = [
            sys.executable, __file__, "--one", str(i), "--repeats",
            str(options.repeats), "--precision", options.precision,
        ]  # fmt: skip
        done = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        for name, seconds in json.loads(done.stdout.splitlines()[-1]).items():
            rows[f"{case.text}: {name}"] = seconds
    return rows


def measure(case: Case, options: argparse.Namespace) -> dict[str, float]:
    """The median seconds of each program on the first device."""
    changes = {
        "solver.strategy": "nonlinear",
        "solver.points": case.points,
        "solver.precision": options.precision,
        "solver.network.width": case.width,
        "solver.network.depth": case.depth,
    }
    problem = load_problem(find_problem(case.problem), changes)
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        system = build_system(problem)
        made = prepare(system, plan(system, read_settings(problem.solver), 1e-3), 0)
        objective, theta = made.objective.on(single()), made.theta
        known = Known(*objective.value_and_grad(theta), objective.unravel)
        sketched = SketchedGaussNewton()
        programs: dict[str, Callable] = {
            "gradient": lambda o, t: o.value_and_grad(t),
            "sketch": lambda o, t: sketched._sketch(o, t, jnp.asarray(0)),
        }
        optimizers = {"sketched step": sketched, "SSBroyden step": SSBroyden()}
        if objective.residuals(theta).size * theta.size < MOST_NUMBERS:
            programs["Jacobian"] = lambda o, t: o.jacobian(t)
            optimizers["Levenberg-Marquardt step"] = LevenbergMarquardt()
        for name, optimizer in optimizers.items():
            state = optimizer.init(known, theta)
            programs[name] = lambda o, t, s=state, m=optimizer: m.step(o, t, s)
        return {
            name: timed(program, objective, theta, options.repeats)[0]
            for name, program in programs.items()
        }


def table(found: dict[str, dict[str, float]], precision: str) -> str:
    """Milliseconds by kind of device, and ratios to the CPU's."""
    others = [k for k in found if k != "cpu"]
    heads = [f"program ({precision})", *(f"{k}, ms" for k in found)]
    heads += [f"{k}, times faster" for k in others]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for name, seconds in found["cpu"].items():
        cells = [name, *(f"{1e3 * found[k][name]:.3g}" for k in found)]
        cells += [f"{seconds / found[k][name]:.2g}" for k in others]
        lines.append(f"| {' | '.join(cells)} |")
    if not others:
        lines += ["", "JAX found no device but the CPU."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
