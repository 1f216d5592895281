"""The classical solutions that others are measured against converge and agree."""

import dataclasses
from pathlib import Path

import h5py
import numpy as np
import pytest
from cavity_reference import PARABOLA, UNIT, cavity_velocity, singular
from reference_solutions import (
    EVOLUTIONS,
    SYSTEMS,
    Evolution,
    cole_hopf,
    evolution_reference,
    evolve,
    relative_l2,
    system_reference,
)


PROBLEMS = Path(__file__).parent.parent / "experiments" / "problems"


def test_burgers_by_two_methods():
    t, x = np.linspace(0, 1, 6), np.linspace(-1, 1, 101)
    problem = EVOLUTIONS["burgers"]
    marched = evolve(problem, len(t), x, problem.modes, problem.steps)
    assert relative_l2(marched, cole_hopf(t, x)) < 1e-9


def test_cole_hopf_does_not_depend_on_its_quadrature():
    t, x = np.linspace(0, 1, 6), np.linspace(-1, 1, 101)
    for nu in (0.01 / np.pi, 1e-3):
        few, many = cole_hopf(t, x, nu, 600), cole_hopf(t, x, nu, 1500)
        assert relative_l2(few, many) < 1e-12


def test_etdrk4_is_of_fourth_order():
    problem = EVOLUTIONS["allen_cahn"]
    x = np.linspace(-1, 1, 50)
    coarse, middle, fine = (evolve(problem, 2, x, 512, n) for n in (100, 200, 400))
    ratio = relative_l2(coarse, middle) / relative_l2(middle, fine)
    assert 15 < ratio < 18


def test_etdrk4_is_exact_for_linear_equations():
    heat = Evolution(
        lower=0,
        upper=1,
        end=1,
        initial=lambda x: np.sin(2 * np.pi * x),
        linear=lambda k: -0.1 * k**2,
        nonlinear=lambda u, k: np.zeros(len(u), complex),
        modes=16,
        steps=1,
    )
    x = np.linspace(0, 1, 7)
    values = evolve(heat, 2, x, heat.modes, heat.steps)[-1]
    exact = np.exp(-0.1 * (2 * np.pi) ** 2) * np.sin(2 * np.pi * x)
    np.testing.assert_allclose(values, exact, atol=1e-14)


def test_schrodinger_soliton_on_a_wide_domain():
    """h0 = sech(x) moves only its phase: h = sech(x) exp(i t/2)."""
    wide = dataclasses.replace(
        EVOLUTIONS["schrodinger"],
        lower=-20,
        upper=20,
        initial=lambda x: 1 / np.cosh(x) + 0j,
    )
    x = np.linspace(-5, 5, 41)
    values = evolve(wide, 2, x, 256, 400)[-1]
    exact = np.exp(0.5j * wide.end) / np.cosh(x)
    assert relative_l2(values, exact) < 1e-7  # the tails at +-20 are 4e-9


def test_cahn_hilliard_keeps_its_mass():
    reference = evolution_reference("cahn_hilliard", 3, np.linspace(-1, 1, 65)[:-1])
    assert reference.error < 1e-9
    np.testing.assert_allclose(reference.values.mean(1), 0.2, atol=1e-13)


def test_schrodinger_peak():
    """|h(0, pi/4)| of the periodic problem is 3.9988, not the 4 of the whole line."""
    values = evolve(EVOLUTIONS["schrodinger"], 3, np.zeros(1), 512, 2000)
    assert abs(values[1, 0]) == pytest.approx(3.9988, abs=1e-4)


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_converge(name: str):
    t = np.linspace(0, SYSTEMS[name].end, 11)
    assert system_reference(name, t).error < 1e-10


def test_known_values_of_systems():
    hunted = system_reference("lotka_volterra", np.array([1.0, 5.0, 10.0])).values
    np.testing.assert_allclose(hunted[0], [120.660025, 108.651742], rtol=1e-8)
    np.testing.assert_allclose(hunted[2], [100.327928, 15.033140], rtol=1e-7)
    r, p = hunted.T
    constant = 0.02 * r - 1.06 * np.log(r) + 0.04 * p - 2 * np.log(p)
    np.testing.assert_allclose(constant, constant[0], rtol=1e-11)
    turned = system_reference("lorenz", np.array([1.0])).values[0]
    np.testing.assert_allclose(turned, [7.275116, 6.682990, 16.003951], rtol=1e-7)


