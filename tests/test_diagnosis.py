"""`solve --debug`: signs with known causes, and the one change that they suggest."""

import dataclasses
import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from synthetic import make_report, make_result
from test_nonfinite import objective_of
from typer.testing import CliRunner

from pinnlab import loads_problem, solve
from pinnlab.cli.main import app
from pinnlab.cli.training import profiler_in
from pinnlab.diagnosis import profiler
from pinnlab.diagnosis.advice import Signs, advise
from pinnlab.diagnosis.diagnosis import diagnosed
from pinnlab.diagnosis.gradients import term_gradients
from pinnlab.diagnosis.spectrum import band_shares
from pinnlab.diagnosis.watch import Watch
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result, write_result
from pinnlab.optimizer import Adam
from pinnlab.programs import Stage, compile_stage
from pinnlab.result import Diagnosis, ResidualSpectrum, RunCheck, TermGradient
from pinnlab.settings import Settings


RUNNER = CliRunner()
GROWTH = """
coordinates = { t = [0, 1] }
fields = ["u"]
[equations]
growth = "dt(u) = u*(2 - u)"
[conditions]
start = { on = "t = 0", equation = "u = 0.5", enforce = "penalty" }
[solver]
points = 32
network = { width = 5, depth = 1 }
"""
STAGE = Stage("adam", Adam(), 12, 2, True, 2)


@pytest.mark.parametrize(("waves", "band"), [(1, 0), (10, 1), (60, 2)])
def test_a_wave_is_in_its_band(waves: int, band: int):
    x = np.linspace(0, 1, 201)
    values = np.outer(1 + np.linspace(0, 1, 30), np.sin(2 * np.pi * waves * x))
    shares = band_shares(values, 1)
    assert sum(shares) == pytest.approx(1)
    # A Hann window spreads a line over three wavenumbers and keeps 1e-4 of the rest.
    assert shares[band] > 0.999
    assert band_shares(values, 0)[0] > 0.99


def test_shares_and_cosines_are_those_of_the_separate_gradients():
    objective, theta = objective_of(GROWTH)
    found = term_gradients(objective, theta)
    assert [g.term for g in found] == ["growth", "start"]
    rows = objective.jacobian(theta), objective.residuals(theta)
    cut = objective.blocks[0].points.shape[0]
    first = rows[0][:cut].T @ rows[1][:cut]
    second = rows[0][cut:].T @ rows[1][cut:]
    sizes = np.array([np.linalg.norm(first), np.linalg.norm(second)])
    np.testing.assert_allclose([g.share for g in found], sizes / sizes.sum(), rtol=1e-8)
    cosine = float(first @ second) / sizes.prod()
    assert [g.cosine for g in found] == pytest.approx([cosine, cosine])


@pytest.fixture(scope="module")
def compiled():
    """An objective, parameters and the compiled programs of a stage."""
    objective, theta = objective_of(GROWTH)
    return objective, theta, compile_stage(STAGE, objective, theta)


def trained(watch: Watch, compiled, advance=None, keys=None) -> dict[str, str]:
    """Train as the host loop does, under the watch; the checks that fail."""
    objective, theta, programs = compiled
    if advance is not None:
        programs = eqx.tree_at(
            lambda p: p.advance, programs, advance(programs.advance), is_leaf=callable
        )
    with watch.listening():
        watched = watch.inspect(STAGE, programs)
        state, theta = programs.start(objective, theta), jnp.array(theta)
        for i in range(6):
            carry = watched.advance(objective, (theta, state), jnp.asarray(2))[0]
            theta, state = carry
            key = jax.random.key(i if keys is None else keys)
            watched.look(objective, theta, key)
    return {c.name: c.detail for c in watch.checks() if not c.passed}


def test_a_healthy_run_passes_every_check(compiled):
    watch = Watch()
    assert trained(watch, compiled) == {}
    assert watch.theta is not None and watch.step_memory > watch.theta.nbytes
    assert not jax.config.jax_explain_cache_misses  # pyright: ignore


def test_defects_of_the_host_loop_are_seen(compiled, capfd):
    hoard: list = []
    triple = jax.jit(lambda a: 3 * a)

    class Leaking(Watch):
        """Keeps an array, and compiles anew, between the steps."""

        def _advancing(self, advance):
            watched = Watch._advancing(self, advance)

            def broken(objective, carry, count):
                hoard.append(jnp.ones(3) + len(hoard))
                triple(jnp.ones(len(hoard) + 40))
                return watched(objective, carry, count)

            return broken

    failed = trained(Leaking(), compiled, keys=7)
    assert "two looks had the same key" in failed["random keys used once"]
    assert "at a, now f64[42] and before f64[41]" in failed["compiled once"]
    assert "no arrays leak" in failed
    assert "CACHE" not in capfd.readouterr().err


def test_a_transfer_inside_the_step_is_seen(compiled):
    failed = trained(
        Watch(), compiled, lambda step: lambda *a: (jnp.sin(np.ones(3)), step(*a))[1]
    )
    assert "host-to-device" in failed["no transfers in a step"]


