"""Least squares with a dense matrix: by QR with damping, or by iteration."""

from collections.abc import Callable
from typing import cast

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, lsqr


RCOND = 1e-13
LSQR_TOLERANCE, MOST_LSQR = 1e-9, 25
Multiply = Callable[..., tuple[np.ndarray, np.ndarray]]
"""Gives Q'b and R."""


def triangle_of(matrix: np.ndarray) -> np.ndarray | None:
    """An upper triangle R with R'R = A'A nearly; None where columns are dependent.

    Cholesky of the normal equations, whose rounding the preconditioned iteration mends;
    by QR, five times slower, where they are too ill-conditioned.
    """
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    square = matrix.T @ matrix
    square /= size
    square /= size[:, None]
    try:
        factor = scipy.linalg.cholesky(square, overwrite_a=True, check_finite=False)
        return factor * size
    except np.linalg.LinAlgError:
        pass
    if matrix.shape[0] < matrix.shape[1]:
        return None
    triangle = np.asarray(np.linalg.qr(matrix / size, mode="r"))
    diagonal = np.abs(np.diag(triangle))
    return triangle * size if diagonal.min() > RCOND * diagonal.max() else None


def damped(matrix: np.ndarray, vector: np.ndarray, damping: float) -> np.ndarray:
    """The minimizer of |matrix x - vector|^2 + damping^2 |size x|^2, with the norms of
    the columns as `size`, by a QR factorization."""
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    rows, columns = matrix.shape
    taller = np.zeros((rows + columns, columns))
    np.divide(matrix, size, out=taller[:rows])
    taller[rows:].flat[:: columns + 1] = damping
    right = np.concatenate([vector, np.zeros(columns)])
    multiply = cast(Multiply, scipy.linalg.qr_multiply)
    turned, triangle = multiply(taller, right, mode="right", overwrite_a=True)
    return scipy.linalg.solve_triangular(triangle, turned, check_finite=False) / size


def preconditioned(
    matrix: np.ndarray, vector: np.ndarray, triangle: np.ndarray
) -> np.ndarray | None:
    """The minimizer of |matrix x - vector| by LSQR (Paige & Saunders, 1982), with the
    triangle of a matrix like it as preconditioner; None if that converges slowly."""
    solve = scipy.linalg.solve_triangular

    class Preconditioned(LinearOperator):
        def _matvec(self, x: np.ndarray) -> np.ndarray:
            return matrix @ solve(triangle, x, check_finite=False)

        def _rmatvec(self, x: np.ndarray) -> np.ndarray:
            return solve(triangle, matrix.T @ x, trans=1, check_finite=False)

    found = lsqr(
        Preconditioned(np.dtype(float), matrix.shape),
        vector,
        atol=LSQR_TOLERANCE,
        btol=LSQR_TOLERANCE,
        iter_lim=MOST_LSQR,
    )
    return solve(triangle, found[0]) if found[1] in (0, 1, 2) else None