def test_cavity_converges_and_its_lid_moves():
    side = np.linspace(0, 1, 21)
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    coarse, fine = cavity_velocity(16, x, y), cavity_velocity(20, x, y)
    assert relative_l2(np.array(coarse), np.array(fine)) < 5e-3
    lid = fine[0].reshape(21, 21)[:, -1]
    np.testing.assert_allclose(lid, 4 * side * (1 - side), atol=1e-6)


def test_both_stokes_flows_belong_to_their_lids():
    for lid in (PARABOLA, UNIT):
        x, y, h = np.array([0.3, 0.8]), np.array([0.55, 0.9]), 1e-3

        def value(a, b, lid=lid):
            return lid.corners(a, b).value

        def laplacian(a, b, value=value, h=h):
            around = value(a + h, b) + value(a - h, b) + value(a, b + h)
            return (around + value(a, b - h) - 4 * value(a, b)) / h**2

        flow = lid.corners(x, y)
        pairs = [
            (value(x + h, y) - value(x - h, y), flow.x),
            (value(x, y + h) - value(x, y - h), flow.y),
            (laplacian(x + h, y) - laplacian(x - h, y), flow.lap_x),
            (laplacian(x, y + h) - laplacian(x, y - h), flow.lap_y),
        ]
        for difference, derivative in pairs:
            np.testing.assert_allclose(difference / (2 * h), derivative, rtol=1e-3)
    side = np.linspace(0.05, 0.95, 7)
    u, v = cavity_velocity(20, side, np.ones(7), lid=UNIT)
    np.testing.assert_allclose(u, 1, atol=2e-3)
    np.testing.assert_allclose(v, 0, atol=2e-3)


@pytest.mark.parametrize("is_right", [False, True])
def test_singular_stream_functions_have_their_derivatives(is_right):
    x, y = np.random.default_rng(0).uniform(0.2, 0.8, (2, 5))
    h = 1e-4

    def slopes(name):
        at = lambda a, b: getattr(singular((2, 3), a, b, is_right), name)
        return (
            (at(x + h, y) - at(x - h, y)) / (2 * h),
            (at(x, y + h) - at(x, y - h)) / (2 * h),
        )

    found = singular((2, 3), x, y, is_right)
    by_x, by_y = slopes("value")
    np.testing.assert_allclose(by_x, found.x, atol=1e-6 * np.max(np.abs(found.x)))
    np.testing.assert_allclose(by_y, found.y, atol=1e-6 * np.max(np.abs(found.y)))
    # The slope by x of psi_xx + psi_yy, by three differences of psi_x.
    at = lambda a, b: singular((2, 3), a, b, is_right).x
    around = at(x + h, y) + at(x - h, y) + at(x, y + h) + at(x, y - h)
    size = np.max(np.abs(found.lap_x))
    lap_x = (around - 4 * at(x, y)) / h**2
    np.testing.assert_allclose(lap_x, found.lap_x, atol=1e-4 * size)
    bilap = slopes("lap_x")[0] + slopes("lap_y")[1]
    size = np.max(np.abs(found.bilap))
    np.testing.assert_allclose(bilap, found.bilap, atol=1e-6 * size)


def test_the_centre_lines_at_400_are_those_of_the_literature():
    with h5py.File(PROBLEMS / "cavity_400_lines.h5") as file:
        x, y, u, v = (np.asarray(file[name]) for name in "xyuv")
        assert float(np.asarray(file.attrs["reference_error"])) < 1e-4
    # Ghia, Ghia and Shin (1982), whose grid has 129 x 129 points.
    upright, level = slice(0, 129), slice(129, 258)
    found = np.interp([0.1719, 0.2813, 0.5, 0.9609], y[upright], u[upright])
    wanted = [-0.24299, -0.32726, -0.11477, 0.61756]
    np.testing.assert_allclose(found, wanted, atol=4e-3)
    found = np.interp([0.2266, 0.8594], x[level], v[level])
    np.testing.assert_allclose(found, [0.30203, -0.44993], atol=4e-3)


@pytest.mark.slow
def test_cavity_to_six_digits():
    side = np.linspace(0, 1, 41)
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    coarse, fine = cavity_velocity(24, x, y), cavity_velocity(28, x, y)
    assert relative_l2(np.array(coarse), np.array(fine)) < 2e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("burgers", 1e-7),
        ("allen_cahn", 1e-6),  # u0 has a kink at the ends
        ("kdv", 1e-8),
        ("kuramoto_sivashinsky", 1e-6),
        ("schrodinger", 1e-5),  # u0 has a kink at the ends
    ],
)
def test_evolutions_converge(name: str, error: float):
    problem = EVOLUTIONS[name]
    x = np.linspace(problem.lower, problem.upper, 101)
    assert evolution_reference(name, 5, x).error < error