def test_a_step_that_does_not_fit_is_refused_before_it_runs(compiled, monkeypatch):
    monkeypatch.setattr("pinnlab.diagnosis.watch.free_device_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"a step needs .* lower solver\.points"):
        trained(Watch(), compiled)


BASE = Signs(make_report("fail"), Settings(points=100), (), (), (), ())
AGAINST = (TermGradient("a", 0.5, -0.99), TermGradient("b", 0.5, -0.99))
LIGHT = dataclasses.replace(make_report("fail").conditions[1], relative=0.5)
OVER = dataclasses.replace(make_report("fail").equations[0], training=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"failures": ("log(u) has no finite value at x = 1",)},
            "log(u) in its domain",
        ),
        ({"checks": (RunCheck("compiled once", False, ""),)}, "defect of pinnlab"),
        (
            {"report": dataclasses.replace(BASE.report, equations=(OVER,))},
            "solver.points to 200",
        ),
        (
            {
                "report": dataclasses.replace(BASE.report, conditions=(LIGHT,)),
                "gradients": (TermGradient("walls", 0.01, 0.0),),
            },
            "condition_weight to 100: 'walls'",
        ),
        ({"gradients": AGAINST, "settings": Settings(optimizer="adam")}, "ssbroyden"),
        ({"spectra": (ResidualSpectrum("m", "x", 0, 0.1, 0.9),)}, "fourier = 16"),
        ({"gradients": AGAINST}, "network.width"),
        ({}, "raise --budget"),
        ({"report": make_report("pass"), "gradients": AGAINST}, ""),
    ],
)
def test_each_sign_suggests_its_change(changes: dict, words: str):
    found = advise(dataclasses.replace(BASE, **changes))
    assert words in found and bool(words) == bool(found)


def test_a_diagnosis_is_in_the_file_as_it_was(tmp_path: Path):
    found = Diagnosis(
        "raise solver.points",
        12.5,
        ("log(u) has no finite value",),
        (RunCheck("compiled once", True, ""), RunCheck("no arrays leak", False, "9")),
        AGAINST,
        (ResidualSpectrum("m", "x", 0.2, 0.3, 0.5),),
    )
    result = make_result({"t": np.linspace(0, 1, 5)})
    report = dataclasses.replace(result.report, diagnosis=found)
    path = write_result(tmp_path / "a.h5", dataclasses.replace(result, report=report))
    assert read_result(path).report == report
    shown = RUNNER.invoke(app, ["show", str(path)]).stdout
    assert "log(u) has no finite value" in shown and "try: raise solver.points" in shown
    answer = json.loads(RUNNER.invoke(app, ["show", str(path), "--json"]).stdout)
    assert answer["diagnosis"]["spectra"][0]["high"] == 0.5


LOGARITHM = """
coordinates = { t = [0, 1] }
fields = ["u"]
[equations]
decay = "dt(u) = log(u) - 1"
[conditions]
start = { on = "t = 0", equation = "u = 1" }
[solver]
points = 32
redraw = 5
iterations = 60
network = { width = 5, depth = 1 }
"""


@pytest.mark.slow
def test_training_that_turns_negative_names_the_logarithm():
    watch = Watch()
    with watch.listening():
        solution = solve(loads_problem(LOGARITHM), budget=60, inspect=watch.inspect)
    found = diagnosed(solution, watch).report.diagnosis
    assert found is not None
    assert "log(u) has no finite value in the equation 'decay'" in found.failures[0]
    assert "log(u) in its domain" in found.suggestion
    assert all(check.passed for check in found.checks)
    assert found.gradients == (TermGradient("decay", 1.0, 0.0),)
    assert [(s.equation, s.coordinate) for s in found.spectra] == [("decay", "t")]


@pytest.mark.slow
def test_debug_and_profile_on_the_command_line(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Path("p.toml").write_text(LOGARITHM)
    command = ["solve", "p.toml", "--no-plot", "--json", "--debug", "--profile", "a/b"]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == 1, found.stderr
    assert "log(u)" in json.loads(found.stdout)["diagnosis"]["failures"][0]
    assert "diagnosis" in found.stderr
    assert list(Path("a/b").rglob("*.xplane.pb"))


def test_a_profile_is_a_trace_in_a_new_folder(tmp_path: Path):
    with profiler_in(tmp_path / "a" / "b").listening():
        jnp.sin(jnp.ones(3)).block_until_ready()
    assert list((tmp_path / "a" / "b").rglob("*.xplane.pb"))


def test_traces_follow_each_other_and_end_by_themselves(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(profiler, "SPAN", 0.2)
    watched = profiler.Profiler(tmp_path)
    with watched.listening():
        watched.trace()
        watched.timer.join()
        assert not watched.open.locked()
        watched.trace()
    assert not watched.open.locked()


def test_a_profile_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProblemError, match="cannot be made"):
        profiler_in(tmp_path / "file" / "x")
