"""Error estimates from the linearized equations, and the verdicts they lead to."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_reference_file import ROD

from pinnlab import load_problem, loads_problem, solve
from pinnlab.cli.gallery import find_problem
from pinnlab.grids import result_grid
from pinnlab.network import MLP, Separable
from pinnlab.probe import Probe
from pinnlab.result import EquationCheck, FieldError, FieldEstimate
from pinnlab.verify.estimate import (
    ROUNDING,
    Estimate,
    error_estimate,
    estimated,
    second_solution,
    too_rough,
)
from pinnlab.verify.evidence import Evidence
from pinnlab.verify.verdict import judge, undecided
from pinnlab.verify.verified import Known, verify


LAYERS = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
explosion = "dxx(u) + exp(u) = f"
[definitions]
f = "exp(sin(pi*x)) - pi^2*sin(pi*x)"
[conditions]
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
[exact]
u = "sin(pi*x)"
[solver]
strategy = "separable"
"""

FINE = (EquationCheck("heat", "", 1e-6, 1e-6),)


@pytest.fixture(scope="module")
def solved():
    return solve(loads_problem(LAYERS, "layers"), target=1e-8, reference=False)


@pytest.mark.parametrize("size", [1e-2, 1e-6])
def test_the_estimate_is_the_error_of_a_disturbed_solution(solved, size):
    bump = jnp.zeros_like(solved.model.network.coefficients).at[0, 0, 3].add(size)
    network = dataclasses.replace(
        solved.model.network, coefficients=solved.model.network.coefficients + bump
    )
    model = dataclasses.replace(solved.model, network=network)
    grid = result_grid(solved.problem).points
    with jax.enable_x64(True):
        found = error_estimate(Probe(solved.system), model, grid, 5.0)
    assert isinstance(found, Estimate)
    # The disturbance is size T_3(2x - 1).
    z = 2 * grid[:, 0] - 1
    error = size * (4 * z**3 - 3 * z)
    np.testing.assert_allclose(found.values["u"], error, atol=0.05 * size)
    true = np.linalg.norm(error) / np.linalg.norm(np.sin(np.pi * grid[:, 0]))
    assert found.fields[0].rel_l2 == pytest.approx(true, rel=0.05)


def test_the_estimate_of_a_symmetric_problem_is_that_of_its_error():
    problem = loads_problem(ROD + 'method = "none"', "rod")
    solution = solve(problem, target=1e-8, reference=False)
    size = 1e-3
    network = solution.model.network
    assert isinstance(network, MLP)
    weight = network.layers[-1].weight * (1 + size)
    network = eqx.tree_at(lambda n: n.layers[-1].weight, network, weight)
    model = dataclasses.replace(solution.model, network=network)
    grid = result_grid(problem).points
    with jax.enable_x64(True):
        found = error_estimate(Probe(solution.system), model, grid, 5.0)
    assert isinstance(found, Estimate)
    assert found.fields[0].rel_l2 == pytest.approx(size, rel=0.05)


@pytest.fixture(scope="module")
def klein_gordon():
    settings = {"solver.strategy": "separable"}
    problem = load_problem(find_problem("klein_gordon"), settings)
    return solve(problem, target=1e-9, reference=False)


def test_what_explains_nothing_of_a_rough_residual_is_no_estimate(klein_gordon):
    # Large waves that nearly cancel would leave little beside themselves.
    found = klein_gordon
    grid = result_grid(found.problem).points
    error = found.report.rel_l2
    assert error is not None and error < 1e-9
    with jax.enable_x64(True):
        estimate = error_estimate(Probe(found.system), found.model, grid, 4.0)
    assert isinstance(estimate, str)
    assert "too rough" in estimate and "more than 50%" in estimate


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (0.5, "explains 50% of it"),
        # Not 50, of which more would be enough.
        (0.501, "explains 49% of it"),
        (0.86, "explains 14% of it"),
        (0.995, "no error that was tried explains any of it"),
        (595.58, "no error that was tried explains any of it"),
        (np.nan, "no error that was tried explains any of it"),
    ],
)
def test_a_rough_residual_is_described_by_what_could_be_explained(left, words):
    assert words in too_rough(left)


