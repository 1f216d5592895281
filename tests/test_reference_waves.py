"""Free waves from a kink: against eigenvalues of a matrix, and sums of waves."""

import jax
import numpy as np
import pytest
from scipy.linalg import eigh_tridiagonal

from pinnlab import loads_problem
from pinnlab.reference.exponential import Lawson
from pinnlab.reference.fourier import Fourier, constant_form
from pinnlab.reference.grid import Line
from pinnlab.reference.initial_value import read_evolution
from pinnlab.reference.reflection import periodic_box
from pinnlab.reference.waves import Waves, sum_of_waves


POTENTIAL = """
coordinates = { t = [0, 1], x = [0, "2*pi"] }
fields = [{ name = "h", complex = true }]
periodic = ["x"]
[equations]
e = "1j*dt(h) + dxx(h)/2 + (1 + 4*cos(x))*h = 0"
[conditions]
initial = { on = "t = 0", equation = "h = x*(2*pi - x)/10" }
"""


def potential_truth(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Exact but for modes beyond 400, which are free: an error of some 1e-7.

    In modes the operator is tridiagonal; the data have the coefficients -1/(5 k^2).
    """
    k, last = np.arange(-60000, 60001), 400
    squares = np.where(k == 0, np.inf, 5.0 * k**2)
    start = np.where(k == 0, (2 * np.pi) ** 2 / 60, -1 / squares)
    inner = np.abs(k) <= last
    rates, vectors = eigh_tridiagonal(k[inner] ** 2 / 2 - 1, np.full(2 * last, -2.0))
    found: list[np.ndarray] = []
    for time in t:
        modes = np.exp(-1j * time * (k**2 / 2 - 1)) * start
        still = vectors.T @ start[inner]
        modes[inner] = vectors @ (np.exp(-1j * time * rates) * still)
        found.append(np.array([modes @ np.exp(1j * k * place) for place in x]))
    return np.stack(found)


def marched(count: int, steps: int, coarse: bool, points: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        evolution = read_evolution(loads_problem(POTENTIAL))
        form, box = constant_form(evolution), periodic_box(evolution)
        assert form is not None and box is not None
        fourier = Fourier(evolution, form, (box[0].line(count),), Lawson)
        found = Waves(fourier).run(steps, coarse).at(points)
    return found[:, 0] + 1j * found[:, 1]


def test_waves_in_a_potential_against_the_eigenvalues_of_its_matrix():
    # Two of the times are saved ones, two are in between.
    times, places = np.array([0.25, 1.0, 0.30211, 0.77777]), np.array([0.1, 2.0, 5.0])
    truth = potential_truth(times, places)
    mesh = np.meshgrid(times, places, indexing="ij")
    points = np.stack([m.ravel() for m in mesh], axis=1)
    errors: list[np.ndarray] = []
    for count in (64, 128):
        gap = marched(count, 1600, False, points).reshape(truth.shape) - truth
        errors.append(np.linalg.norm(gap.reshape(2, -1), axis=1))
    # 21 and 42 modes are marched; an error of third order in their number.
    assert np.all(errors[1] < 1e-5)
    assert np.linalg.norm(errors[0]) > 5 * np.linalg.norm(errors[1])


@pytest.mark.parametrize("places", [np.linspace(1, 3, 9), np.array([1.0, 1.3, 2.9])])
def test_waves_are_summed_on_a_lattice_and_elsewhere(places: np.ndarray):
    rng, line = np.random.default_rng(0), Line("x", 1.0, 3.0, 8, periodic=True)
    modes = rng.normal(size=(2, 1, 40)) + 1j * rng.normal(size=(2, 1, 40))
    modes[..., 0] = np.real(modes[..., 0])
    waves = np.exp(1j * np.pi * np.multiply.outer(np.arange(40), places - 1))
    truth = np.real(modes @ waves + np.conj(modes[..., 1:]) @ np.conj(waves[1:]))
    assert np.allclose(sum_of_waves(modes, line, places), truth, atol=1e-12)
