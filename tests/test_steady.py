"""Steady problems by Gauss-Newton: weights of rows, growing strength, modes."""

import numpy as np
import pytest

from pinnlab import loads_problem
from pinnlab.newton.collocation import Collocation
from pinnlab.newton.curriculum import strengthened
from pinnlab.newton.numbers import Numbers, Range
from pinnlab.newton.pointwise import Compiled, Pointwise
from pinnlab.newton.space import Space
from pinnlab.newton.steady import _remaining, _wider
from pinnlab.newton.weights import row_weights
from pinnlab.result import FieldError
from pinnlab.system.system import build_system
from pinnlab.verify import verified


LAYER = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
shock = "0.02*dxx(u) = u*dx(u)"
[conditions]
left = { on = "x = 0", equation = "u = 1" }
right = { on = "x = 1", equation = "u = -1" }
"""


PAIRS = ((0.08, 0.002), (0.03, 0.008))


@pytest.fixture(scope="module")
def system():
    return build_system(loads_problem(LAYER, "layer"), "rows")


def test_strength_multiplies_what_is_quadratic(system):
    terms = Pointwise(system, system.equations)
    rng = np.random.default_rng(0)
    points, values = rng.random((5, 1)), rng.normal(size=(5, len(terms.partials)))
    by_order = {p.orders: v for p, v in zip(terms.partials, values.T, strict=True)}
    linear, quadratic = 0.02 * by_order[2,], -by_order[0,] * by_order[1,]
    for strength in (0.0, 0.3, 1.0):
        terms.strength = strength
        residual, slopes = terms(points, values)
        expected = linear + strength * quadratic
        np.testing.assert_allclose(residual[:, 0], expected, rtol=1e-12)
        h = 1e-6
        for j in range(values.shape[1]):
            step = h * (np.arange(values.shape[1]) == j)
            change = terms(points, values + step)[0] - terms(points, values - step)[0]
            np.testing.assert_allclose(
                slopes[:, :, j], change / (2 * h), rtol=1e-7, atol=1e-8
            )


def test_a_layer_is_reached_by_growing_strength_alone(system):
    groups = [system.equations, *((c,) for c in system.conditions)]
    compiled = Compiled(system)
    terms = [compiled.of(g) for g in groups]
    space = Space((64,), (), None, (0,))
    collocation = Collocation(system, space, groups, compiled, weighted=True)
    box, zero = Range(np.zeros(1), np.ones(1)), np.zeros((1, 64))
    at_once = collocation.solve(box=box, lift=zero, free=zero.ravel(), tolerance=1e-8)
    assert not at_once.converged
    guess = Numbers(zero, np.zeros((1, 0)))
    grown = strengthened(collocation, terms, guess, 1e-8, lambda: False)
    assert grown.converged
    # u = -c tanh(c (x - 1/2) / (2 nu)) with c tanh(c / (4 nu)) = 1, so c = 1 nearly.
    x = np.linspace(0, 1, 21)
    found = space.functions(0, 2 * x - 1, 0) @ grown.coefficients[0]
    # The heights beside the layer depend on exp(-1 / (2 nu)): residuals show little.
    np.testing.assert_allclose(found, -np.tanh((x - 0.5) / 0.04), atol=1e-2)


def test_a_truth_does_not_decide_below_its_own_error(monkeypatch):
    # The first field's truth is worth 0.1: both are as near, the second field decides.
    def errors(probe, model, truth, grid):
        return [
            FieldError("p", model[0], 0.0, "reference", own=0.1),
            FieldError("u", model[1], 0.0, "reference", own=1e-3),
        ]

    monkeypatch.setattr(verified, "field_errors", errors)
    monkeypatch.setattr(verified, "Probe", lambda system: system)
    near, far = (verified.distances(None, m, None, None) for m in PAIRS)  # type: ignore
    assert near == (0.1, 0.002)
    assert near < far


def test_squares_of_the_weights_integrate_over_the_nodes(system):
    nodes = Space((40,), (), None, (0,)).nodes(0)
    points = (nodes[:, None] + 1) / 2
    squares = row_weights(system, system.equations, points)[:, 0] ** 2
    for power in (0, 2, 4):
        # The midpoint rule in the angle.
        integral = np.pi / len(nodes) * np.sum(squares * nodes**power)
        assert integral == pytest.approx(2 / (power + 1), rel=2e-3)


def test_changes_still_to_come_are_a_geometric_series():
    assert _remaining([1.0, 0.1]) == 0.1
    assert _remaining([1.0, 0.4, 0.1]) == pytest.approx(0.1 / 3)
    assert _remaining([1.0, 0.1, 0.1]) == 0.1


def test_modes_are_added_as_far_as_there_is_room():
    assert _wider((10, 10), (0, 1), (), 1000) == (14, 14)
    assert _wider((10, 10), (1,), (), 1000) == (10, 14)
    assert _wider((20, 20), (0, 1), (), 529) == (23, 23)
    assert _wider((20, 20), (0, 1), (), 450) == (20, 20)
    assert _wider((21, 20), (0, 1), (0,), 560) == (23, 23)