def test_why_there_is_no_estimate_is_told_with_the_verdict():
    judgment = judge(Evidence(FINE, (), (), inestimable=too_rough(0.9)), 1e-3, "done")
    assert judgment.verdict == "unverified"
    assert "nothing independent confirms the solution" in judgment.reason
    assert "could not be estimated: the residual is too rough" in judgment.reason


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(1e-4, "pass (estimated)"), (5e-4, "unverified"), (5e-3, "fail")],
)
def test_verdicts_by_an_estimate(error, verdict):
    evidence = Evidence(FINE, (), (), (FieldEstimate("u", error),))
    assert judge(evidence, 1e-3, "done").verdict == verdict


@pytest.mark.parametrize(
    ("error", "own", "verdict"),
    [
        (5e-4, 1e-5, "pass"),
        (5e-4, 8e-4, "unverified"),
        (5e-3, 1.5e-3, "unverified"),
        (5e-3, 1e-5, "fail"),
    ],
)
def test_verdicts_by_a_reference_know_its_own_error(error, own, verdict):
    fields = (FieldError("u", error, error, "reference", own),)
    judgment = judge(Evidence(FINE, (), fields), 1e-3, "done")
    assert judgment.verdict == verdict
    assert "reference" in judgment.reason


ROUGH = (
    FieldError("u", 1e-5, 1e-5, "reference", 1e-6),
    FieldError("p", 2e-3, 2e-3, "reference", 1e-3),
)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(1e-4, "pass (estimated)"), (5e-4, "unverified"), (5e-3, "fail")],
)
def test_an_estimate_decides_where_a_truth_is_too_rough(error, verdict):
    # That of a field whose truth is good enough does not count.
    estimates = (FieldEstimate("u", 0.1), FieldEstimate("p", error))
    evidence = Evidence(FINE, (), ROUGH, estimates, "a finer solution")
    assert undecided(evidence, 1e-3) == ("p",)
    judgment = judge(evidence, 1e-3, "done")
    assert judgment.verdict == verdict
    assert "'p' is estimated by a finer solution" in judgment.reason
    assert "the reference solution is too rough to decide, itself 1.0e-03 off" in (
        judgment.reason
    )


def test_a_rough_truth_without_estimate_says_why_there_is_none():
    evidence = Evidence(FINE, (), ROUGH, inestimable="there is no time")
    judgment = judge(evidence, 1e-3, "done")
    assert judgment.verdict == "unverified"
    assert "its error could not be estimated: there is no time" in judgment.reason


def test_an_estimate_does_not_excuse_large_residuals():
    large = (EquationCheck("heat", "", 0.1, 0.1),)
    estimates = (FieldEstimate("p", 1e-6),)
    judgment = judge(Evidence(large, (), ROUGH, estimates), 1e-3, "done")
    assert judgment.verdict == "unverified"


def test_a_rough_truth_of_one_field_does_not_hide_that_another_is_wrong():
    fields = (
        FieldError("u", 5e-2, 5e-2, "reference", 1e-6),
        FieldError("p", 1e-1, 1e-1, "reference", 1e-1),
    )
    judgment = judge(Evidence(FINE, (), fields), 1e-3, "done")
    assert judgment.verdict == "fail"
    assert "'u' is 5.0e-02 off" in judgment.reason


def test_a_truth_weighs_more_than_an_estimate():
    fields = (FieldError("u", 0.4, 0.4, "exact"),)
    evidence = Evidence(FINE, (), fields, (FieldEstimate("u", 1e-9),))
    assert judge(evidence, 1e-3, "done").verdict == "fail"


PLATE = """
coordinates = { x = [-1, 1], y = [-1, 1] }
fields = ["u"]
[geometry]
shape = "rectangle(-1, -1, 1, 1) - disk(0, 0, 0.4)"
[definitions]
wave = "exp(x)*cos(y)"
[equations]
laplace = "lap(u) = 0"
[conditions]
edge = { on = "boundary", equation = "u = wave" }
"""


ZAKHAROV = """
coordinates = { t = [0, 0.5], x = [-10, 10] }
fields = ["n", "w"]
periodic = ["x"]
[equations]
n = "dtt(n) = dxx(n) + dxx(w^2)"
w = "dt(w) = dxx(w) - n*w"
[conditions]
start = { on = "t = 0", equation = ["n = exp(-x^2)", "dt(n) = 0", "w = exp(-x^2/2)"] }
[reference]
method = "none"
"""


