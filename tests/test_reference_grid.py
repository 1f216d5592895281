"""Spectral grids: exact on what they can represent, spectral on the rest."""

import numpy as np
import pytest

from pinnlab.reference.grid import Grid, Line


def line(periodic: bool, count: int = 24) -> Line:
    return Line("x", -0.5, 2.0, count, periodic)


@pytest.mark.parametrize("count", [7, 8, 33])
def test_chebyshev_quadrature_is_exact_on_polynomials(count: int):
    a = line(False, count)
    for power in range(count):
        exact = (2.0 ** (power + 1) - (-0.5) ** (power + 1)) / (power + 1)
        assert np.isclose(a.weights @ a.nodes**power, exact, rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_chebyshev_derivatives_of_an_exponential(order: int):
    a = line(False)
    found = a.matrix(order) @ np.exp(a.nodes)
    # Rounding grows like count^(2 order).
    assert np.allclose(found, np.exp(a.nodes), rtol=0, atol=1e-14 * 24 ** (2 * order))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [25, 26])
def test_fourier_derivatives_of_a_wave(order: int, count: int):
    a = line(True, count)
    k = 2 * np.pi * 3 / 2.5
    wave = [np.sin, np.cos, lambda z: -np.sin(z), lambda z: -np.cos(z)]
    found = a.matrix(order) @ np.sin(k * a.nodes)
    exact = k**order * wave[order % 4](k * a.nodes)
    assert np.allclose(found, exact, rtol=0, atol=1e-12 * k**order)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("count", [40, 41])
def test_interpolation_is_spectral(periodic: bool, count: int):
    a = line(periodic, count)
    function = lambda x: np.exp(np.sin(2 * np.pi * x / 2.5))
    points = np.concatenate([np.linspace(-0.5, 2.0, 101), a.nodes[:3]])
    found = a.interpolation(points) @ function(a.nodes)
    # Chebyshev points resolve a wave with pi/2 times as many nodes.
    assert np.allclose(
        found, function(points), rtol=0, atol=1e-13 if periodic else 2e-9
    )
    at_nodes = a.interpolation(a.nodes[:3])
    assert np.allclose(at_nodes, np.eye(count)[:3], rtol=0, atol=1e-14)


def test_derivatives_and_interpolation_on_a_tensor_grid():
    grid = Grid((line(False, 30), Line("y", 0.0, 2 * np.pi, 16, periodic=True)))
    x, y = (c.reshape(grid.shape) for c in grid.points.T)
    values = np.stack([np.exp(x) * np.sin(2 * y), np.cos(x + y)])
    found = grid.derivative(values, (1, 2))
    exact = np.stack([-4 * np.exp(x) * np.sin(2 * y), np.sin(x + y)])
    assert np.allclose(found, exact, rtol=0, atol=1e-10)
    mesh = np.meshgrid(np.linspace(-0.5, 2, 9), np.linspace(0, 6, 7), indexing="ij")
    tensor = np.stack([m.ravel() for m in mesh], axis=1)
    rng = np.random.default_rng(0)
    scattered = rng.uniform([-0.5, 0], [2, 6], (50, 2))
    for p in (tensor, tensor[::-1], scattered):
        exact = np.stack([np.exp(p[:, 0]) * np.sin(2 * p[:, 1]), np.cos(p.sum(1))])
        assert np.allclose(grid.interpolate(values, p), exact, rtol=0, atol=1e-12)
    assert np.isclose(
        np.sum(grid.weights * values[0] ** 2), np.pi * _square(), rtol=1e-12
    )


def _square() -> float:
    """The integral of exp(2 x) over [-0.5, 2]."""
    return (np.exp(4.0) - np.exp(-1.0)) / 2
