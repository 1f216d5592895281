"""Ensembles: a member is the run alone, and no member disturbs another."""

import dataclasses
import json
import os
import subprocess
import sys

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from synthetic import make_result
from typer.testing import CliRunner

from pinnlab.assembly import scaled_network_of
from pinnlab.cli.main import app
from pinnlab.ensemble.programs import Layout, default_layout
from pinnlab.ensemble.solve import solve_ensemble, with_parameters
from pinnlab.ensemble.stack import difference, stacked
from pinnlab.ensemble.train import train_members
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result, write_result
from pinnlab.optimizer import LBFGS, Adam, LevenbergMarquardt, SSBroyden
from pinnlab.problem.file import loads_problem
from pinnlab.programs import Stage
from pinnlab.record import Stop
from pinnlab.report import members_line
from pinnlab.residual import LeastSquares
from pinnlab.result import MemberCheck
from pinnlab.settings import read_settings
from pinnlab.solution import Solution
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.train import Hooks, Limits, train
from pinnlab.training import prepare


DECAY = """
coordinates = { t = [0, 1] }
fields = ["u"]
[parameters]
k = 1.0
[equations]
decay = "dt(u) = -k*u^2"
[conditions]
start = { on = "t = 0", equation = "u = 1" }
[exact]
u = "1/(1 + k*t)"
[solver]
strategy = "nonlinear"
points = 32
network = { width = 5, depth = 2 }
"""
NO_LIMITS = Limits(1e9, 0.0, 0.0)


def prepared(seed, k=1.0, make=None, **overrides):
    problem = loads_problem(DECAY, overrides={"parameters.k": k, **overrides})
    system = build_system(problem)
    planned = plan(system, read_settings(problem.solver), 1e-3)
    return prepare(system, planned, seed, *([make] if make else []))


@pytest.fixture(scope="module")
def pair():
    """Two members: other seeds, other values of a parameter."""
    return [prepared(s, k, scaled_network_of) for s, k in ((3, 1.0), (4, 8.0))]


def together(members, stage, layout, objectives=None, limits=NO_LIMITS):
    return train_members(
        objectives or stacked([m.objective for m in members]),
        jnp.stack([m.theta for m in members]),
        (stage,),
        limits,
        keys=jnp.stack([m.key for m in members]),
        layout=layout,
        observe=lambda row: None,
    )


@pytest.mark.parametrize(
    ("optimizer", "layout"),
    [
        (SSBroyden(), Layout(1)),
        (LBFGS(), Layout(0)),
    ],
)
def test_a_member_is_the_run_alone(pair, optimizer, layout):
    stage = Stage("s", optimizer, 24, 8, True, 4)
    same_as_alone(together(pair, stage, layout)[1], stage, NO_LIMITS)


def same_as_alone(found, stage, limits):
    """That the second of the pair is the run alone: a row for each step is compared."""
    alone = prepared(4, 8.0)
    hooks = Hooks(lambda row: None)
    expected = train(
        alone.objective, alone.theta, (stage,), limits, key=alone.key, hooks=hooks
    )
    assert found.record.iterations == expected.record.iterations
    assert found.stop is expected.stop
    ours, theirs = ([r.loss for r in t.record.rows] for t in (found, expected))
    assert len(ours) == len(theirs)
    # Rounding grows from step to step; later only the level is the same.
    np.testing.assert_allclose(ours[:8], theirs[:8], rtol=1e-6, atol=1e-16)
    ratio = np.max(found.heldout) / np.max(expected.heldout)
    assert 1 / 3 < ratio < 3


def test_members_stop_on_their_own_as_they_do_alone(pair):
    stage = Stage("s", LevenbergMarquardt(), 60, 2, True, 4)
    limits = Limits(1e9, 1e-3, 0.0)
    first, second = together(pair, stage, Layout(0), limits=limits)
    assert first.stop is second.stop is Stop.TARGET
    assert first.record.iterations != second.record.iterations
    # Who stops first is not charged for what the others do then.
    ends = sorted((first.record, second.record), key=lambda r: r.iterations)
    assert ends[0].train_seconds < ends[1].train_seconds
    same_as_alone(second, stage, limits)


