"""`doctor`: what pinnlab runs on and whether it works, for a bug report.

What it prints can be pasted into an issue: no names of hosts or users, no paths.
"""

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from pinnlab.cli.options import Json
from pinnlab.cli.terminal import Status, friendly
from pinnlab.memory import total_memory


PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "h5py",
    "matplotlib",
)
OPTIONAL = ("diffrax", "lineax", "optimistix", "xarray", "h5netcdf")
ENVIRONMENT = ("XLA_FLAGS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "JAX_", "XLA_")
"""Beginnings of the variables that change how JAX computes."""

PROBLEM = """
title = "Logistic growth"
coordinates = { t = [0, 2] }
fields = ["u"]
[equations]
growth = "dt(u) = 2*u*(1 - u)"
[conditions]
start = { on = "t = 0", equation = "u = 0.1" }
[exact]
u = "1/(1 + 9*exp(-2*t))"
[solver]
optimizer = "levenberg_marquardt"
iterations = 40
points = 64
redraw = 20
network = { width = 8, depth = 1 }
"""
TARGET = 1e-4


@dataclass(frozen=True)
class SelfTest:
    """A small problem with a known solution, solved: its error and what was wanted."""

    problem: str
    rel_l2: float | None
    target: float
    seconds: float
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is below the target."""
        return self.rel_l2 is not None and self.rel_l2 <= self.target


@friendly
def doctor(
    test: Annotated[
        bool, typer.Option(help="Solve a small problem with a known solution.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Show versions, devices and precision, and solve a small problem.

    The output holds no names of hosts or users and no paths. Exit status: 0 everything
    works, 1 the error of the small problem is too large or there is no float64.
    """
    facts = environment()
    tested = self_test() if test else None
    good = facts["float64"].startswith("yes") and (tested is None or tested.passed)
    if as_json:
        found = {"verdict": "pass" if good else "fail", "environment": facts}
        solved = asdict(tested) | {"passed": tested.passed} if tested else None
        typer.echo(json.dumps(found | {"self_test": solved}, indent=2))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            typer.echo(f"{name:<{width}}  {value}")
        if tested is not None:
            typer.echo(f"{'self-test':<{width}}  {_sentence(tested)}")
    raise typer.Exit(int(Status.PASS if good else Status.NOT_PASSED))


def environment() -> dict[str, str]:
    """Versions, devices, precision and settings, as short texts."""
    import jax

    import pinnlab
    from pinnlab.cli.gallery import gallery

    facts = {"pinnlab": pinnlab.__version__, "python": platform.python_version()}
    facts |= {name: _version(name) or "not installed" for name in PACKAGES}
    facts |= {name: found for name in OPTIONAL if (found := _version(name))}
    facts["system"] = f"{platform.system()} {platform.machine()}"
    facts["cores"] = str(_cores())
    facts["memory"] = _memory()
    devices = (f"{d.platform} ({d.device_kind})" for d in jax.devices())
    facts["devices"] = ", ".join(devices)
    facts["layout"] = layout()
    facts |= _precision()
    facts["gallery"] = f"{len(gallery())} problems"
    for name in sorted(os.environ):
        if name.startswith(ENVIRONMENT):
            facts[name] = _without_paths(os.environ[name])
    return facts


def layout() -> str:
    """How `solve` divides its points, and whether the devices can add numbers up."""
    import jax
    import jax.numpy as jnp

    from pinnlab.devices import make_mesh, split, summed

    mesh = make_mesh()
    count = mesh.size
    if count == 1:
        return "1 device has all points"
    ones = split(jnp.ones(count, jnp.int32), mesh)
    total = jax.jit(summed(lambda shared, own: jnp.sum(own), mesh))((), ones)
    works = "works" if int(total) == count else f"FAILED (found {int(total)})"
    return f"{count} devices share the points, adding up over them {works}"


def self_test() -> SelfTest:
    """Solve logistic growth by Levenberg-Marquardt; the error is usually 1e-6."""
    from pinnlab.problem.file import loads_problem
    from pinnlab.solver import solve

    began = time.perf_counter()
    error, failure = None, ""
    try:
        solution = solve(loads_problem(PROBLEM, "logistic"), target=TARGET, budget=60)
        error = solution.report.rel_l2
    except (ValueError, RuntimeError, ArithmeticError, ImportError) as problem:
        failure = _without_paths(f"{type(problem).__name__}: {problem}")
    seconds = time.perf_counter() - began
    return SelfTest("logistic growth", error, TARGET, round(seconds, 1), failure)


def _sentence(tested: SelfTest) -> str:
    if tested.rel_l2 is None:
        return f"FAILED ({tested.failure})"
    word = "passed" if tested.passed else "FAILED"
    return (
        f"{word}: {tested.problem}, relative L2 error {tested.rel_l2:.1e} "
        f"(wanted {tested.target:.0e}), {tested.seconds:.1f} s"
    )


def _precision() -> dict[str, str]:
    """What float64 and a float32 matrix product are worth on the first device."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    with jax.enable_x64(True):
        # The gap above 1: 2.2e-16 where float64 is real.
        gap = float(jnp.nextafter(jnp.ones(()), 2.0) - 1.0)
    answer = "yes" if gap < 1e-15 else "NO"
    facts = {"float64": f"{answer} (gap above 1: {gap:.1e})"}
    matrix = np.random.default_rng(0).normal(size=(128, 128))
    single = jnp.asarray(matrix, jnp.float32)
    true = np.asarray(single, float) @ np.asarray(single, float)
    for name in ("default", "highest"):
        with jax.default_matmul_precision(name):
            error = float(np.max(np.abs(np.asarray(single @ single) - true)))
        facts[f"matmul {name}"] = f"float32 error {error / np.max(np.abs(true)):.1e}"
    setting = jax.config.jax_default_matmul_precision  # pyright: ignore
    facts["matmul setting"] = f"{setting or 'default'} ('highest' while solving)"
    return facts


def _cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):  # Those that this process may use.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory() -> str:
    size = total_memory()
    return "unknown" if size is None else f"{size / 2**30:.0f} GB"


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _without_paths(text: str) -> str:
    """The text with every word that holds a path cut short."""
    words = []
    for word in text.split():
        cut = min((i for i in map(word.find, "/\\~") if i >= 0), default=-1)
        words.append(word if cut < 0 else word[:cut] + "(a path)")
    return " ".join(words)
