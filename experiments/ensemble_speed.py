"""Many seeds in one compiled program against one process each: members a second.

    python experiments/ensemble_speed.py [PROBLEM] [MEMBERS] [ITERATIONS]

All ways make the same steps from the same seeds, and are timed one after another in
turn, several rounds in one run; compilation is timed apart. "one by one" is a program
that is compiled once and run for each member; "processes" are as many as there are
cores at a time, one thread of linear algebra each, with their own start and compilation
(with an empty cache, as on a new computer).
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax


jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

from pinnlab.assembly import scaled_network_of  # noqa: E402
from pinnlab.cli.gallery import find_problem  # noqa: E402
from pinnlab.ensemble.programs import Layout  # noqa: E402
from pinnlab.ensemble.stack import stacked  # noqa: E402
from pinnlab.ensemble.train import train_members  # noqa: E402
from pinnlab.problem.file import load_problem  # noqa: E402
from pinnlab.programs import Stage  # noqa: E402
from pinnlab.settings import read_settings  # noqa: E402
from pinnlab.strategy import plan  # noqa: E402
from pinnlab.system.system import build_system  # noqa: E402
from pinnlab.train import Hooks, Limits, train  # noqa: E402
from pinnlab.training import Prepared, prepare  # noqa: E402


ROUNDS = 3
FREE = Limits(1e9, 0.0, 0.0)


def main(name: str, count: int, iterations: int) -> None:
    """Print a table: seconds to compile, and to train, members a second, ratio."""
    problem = load_problem(find_problem(name), {"solver.strategy": "nonlinear"})
    system = build_system(problem)
    chosen = plan(system, read_settings(problem.solver), 1e-3)
    last = chosen.stages[-1]
    stage = Stage(last.name, last.optimizer, iterations, iterations, True, last.pool)
    began = time.perf_counter()
    members = [prepare(system, chosen, s, scaled_network_of) for s in range(count)]
    spent = time.perf_counter() - began
    print(f"{name}: {members[0].theta.size} parameters; prepared in {spent:.1f} s")
    print(f"{count} members, {iterations} iterations of {stage.name}", flush=True)
    ways = {"one alone, times members": None, "batched, one by one": 1, "vmap": 0}
    times: dict[str, list[tuple[float, float]]] = {w: [] for w in ways}
    for _ in range(ROUNDS):
        for way, together in ways.items():
            if together is None:
                times[way].append(alone(members[0], stage, count))
            else:
                times[way].append(batched(members, stage, Layout(together)))
    base = statistics.median(t for _, t in times["one alone, times members"])
    print(f"{'':28} compile s   train s   members/s   speed")
    for way, found in times.items():
        compiling, training = map(statistics.median, zip(*found, strict=True))
        rate, ratio = count / training, base / training
        print(f"{way:28} {compiling:9.1f} {training:9.2f} {rate:11.3f} {ratio:7.2f}")
    sys.stdout.flush()
    processes(name, count, iterations)


def alone(one: Prepared, stage: Stage, count: int) -> tuple[float, float]:
    """Seconds to compile one run, and to train as many as there are members."""
    hooks, theta = Hooks(lambda row: None), jnp.array(one.theta)
    found = train(one.objective, theta, (stage,), FREE, key=one.key, hooks=hooks)
    return found.record.compile_seconds, count * found.record.train_seconds


def batched(
    members: list[Prepared], stage: Stage, layout: Layout
) -> tuple[float, float]:
    """Seconds to compile and to train all members in one program."""
    found = train_members(
        stacked([m.objective for m in members]),
        jnp.stack([m.theta for m in members]),
        (stage,),
        FREE,
        keys=jnp.stack([m.key for m in members]),
        layout=layout,
        observe=lambda row: None,
    )
    times = [(t.record.compile_seconds, t.record.train_seconds) for t in found]
    compiling, training = map(sum, zip(*times, strict=True))
    return compiling, training


def processes(name: str, count: int, iterations: int) -> None:
    """Print the wall seconds of `pinnlab solve` for all seeds, and of --seeds."""
    changes = ("strategy=nonlinear", "adam=0", f"iterations={iterations}")
    command = [
        sys.executable, "-m", "pinnlab", "solve", name, "--no-reference", "--no-plot",
        "--budget", "1h", "--target", "1e-12",
        *(word for c in changes for word in ("--set", f"solver.{c}")),
    ]  # fmt: skip
    single = {
        "OMP_NUM_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:

        def one(seed: int) -> None:
            environment = os.environ | single | {"XDG_CACHE_HOME": f"{folder}/{seed}"}
            options = ["--seed", f"{seed}", "-o", f"{seed}.h5"]
            subprocess.run(
                [*command, *options], cwd=folder, env=environment, capture_output=True
            )
            assert Path(folder, f"{seed}.h5").exists()

        began = time.perf_counter()
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(one, range(count)))
        apart, began = time.perf_counter() - began, time.perf_counter()
        environment = os.environ | {"XDG_CACHE_HOME": f"{folder}/all"}
        options = ["--seeds", f"{count}", "-o", "all.h5"]
        subprocess.run(
            [*command, *options], cwd=folder, env=environment, capture_output=True
        )
        assert Path(folder, "all.h5").exists()
        together = time.perf_counter() - began
    print("whole commands, with start, compilation and verification:")
    print(f"  a process each, {cores} at a time: {apart:.1f} s")
    print(f"  --seeds {count}: {together:.1f} s, {apart / together:.2f} times as fast")


if __name__ == "__main__":
    given = sys.argv[1:] + ["burgers", "8", "200"][len(sys.argv) - 1 :]
    main(given[0], int(given[1]), int(given[2]))
