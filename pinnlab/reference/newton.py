"""Damped Gauss-Newton for collocation systems, with a rank-revealing dense solve.

Rows and columns are scaled to unit length, so that units do not matter. Steps are
accepted by the natural monotonicity test (Deuflhard, 2004): the next step, with the
same Jacobian, must be shorter.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from pinnlab.reference.boundary_value import Collocation


SINGULAR = 1e-13
"""The reciprocal condition number below which a matrix has a null space."""
SHORTEST = 1 / 512
"""The shortest step that is tried, relative to the full one."""
ROUNDINGS = 10
"""Units of rounding, times the condition number, that a step may consist of."""
COARSE = 1e-7
"""What is never taken for rounding, relative to the unknowns."""
SMALLEST = 1 / 64
"""The smallest increase of the nonlinear part."""


class Singular(Exception):
    """The linear system has a null space, `vector` in it; None if rows are missing."""

    def __init__(self, vector: np.ndarray | None):
        Exception.__init__(self, "singular")
        self.vector = vector


class Diverged(Exception):
    """Newton's iteration found no solution."""


@dataclass(frozen=True, eq=False)
class Factorization:
    """A least-squares solve: D_r J D_c = Q R.

    - `rows`, `columns`: the diagonals of D_r and D_c.
    - `rcond`: the reciprocal condition number of R.
    """

    qr: np.ndarray
    tau: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    rcond: float

    def solve(self, right: np.ndarray) -> np.ndarray:
        """The least-squares solution, in scaled unknowns."""
        scaled = np.asfortranarray((self.rows * right)[:, None])
        ormqr, trtrs = get_lapack_funcs(("ormqr", "trtrs"), (self.qr,))
        product, _, _ = ormqr("L", "T", self.qr, self.tau, scaled, 64)
        size = len(self.columns)
        solution, _ = trtrs(self.qr[:size], product[:size])
        return solution[:, 0]


def factorize(jacobian: np.ndarray) -> Factorization:
    """QR of the scaled Jacobian, which is overwritten. Raises `Singular`."""
    count, size = jacobian.shape
    if count < size:
        raise Singular(None)
    rows = _inverse(np.sqrt(np.einsum("ij,ij->i", jacobian, jacobian)))
    jacobian *= rows[:, None]
    columns = _inverse(np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian)))
    jacobian *= columns
    if not np.all(np.isfinite(jacobian)):
        raise Diverged("the Jacobian is not finite")
    geqrf, trcon = get_lapack_funcs(("geqrf", "trcon"), (jacobian,))
    qr, tau, _, _ = geqrf(jacobian, lwork=64 * size, overwrite_a=True)
    rcond, _ = trcon(qr[:size])
    factorization = Factorization(qr, tau, rows, columns, float(rcond))
    if rcond < SINGULAR:
        raise Singular(_null_vector(factorization))
    return factorization


def _inverse(norms: np.ndarray) -> np.ndarray:
    return 1 / np.where(norms > 0, norms, 1.0)


def _null_vector(factorization: Factorization) -> np.ndarray:
    """By inverse iteration on R^T R."""
    size = len(factorization.columns)
    upper = np.triu(factorization.qr[:size])
    smallest = 1e-300 + np.finfo(float).eps * np.abs(np.diag(upper)).max()
    diagonal = np.diag(upper)
    shift = np.where(np.abs(diagonal) < smallest, smallest, 0.0)
    upper[np.arange(size), np.arange(size)] += shift
    vector = np.ones(size)
    for _ in range(3):
        vector = solve_triangular(upper, vector, trans=1)
        vector = solve_triangular(upper, vector)
        vector = vector / np.linalg.norm(vector)
    return factorization.columns * vector


@dataclass(frozen=True)
class Found:
    """A solution of the rows.

    - `scaled`: the unknowns in units in which all columns are alike.
    - `mismatch`: what is left of each row, relative to its length times the unknowns.
    - `rcond`: the reciprocal condition number of the last Jacobian.
    """

    unknowns: np.ndarray
    scaled: np.ndarray
    mismatch: np.ndarray
    rcond: float
    steps: int


Rows = Callable[[np.ndarray], tuple[np.ndarray, Callable[[], np.ndarray]]]
"""Gives the residual and, when called for, the Jacobian."""


def rows_of(system: Collocation) -> Rows:
    """The rows of a collocation system."""

    def rows(unknowns: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        residual, pieces = system.linearize(unknowns)
        return residual, lambda: system.dense(len(residual), pieces)

    return rows


def newton(rows: Rows, start: np.ndarray, tolerance: float, most: int = 40) -> Found:
    """A zero of the rows in the least-squares sense.

    **Arguments:**

    - `tolerance`: on the last step, relative to the unknowns.

    Raises `Singular` for a null space and `Diverged` where no step helps.
    """
    unknowns = start
    residual, jacobian = rows(unknowns)
    for step in range(1, most + 1):
        if not np.all(np.isfinite(residual)):
            raise Diverged("the equations have no value at the start")
        solver = factorize(jacobian())
        change = solver.solve(-residual)
        length = float(np.linalg.norm(change))
        # Below this, steps are rounding.
        noise = ROUNDINGS * np.finfo(float).eps / solver.rcond
        least = max(tolerance, min(noise, COARSE))
        factor, correction = 1.0, change
        while True:
            trial = unknowns + factor * solver.columns * change
            residual, jacobian = rows(trial)
            correction = solver.solve(-residual)
            size = float(np.linalg.norm(trial / solver.columns))
            left = float(np.linalg.norm(correction))
            if left <= least * size or left <= (1 - factor / 4) * length:
                break
            factor /= 2
            if factor < SHORTEST:
                raise Diverged("no step makes the residual smaller")
        unknowns = trial
        if left <= least * size:
            unknowns = unknowns + solver.columns * correction
            residual, _ = rows(unknowns)
            mismatch = np.abs(solver.rows * residual) / max(size, 1e-150)
            scaled = unknowns / solver.columns
            return Found(unknowns, scaled, mismatch, solver.rcond, step)
    raise Diverged(f"no convergence in {most} steps")


def continued(rows: Rows, start: np.ndarray, tolerance: float) -> Found:
    """A zero of the rows through s r(u) + (1 - s) (r(u_0) + J(u_0) (u - u_0)).

    The nonlinear part is switched on as s grows from 0 to 1.

    Raises `Singular`, and `Diverged` where s cannot grow.
    """
    residual, jacobian = rows(start)
    slope = jacobian()

    def blended(s: float) -> Rows:
        def blend(
            unknowns: np.ndarray,
        ) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
            value, matrix = rows(unknowns)
            line = residual + slope @ (unknowns - start)
            return (
                s * value + (1 - s) * line,
                lambda: np.asfortranarray(s * matrix() + (1 - s) * slope),
            )

        return blend

    reached, step, unknowns = 0.0, 0.25, start
    while reached < 1:
        s = min(1.0, reached + step)
        try:
            found = newton(blended(s), unknowns, tolerance)
        except Diverged:
            step /= 2
            if step < SMALLEST:
                raise
            continue
        reached, step, unknowns = s, 2 * step, found.unknowns
    return newton(rows, unknowns, tolerance)


def lifted(rows: Rows, conditions: np.ndarray, size: int) -> np.ndarray:
    """The smallest unknowns that satisfy the conditions, linearized at zero."""
    residual, jacobian = rows(np.zeros(size))
    matrix = jacobian()[conditions]
    if not len(matrix) or not np.all(np.isfinite(matrix)):
        raise Diverged("the conditions have no value at zero")
    return np.linalg.lstsq(matrix, -residual[conditions], rcond=None)[0]
