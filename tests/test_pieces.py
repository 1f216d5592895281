"""Points are computed in pieces that fit the memory there is."""

import subprocess
import sys

import numpy as np
import pytest

from pinnlab import memory
from pinnlab.assembly import sizes_of
from pinnlab.pieces import GRADIENTS, JACOBIANS, RESIDUALS, Pieces, Sizes, pieces_for
from pinnlab.problem.file import loads_problem
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.verify.preflight import check


GIGABYTE = 10**9
SIZES = Sizes(layer=4 * 1000, depth=4, row=10**6)

BURGERS = """
coordinates = { t = [0, 1], x = [-1, 1] }
fields = ["u"]
[equations]
momentum = "dt(u) + u*dx(u) = 0.01*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = -sin(pi*x)" }
walls = { on = ["x = -1", "x = 1"], equation = "u = 0" }
[solver]
strategy = "nonlinear"
optimizer = "adam"
"""


def test_with_much_memory_the_fastest_pieces_are_taken():
    assert pieces_for(SIZES, None) == Pieces()
    assert pieces_for(Sizes(80, 3, 2000), 16 * GIGABYTE) == Pieces()


@pytest.mark.parametrize("size", [GIGABYTE // 10, GIGABYTE, 16 * GIGABYTE])
def test_pieces_need_no_more_than_their_share(size):
    found = pieces_for(SIZES, size)
    for count, most, each in (
        (found.residuals, RESIDUALS, SIZES.residual),
        (found.gradient, GRADIENTS, SIZES.gradient),
        (found.jacobian, JACOBIANS, SIZES.gradient + 8 * SIZES.row),
    ):
        assert 1 <= count <= most
        assert count == 1 or count * each <= size / 8
        assert count == most or (count + 1) * each > size / 8


def test_sizes_count_the_derivatives_that_a_network_propagates():
    problem = loads_problem(BURGERS + "[solver.network]\nwidth = 50\ndepth = 2\n")
    system = build_system(problem)
    settings = plan(system, read_settings(problem.solver), 1e-3).settings
    # u, u_t, u_x and u_xx.
    assert sizes_of(system, settings, 7) == Sizes(layer=200, depth=2, row=7)


def test_a_wide_network_is_not_refused_for_its_points(monkeypatch):
    monkeypatch.setattr("pinnlab.assembly.device_memory", lambda: 2 * GIGABYTE)
    monkeypatch.setattr("pinnlab.verify.preflight.device_memory", lambda: 2 * GIGABYTE)
    wide = "points = 100000\n[solver.network]\nwidth = 1500\ndepth = 2\n"
    found = check(loads_problem(BURGERS + wide))
    assert not found.errors
    assert found.memory_mb < 1800
    dense = BURGERS.replace('"adam"', '"ssbroyden"') + wide
    assert "MB of memory are needed" in check(loads_problem(dense)).errors[0]


def test_the_limit_of_a_job_counts(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "GROUPS", (limit,))
    limit.write_text("max\n")
    whole = memory.total_memory()
    assert whole is not None and whole > GIGABYTE
    limit.write_text("300000000\n")
    assert memory.total_memory() == 300_000_000
    assert memory.free_memory() == 300_000_000
    assert memory.device_memory() == 300_000_000  # A CPU's is the computer's.
    assert memory.free_device_memory() == 300_000_000


def test_the_peak_is_that_of_the_process_and_not_of_the_one_that_started_it():
    command = [sys.executable, "-c", "from pinnlab.memory import peak_memory as p"]
    command[-1] += "; a = bytearray(100_000_000); print(p())"
    held = np.ones(60_000_000)  # 480 MB of this process.
    found = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert 100_000_000 < found < held.nbytes < memory.peak_memory()
