"""Real processes on loopback: they find what one finds, stop and end together."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pinnlab.hdf5 import read_result


pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
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
strategy = "nonlinear"
optimizer = "ssbroyden"
points = 33
adam = 10
redraw = 20
network = { width = 5, depth = 1 }
"""
PATIENCE = 120.0


class Pair:
    """Two processes with two devices each that solve the problem of a folder."""

    def __init__(self, folder: Path, *more: str):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            where = f"127.0.0.1:{free.getsockname()[1]}"
        options = ("--coordinator", where, "--processes", "2", *more)
        self.both = [start(folder, i, *options, "--process", str(i)) for i in (0, 1)]

    def wait_for_training(self) -> None:
        """Returns when the first steps were made."""
        began = time.monotonic()
        while "iteration" not in self.said(0):
            assert all(p.poll() is None for p in self.both), self.said(0)
            assert time.monotonic() - began < PATIENCE, self.said(0)
            time.sleep(0.1)

    def said(self, index: int) -> str:
        """The standard error of a process."""
        return (self.folder / f"{index}.err").read_text()

    def statuses(self) -> list[int]:
        """Those that the processes leave with."""
        return [p.wait(PATIENCE) for p in self.both]


def start(folder: Path, index: int, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "pinnlab", "solve", "growth.toml", *options]
    flags = "--xla_force_host_platform_device_count=2"
    environment = {"XLA_FLAGS": flags, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    with (
        (folder / f"{index}.out").open("w") as out,
        (folder / f"{index}.err").open("w") as err,
    ):
        return subprocess.Popen(
            [*command, "--no-plot", "--no-reference"],
            cwd=folder,
            env=os.environ | environment,
            stdout=out,
            stderr=err,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "growth.toml").write_text(PROBLEM)
    return tmp_path


def test_two_processes_find_what_one_finds_and_one_writes(folder: Path):
    fixed = ("--set", "solver.iterations=30", "--json", "--debug", "--budget", "1h")
    pair = Pair(folder, *fixed, "-o", "two.h5")
    assert pair.statuses() in ([0, 0], [1, 1]), pair.said(0) + pair.said(1)
    answer = json.loads((folder / "0.out").read_text())
    assert answer["file"] == "two.h5"
    assert (folder / "1.out").read_text() == ""
    alone = start(folder, 2, *fixed, "-o", "one.h5", "--devices", "1")
    assert alone.wait(PATIENCE) in (0, 1)
    two, one = (read_result(folder / f"{name}.h5") for name in ("two", "one"))
    np.testing.assert_array_equal(two.history["step"], one.history["step"])
    np.testing.assert_allclose(two.history["loss"], one.history["loss"], rtol=1e-6)
    assert two.report.diagnosis is not None
    checks = {c.name: c for c in two.report.diagnosis.checks}
    assert checks["replicas agree"].passed
    assert checks["no transfers in a step"].passed, checks


def test_wrong_input_is_said_once_and_is_the_status_of_all(folder: Path):
    pair = Pair(folder, "--set", "solver.points=some")
    assert pair.statuses() == [2, 2]
    assert "expected an integer" in pair.said(0)
    assert "integer" not in pair.said(1)


def test_they_stop_together_and_survive_each_others_deaths(folder: Path):
    """Preempted, then without process 1, then without process 0, then alone."""
    checkpoint = folder / "growth.ckpt"
    pair = Pair(folder, "--budget", "1h", "--target", "1e-9")
    pair.wait_for_training()
    pair.both[1].send_signal(signal.SIGTERM)
    assert pair.statuses() == [75, 75], pair.said(0) + pair.said(1)
    assert "stopped by SIGTERM: --resume goes on" in pair.said(0)
    assert checkpoint.exists()
    for victim in (1, 0):
        pair = Pair(folder, "--budget", "1h", "--target", "1e-9", "--resume")
        pair.wait_for_training()
        pair.both[victim].kill()
        began = time.monotonic()
        assert pair.both[1 - victim].wait(PATIENCE) == 75, pair.said(1 - victim)
        assert time.monotonic() - began < 30
        said = f"process {victim} has died, or its computer is lost; --resume goes on"
        assert said in pair.said(1 - victim)
        assert checkpoint.exists()
    more = ("--resume", "--devices", "1", "--budget", "1s", "--target", "1e-9")
    alone = start(folder, 0, *more)
    assert alone.wait(PATIENCE) == 1
    assert "going on from growth.ckpt" in (folder / "0.err").read_text()
    assert (folder / "growth.h5").exists()
    assert not checkpoint.exists()
