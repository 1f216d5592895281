"""A kernel through random directions: exact at full rank, good where values decay."""

import jax.numpy as jnp
import numpy as np
import pytest
from objectives import FIT_START, POINTS, Objective, fit

from pinnlab.optimizer import ENGDW, SPRING, Numbering
from pinnlab.optimizer.nystrom import nystrom


def decaying(rows=40):
    values = 10.0 ** -np.arange(rows, dtype=float)
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(rows, rows)))
    return jnp.asarray(basis * values @ basis.T)


def every(rows):
    return Numbering(rows, rows)


def test_a_kernel_that_decays_is_seen_through_few_directions():
    matrix = decaying()
    found = nystrom(lambda v: matrix @ v, every(40), 12, jnp.dtype(float))
    z = jnp.asarray(np.random.default_rng(1).normal(size=40))
    for shift in jnp.array([1e-2, 1e-5]):
        exact = np.linalg.solve(matrix + shift * np.eye(40), z)
        error = np.linalg.norm(found.solve(shift, z) - exact)
        assert error < 1e-6 * np.linalg.norm(exact)
    assert found.trace == pytest.approx(np.trace(matrix), rel=1e-9)
    coarse = nystrom(lambda v: matrix @ v, every(40), 2, jnp.dtype(float))
    assert coarse.trace < found.trace


def test_a_kernel_of_zeros_gives_the_shifted_identity():
    found = nystrom(lambda v: 0 * v, every(6), 3, jnp.dtype(float))
    np.testing.assert_allclose(found.solve(jnp.asarray(2.0), jnp.ones(6)), 0.5)


@pytest.mark.parametrize("memory", [10**9, 0], ids=["jacobian", "products"])
@pytest.mark.parametrize("kind", [ENGDW, SPRING])
def test_at_full_rank_the_step_is_the_exact_one(kind, memory):
    objective = Objective(fit, POINTS)
    theta = FIT_START.astype(float)
    exact, seen = kind(), kind(most=0, rank=100, memory=memory)
    wanted, _, _ = exact.step(objective, theta, exact.init(objective, theta))
    found, _, _ = seen.step(objective, theta, seen.init(objective, theta))
    assert jnp.linalg.norm(wanted - theta) > 1e-3
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