class Poisoned(LeastSquares):
    """Not finite where the first parameter has gone farther than a member may."""

    def value_and_grad(self, theta):
        value, gradient = LeastSquares.value_and_grad(self, theta)
        far = jnp.abs(theta[0] - self.parameters["start"]) > self.parameters["reach"]
        return jnp.where(far, jnp.nan, value), gradient


def poisoned(members, reaches):
    made = []
    for m, reach in zip(members, reaches, strict=True):
        o = m.objective
        limits = {"start": m.theta[0], "reach": jnp.asarray(reach)}
        parameters = o.parameters | limits
        made.append(Poisoned(o.blocks, parameters, o.unravel, o.fixed))
    return stacked(made)


@pytest.mark.parametrize(
    "layout", [Layout(0), pytest.param(Layout(1), marks=pytest.mark.slow)]
)
def test_a_member_that_is_lost_goes_back_and_disturbs_no_other(pair, layout):
    stage = Stage("s", Adam(), 24, 4, True, 1)
    objectives = poisoned(pair, (0.02, np.inf))
    lost, other = together(pair, stage, layout, objectives)
    assert not other.record.events
    same_as_alone(other, stage, NO_LIMITS)
    assert "went back to the last good model" in lost.record.events[0]
    assert np.isfinite(lost.heldout).all()
    assert 0 < abs(lost.theta[0] - pair[0].theta[0]) <= 0.02
    # With shorter steps all iterations were made.
    assert lost.record.iterations == 24
    assert lost.stop is Stop.ITERATIONS


def test_what_cannot_share_a_program_says_why(pair):
    first = pair[0].objective
    assert difference(first, pair[1].objective) == ""
    more = prepared(3, make=scaled_network_of, **{"solver.points": 40})
    assert "points" in difference(first, more.objective)
    waves = prepared(3, make=scaled_network_of, **{"solver.network.fourier": 2})
    assert "networks" in difference(first, waves.objective)
    other = dataclasses.replace(
        more, objective=eqx.tree_at(lambda o: o.blocks, more.objective, ())
    )
    assert "conditions" in difference(first, other.objective)


def test_the_default_layout_divides_the_members():
    for members in (1, 7, 11, 12, 64):
        layout = default_layout(members)
        devices = layout.mesh.shape["member"] if layout.mesh else 1
        assert members % (devices * max(1, layout.together)) == 0
        assert layout.together <= 8


def test_wrong_members_are_refused():
    problem = loads_problem(DECAY)
    with pytest.raises(ProblemError, match="no two alike"):
        solve_ensemble(problem, seeds=[1, 1])
    with pytest.raises(ProblemError, match="one seed or more"):
        solve_ensemble(problem, seeds=[])
    with pytest.raises(ProblemError, match=r"no parameter 'q' \(parameters: k\)"):
        with_parameters(problem, {"q": 1.0})
    assert with_parameters(problem, {"k": 0.25}).parameters == {"k": 0.25}
    staged = loads_problem(DECAY, overrides={"solver.second_stage": "on"})
    with pytest.raises(ProblemError, match="no second stage"):
        solve_ensemble(staged, seeds=[0, 1])


