"""Runs sabotaged on purpose: none of them may pass, and the honest ones must."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from pinnlab import loads_problem, solve
from pinnlab.errors import ProblemError
from pinnlab.grids import result_grid
from pinnlab.network import Separable
from pinnlab.probe import Probe
from pinnlab.verify import estimate, verified
from pinnlab.verify.against import reference_truth
from pinnlab.verify.classical import Classical, classical
from pinnlab.verify.verdict import judge


TARGET = 1e-3

WAVE = """
coordinates = { t = [0, 1], x = [0, "2*pi"] }
fields = ["u"]
periodic = ["x"]
[parameters]
nu = 0.2
speed = 1
[equations]
momentum = "dt(u) + speed*u*dx(u) = nu*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = 1 + sin(x)/2" }
"""

ROD = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u)/4 + 0.1*u^2"
[conditions]
initial = { on = "t = 0", equation = "u = sin(pi*x)" }
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
"""

GROWTH = """
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
"""


class Bench:
    """An honest solution with its reference, and verdicts on what is made of it."""

    def __init__(self, text: str):
        self.problem = loads_problem(text, "bench")
        self.solution = solve(
            self.problem, target=TARGET / 10, budget=60, reference=False
        )
        self.grid = result_grid(self.problem).points
        with jax.enable_x64(True):
            self.beside = classical(self.problem, TARGET / 10, 20.0)

    @property
    def network(self) -> Separable:
        network = self.solution.model.network
        assert isinstance(network, Separable)
        return network

    def verdict(self, network: Separable, beside: Classical | None = None) -> str:
        """The verdict on another network, by the reference (or by an estimate)."""
        model = dataclasses.replace(self.solution.model, network=network)
        chosen = beside or self.beside
        with pytest.MonkeyPatch.context() as patch, jax.enable_x64(True):
            patch.setattr(verified, "finer", lambda first, *_: first)
            patch.setattr(estimate, "SEARCHED", 3.0)
            truth = None
            if chosen.reference is not None:
                truth = reference_truth(chosen.reference, self.grid)
            found = verified.verify(
                Probe(self.solution.system),
                model,
                self.grid[:512],
                self.grid,
                TARGET,
                20.0,
                verified.Known(truth, chosen),
            )
        return judge(found.evidence, TARGET, "sabotaged").verdict

    def changed(self, coefficients) -> Separable:
        """The network with other coefficients."""
        return dataclasses.replace(self.network, coefficients=coefficients)


@pytest.fixture(scope="module")
def wave():
    return Bench(WAVE)


@pytest.fixture(scope="module")
def rod():
    return Bench(ROD)


def mean_only(c):
    """The average in space at all times: the trap of convection with large speed."""
    return c.at[..., 1:].set(0.0)


def frozen(c):
    """The first slab's start forever."""
    start = c[0].sum(axis=1, where=jnp.ones((1, c.shape[2], 1), bool))
    return jnp.zeros_like(c).at[:, :, 0].set(start)


SPOILED = {
    "zero": jnp.zeros_like,
    "the mean only": mean_only,
    "frozen in time": frozen,
    "one percent too large": lambda c: 1.01 * c,
    "upside down": lambda c: -c,
    "a constant added": lambda c: c.at[:, :, 0, 0].add(0.01),
    "the last slab repeated": lambda c: jnp.broadcast_to(c[-1:], c.shape),
    "slabs in the wrong order": lambda c: c[::-1],
    "single precision and less": lambda c: jnp.round(c, 2),
    "a fine ripple": lambda c: c.at[..., -1].add(0.01),
    "no short waves": lambda c: c.at[..., 2:].set(0.0),
    "not a number": lambda c: c.at[0, 0, 0, 0].set(jnp.nan),
}


def test_the_honest_solutions_pass(wave, rod):
    assert wave.verdict(wave.network) == "pass"
    assert rod.verdict(rod.network) == "pass"


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_solution_does_not_pass(wave, how):
    network = wave.changed(SPOILED[how](wave.network.coefficients))
    assert wave.verdict(network) in ("fail", "unverified")


def test_boundary_values_with_the_wrong_sign_do_not_pass(rod):
    bottom = rod.changed(rod.network.coefficients.at[:, :, 0, 1].add(0.01))
    assert rod.verdict(bottom) == "fail"


@pytest.mark.parametrize("change", ["nu = 0.25", "speed = 1.1", "speed = -1"])
def test_a_reference_of_another_equation_lets_nothing_pass(wave, change):
    name = change.split(" = ")[0]
    old = "nu = 0.2" if name == "nu" else "speed = 1"
    other = loads_problem(WAVE.replace(old, change), "other")
    with jax.enable_x64(True):
        beside = classical(other, TARGET, 20.0)
    assert wave.verdict(wave.network, beside) == "fail"


def test_a_coarse_reference_decides_nothing(wave):
    reference = dataclasses.replace(wave.beside.reference, errors={"u": 5e-3})
    beside = dataclasses.replace(wave.beside, reference=reference)
    assert wave.verdict(wave.network, beside) == "unverified"


def test_without_a_reference_the_estimate_catches_what_is_spoiled(wave):
    nothing = Classical(None, "none in this test", 0.0)
    small = wave.changed(wave.network.coefficients.at[:, :, 0, 0].add(1e-5))
    assert wave.verdict(small, nothing) == "pass (estimated)"
    for how in ("one percent too large", "a constant added", "zero"):
        network = wave.changed(SPOILED[how](wave.network.coefficients))
        assert not wave.verdict(network, nothing).startswith("pass"), how


@pytest.mark.parametrize(
    "settings",
    [
        "iterations = 1",
        "points = 3\nredraw = -1\nadaptive = false\niterations = 60",
        pytest.param('optimizer = "adam"\niterations = 20', marks=pytest.mark.slow),
        pytest.param(
            "network = { width = 1, depth = 1 }\niterations = 40",
            marks=pytest.mark.slow,
        ),
        pytest.param('precision = "float32"\niterations = 3', marks=pytest.mark.slow),
    ],
    ids=["early stop", "three fixed points", "few Adam steps", "one unit", "float32"],
)
def test_training_that_cannot_succeed_does_not_pass(settings):
    text = GROWTH.replace('optimizer = "levenberg_marquardt"\n', "")
    optimizer = "" if "optimizer" in settings else 'optimizer = "levenberg_marquardt"\n'
    problem = loads_problem(text + optimizer + settings + "\n", "growth")
    found = solve(problem, target=1e-6, budget=30, reference=False)
    assert found.report.verdict == "fail"
    assert found.report.reason and found.report.suggestion


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("9*exp", "9.01*exp", "does not satisfy condition 'start'"),
        ("-2*t", "-2.1*t", "does not satisfy equation 'growth'"),
        ('start = { on = "t = 0", equation = "u = 0.1" }', "", "initial|condition"),
    ],
    ids=["wrong exact", "exact of another rate", "a dropped condition"],
)
def test_a_problem_spoiled_in_its_file_is_refused(old, new, message):
    with pytest.raises(ProblemError, match=message):
        solve(loads_problem(GROWTH.replace(old, new), "spoiled"), budget=5)