def test_a_coarser_solution_that_is_near_enough_is_an_estimate():
    found = solve(loads_problem(ZAKHAROV, "zakharov"), target=1e-3)
    assert found.report.verdict == "pass (estimated)"
    assert "by another solution" in found.report.reason
    grid = result_grid(found.problem).points
    finest = solve(loads_problem(ZAKHAROV, "zakharov"), target=1e-8, reference=False)
    ours, truth = found.values(grid), finest.values(grid)
    for estimate in found.report.estimates:
        right = truth[estimate.field]
        error = np.linalg.norm(ours[estimate.field] - right) / np.linalg.norm(right)
        assert error < 3 * estimate.rel_l2


def test_another_solution_that_is_far_away_is_none(solved):
    grid = result_grid(solved.problem).points
    network = solved.model.network
    spoiled = dataclasses.replace(network, coefficients=2 * network.coefficients)
    model = dataclasses.replace(solved.model, network=spoiled)
    with jax.enable_x64(True):
        probe = Probe(solved.system)
        far = verify(
            probe, solved.model, grid[:64], grid, 1e-6, 6.0, Known(None, None),
            [(probe, model)],
        )  # fmt: skip
    assert isinstance(far.estimate, Estimate)
    assert far.estimate.how != "another solution" and far.estimate.worst < 1e-6


def test_where_only_rounding_is_left_a_second_solution_tells_the_error():
    found = solve(loads_problem(PLATE, "plate"), target=1e-6, reference=False)
    grid = result_grid(found.problem).points
    with jax.enable_x64(True):
        estimate = estimated(Probe(found.system), found.model, grid, 10.0, ROUNDING)
    assert isinstance(estimate, Estimate)
    assert estimate.how == "a second solution"
    right = np.exp(grid[:, 0]) * np.cos(grid[:, 1])
    error = np.linalg.norm(found.values(grid)["u"] - right) / np.linalg.norm(right)
    assert error / 3 < estimate.fields[0].rel_l2 < max(10 * error, 1e-12)


@pytest.mark.slow
def test_a_solution_with_nothing_but_rounding_passes_by_a_second_one():
    text = find_problem("l_shape").read_text()
    problem = loads_problem(text[: text.index("[exact]")], "l_shape")
    report = solve(problem, target=1e-6).report
    assert report.equations[0].heldout < ROUNDING
    assert report.verdict == "pass (estimated)"
    assert "by a second solution" in report.reason
    assert report.estimates[0].rel_l2 < 1e-12


@pytest.mark.parametrize("equation", ["dxx(u) = 2", "dxx(u) + u^2 = 2 + x^4"])
def test_a_second_solution_tells_the_error_of_a_worse_one(equation):
    text = f"""
    coordinates = {{ x = [0, 1] }}
    fields = ["u"]
    [equations]
    curve = "{equation}"
    [conditions]
    ends = {{ on = ["x = 0", "x = 1"], equation = "u = x^2" }}
    [solver]
    strategy = "separable"
    """
    found = solve(loads_problem(text, "curve"), target=1e-8, reference=False)
    network = found.model.network
    assert isinstance(network, Separable)
    coefficients = network.coefficients.at[0, 0, 3].add(1e-3)
    network = dataclasses.replace(network, coefficients=coefficients)
    model = dataclasses.replace(found.model, network=network)
    grid = result_grid(found.problem).points
    with jax.enable_x64(True):
        estimate = second_solution(Probe(found.system), model, grid, 5.0, 1e-8)
    assert isinstance(estimate, Estimate)
    x = grid[:, 0]
    ours = dataclasses.replace(found, model=model).values(grid)["u"]
    # Newton's step from there is off by the square of the error.
    np.testing.assert_allclose(estimate.values["u"], ours - x**2, atol=1e-5)
    error = np.linalg.norm(ours - x**2) / np.linalg.norm(x**2)
    assert estimate.fields[0].rel_l2 == pytest.approx(error, rel=0.01)


def test_a_worse_second_solution_is_no_estimate(klein_gordon):
    # Steep layers that features do not resolve in so little time.
    grid = result_grid(klein_gordon.problem).points
    with jax.enable_x64(True):
        probe = Probe(klein_gordon.system)
        estimate = second_solution(probe, klein_gordon.model, grid, 0.2, 1e-14)
    assert isinstance(estimate, str)
    assert "times the residual of this one" in estimate


def test_the_error_of_nothing_at_all_is_estimated():
    text = PLATE.replace('"u = wave"', '"u = 0"').replace('wave = "exp(x)*cos(y)"', "")
    found = solve(loads_problem(text, "nothing"), target=1e-6)
    assert found.report.verdict == "pass (estimated)"
    assert found.report.estimates[0].rel_l2 == 0