def test_a_file_holds_the_members_and_xarray_opens_them(tmp_path):
    axes = {"t": np.linspace(0, 1, 5), "x": np.linspace(-1, 1, 7)}
    result = make_result(axes)
    members = tuple(
        MemberCheck(seed, 1e-4, 0.0, error, 2 * error, 100, "pass", "done")
        for seed, error in ((7, 1e-5), (8, 3e-5), (9, 8e-5))
    )
    spread = {"u_spread": 0.1 * np.abs(result.variables["u"])}
    report = dataclasses.replace(result.report, members=members)
    full = dataclasses.replace(
        result, report=report, variables=result.variables | spread
    )
    path = write_result(tmp_path / "ensemble.h5", full)
    assert read_result(path).report == report
    assert read_result(write_result(tmp_path / "one.h5", result)).report.members == ()
    with xarray.open_dataset(path, engine="h5netcdf") as file:
        assert file.u_spread.dims == file.u.dims
    with xarray.open_dataset(
        path, engine="h5netcdf", group="report/members", phony_dims="sort"
    ) as table:
        assert table.seed.dims == ("member",)
        np.testing.assert_array_equal(table.rel_l2, [1e-5, 3e-5, 8e-5])
    line = members_line(report)
    assert line.startswith("3 seeds: error best 1.0e-05, median 3.0e-05, worst 8.0e-05")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--debug",), "--debug is for one seed"),
        (("--profile", "traces"), "--profile is for one seed"),
        (("--seed", str(2**31 - 1)), "above 2147483647"),
    ],
)
def test_options_of_one_run_are_refused(tmp_path, monkeypatch, option, message):
    monkeypatch.chdir(tmp_path)
    command = ["solve", "oscillator", "--seeds", "2", *option]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 2
    assert message in found.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_seeds_of_a_linear_problem_are_solved_one_after_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["solve", "oscillator", "--seeds", "2", "--seed", "4", "--json"]
    found = CliRunner().invoke(app, [*command, "--no-plot"])
    assert found.exit_code == 0
    report = json.loads(found.stdout)
    assert [m["seed"] for m in report["members"]] == [4, 5]
    assert "linear" in report["strategy"]
    assert report["rel_l2"] == min(m["rel_l2"] for m in report["members"])
    loaded = Solution.load(tmp_path / "oscillator.h5")
    assert loaded.seed in (4, 5)
    assert np.max(loaded.result.variables["u_spread"]) < 1e-6


@pytest.mark.slow
def test_an_ensemble_is_solved_verified_and_saved(tmp_path):
    problem = loads_problem(DECAY, overrides={"solver.iterations": 15})
    ensemble = solve_ensemble(
        problem, seeds=(0, 5), parameters=({}, {"k": 2.0}), target=1e-9, budget=1e3
    )
    assert [(s.seed, s.problem.parameters["k"]) for s in ensemble] == [
        (0, 1.0), (5, 1.0), (0, 2.0), (5, 2.0),
    ]  # fmt: skip
    for solution in ensemble:
        k = solution.problem.parameters["k"]
        t = solution.result.axes["t"]
        error = np.abs(solution.result.variables["u"] - 1 / (1 + k * t)).max()
        assert error < 1e-3
        assert solution.report.cost.iterations == 15
        again = solution.values(t[:, None])["u"]
        np.testing.assert_allclose(again, solution.result.variables["u"], rtol=1e-12)
    with pytest.raises(ValueError, match="different problems"):
        ensemble.save(tmp_path / "all.h5")
    seeds = dataclasses.replace(ensemble, solutions=ensemble[:2])
    loaded = read_result(seeds.save(tmp_path / "seeds.h5"))
    assert [m.seed for m in loaded.report.members] == [0, 5]
    values = [s.result.variables["u"] for s in ensemble[:2]]
    np.testing.assert_allclose(
        loaded.variables["u_spread"], np.abs(values[0] - values[1]) / 2, atol=1e-12
    )
    assert loaded.report.rel_l2 == min(m.rel_l2 for m in loaded.report.members)


@pytest.mark.slow
def test_members_spread_over_devices_are_the_same():
    code = """
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from test_ensemble import Layout, Stage, SSBroyden, prepared, together
from test_ensemble import scaled_network_of
from pinnlab.ensemble.programs import default_layout
members = [prepared(s, 1.0, scaled_network_of) for s in range(4)]
stage = Stage("s", SSBroyden(), 12, 6, True, 2)
layout = default_layout(4)
assert layout.mesh.shape == {"member": 2}
one, two = (together(members, stage, own) for own in (Layout(1), layout))
for a, b in zip(one, two):
    np.testing.assert_allclose(a.theta, b.theta, rtol=1e-6, atol=1e-9)
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}

    environment = os.environ | flags | {"PYTHONPATH": f"tests:{':'.join(sys.path)}"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
