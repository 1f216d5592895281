"""Sweeps under a real Slurm: jobs, nodes and drivers die, each run is there once.

Where Slurm is not installed these tests are skipped with the reason.
"""

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from simulator import NODES, Slurm, within
from test_sweep_experiment import PROBLEM


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TRAINED = """
strategy = "nonlinear"
optimizer = "adam"
points = 64
network.width = 4
network.depth = 1
"""
EXPERIMENT = """
problem = "logistic.toml"
budget = "20s"
reference = false

[axes]
parameters.r = {values}

[resources]
cpus = 2
memory = "1GB"

[slurm]
workers = 2
walltime = "20m"
interface = "lo"
extra = {extra}
"""


class Sweep:
    """A sweep of the command line on a cluster."""

    def __init__(self, slurm: Slurm, folder: Path, runs: int, extra: list[str]):
        (folder / "logistic.toml").write_text(PROBLEM)
        text = EXPERIMENT.format(
            values=[1 + i / 10 for i in range(runs)], extra=repr(extra)
        )
        (folder / "growth.toml").write_text(text)
        self.slurm, self.folder, self.runs = slurm, folder, runs
        self.output = folder / "growth"

    def start(self, *more: str, before: tuple[str, ...] = ()) -> subprocess.Popen:
        """The command, running."""
        code = "from pinnlab.cli.main import main; main()"
        command = [*before, sys.executable, "-c", code, "sweep", "growth.toml", *more]
        path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.slurm.environment | {"PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )

    def results(self) -> dict[str, int]:
        """When each result was written."""
        found = self.output.glob("runs/*.h5")
        return {p.stem: p.stat().st_mtime_ns for p in found}

    def leases(self) -> int:
        """How many runs somebody works on."""
        return len(list(self.output.glob("leases/[0-9a-f]*")))

    def eventually(self, holds: Callable[[], bool], driver: subprocess.Popen) -> None:
        """Waits; an early end of the driver is a failure with its words."""
        found = within(120, lambda: holds() or driver.poll() is not None)
        assert found and driver.poll() is None, self.words(driver)

    def words(self, driver: subprocess.Popen) -> str:
        """What a driver said, ended first."""
        driver.kill()
        jobs = (p.read_text() for p in self.output.glob("jobs/*.err"))
        return "\n".join([driver.communicate()[1], *jobs])

    def ends_complete(self, driver: subprocess.Popen) -> None:
        """The driver ends well and every run is there once."""
        try:
            said = driver.communicate(timeout=400)[1]
        except subprocess.TimeoutExpired:
            pytest.fail(self.words(driver))
        assert driver.returncode == 0, said
        with (self.output / "sweep.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [r["verdict"] for r in rows] == ["pass"] * self.runs
        assert {r["id"] for r in rows} == set(self.results())
        assert len({r["id"] for r in rows}) == self.runs
        assert self.leases() == 0


def test_a_sweep_runs_on_both_nodes(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 4, [])
    driver = sweep.start("--on", "slurm")
    sweep.eventually(lambda: set(idle.jobs().values()) == set(NODES), driver)
    sweep.ends_complete(driver)
    assert within(30, lambda: not idle.jobs("running,pending"))


def test_a_node_that_dies_in_the_middle_costs_no_run(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 5, [])
    driver = sweep.start("--on", "slurm")
    sweep.eventually(lambda: sweep.leases() == 2, driver)
    idle.kill_node("n1")
    sweep.eventually(lambda: len(sweep.results()) >= 2, driver)
    idle.start_node("n1")
    sweep.ends_complete(driver)


def test_a_job_that_is_cancelled_is_replaced(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 4, [])
    driver = sweep.start("--on", "slurm", "--workers", "1")
    sweep.eventually(lambda: sweep.leases() == 1, driver)
    (job,) = idle.jobs()
    idle.call("scancel", job)
    sweep.ends_complete(driver)


def test_jobs_that_reach_their_walltime_are_replaced(idle: Slurm, tmp_path: Path):
    # Slurm's shortest limit, below what the workers were told: it really kills. It
    # does so up to half a minute late, and all the runs take longer than both.
    sweep = Sweep(idle, tmp_path, 20, ["--time=1"])
    driver = sweep.start("--on", "slurm", "--workers", "1")
    sweep.eventually(lambda: bool(idle.jobs("timeout")), driver)
    assert len(sweep.results()) < 20
    sweep.ends_complete(driver)


def test_a_run_longer_than_a_job_is_done_by_several(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 1, [])
    path = tmp_path / "growth.toml"
    text = path.read_text().replace('"20s"', '"90s"\ntarget = 1e-14')
    # A minute of work, and two to stop in.
    text = text.replace('walltime = "20m"', 'walltime = "3m"')
    path.write_text(f"{text}\n[solver]\n{TRAINED}")
    driver = sweep.start("--on", "slurm", "--workers", "1")
    try:
        said = driver.communicate(timeout=600)[1]
    except subprocess.TimeoutExpired:
        pytest.fail(sweep.words(driver))
    assert driver.returncode == 1, said  # No run reaches this target.
    assert "1 of 1 runs may take up to 105 s, and a job works for 60 s" in said
    (log,) = sweep.output.glob("runs/*.log")
    assert "stopped by SIGTERM" in log.read_text()
    assert "going on from" in log.read_text()
    (result,) = sweep.results()
    with h5py.File(sweep.output / "runs" / f"{result}.h5") as file:
        seconds = file["history/time"]
        assert isinstance(seconds, h5py.Dataset) and seconds[-1] > 80


def test_a_driver_that_is_killed_is_started_again(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 5, [])
    driver = sweep.start("--on", "slurm")
    sweep.eventually(lambda: len(sweep.results()) >= 1, driver)
    before = sweep.results()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    again = sweep.start("--on", "slurm")
    sweep.ends_complete(again)
    after = sweep.results()
    assert {k: after[k] for k in before} == before


def test_runner_mode_shares_the_runs_of_one_allocation(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 4, [])
    inside = ("srun", "-N2", "-n2", "-c2", "--mpi=none")
    sweep.ends_complete(sweep.start("--on", "runner", before=inside))


def test_an_array_of_plain_jobs_shares_the_runs(idle: Slurm, tmp_path: Path):
    sweep = Sweep(idle, tmp_path, 4, [])
    code = "from pinnlab.cli.main import main; main()"
    command = f"{sys.executable} -c '{code}' sweep growth.toml --on runner"
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\ncd {tmp_path}\nPYTHONPATH={ROOT} {command}\n")
    idle.call("sbatch", "-a", "0-1", "-c2", "-o", f"{tmp_path}/job-%a.log", str(script))
    assert within(200, lambda: len(sweep.results()) == 4)
    assert within(60, lambda: not idle.jobs("running,pending"))
    sweep.ends_complete(sweep.start())


def test_processes_of_one_srun_train_together_stop_and_go_on(
    idle: Slurm, tmp_path: Path
):
    (tmp_path / "growth.toml").write_text(PROBLEM.replace("separable", "nonlinear"))

    def solving(log: Path, *more: str) -> subprocess.Popen:
        command = ["srun", "-N2", "-n2", "-c2", "--mpi=none", sys.executable, "-m"]
        command += ["pinnlab", "solve", "growth.toml", "--no-reference", "--no-plot"]
        with log.open("w") as file:
            return subprocess.Popen(
                [*command, *more],
                cwd=tmp_path,
                env=idle.environment | {"PYTHONPATH": str(ROOT)},
                stdout=file,
                stderr=file,
            )

    log = tmp_path / "first.log"
    run = solving(log, "--budget", "1h", "--target", "1e-9")
    trains = lambda: "iteration" in log.read_text() or run.poll() is not None
    assert within(120, trains) and run.poll() is None, log.read_text()
    (job,) = idle.jobs()
    idle.call("scancel", "--signal=TERM", job)
    assert run.wait(60) == 75, log.read_text()
    assert "stopped by SIGTERM: --resume goes on" in log.read_text()
    log = tmp_path / "second.log"
    run = solving(log, "--budget", "1s", "--target", "1e-9", "--resume")
    assert run.wait(120) == 1, log.read_text()
    assert "going on from growth.ckpt" in log.read_text()
    assert (tmp_path / "growth.h5").exists()
