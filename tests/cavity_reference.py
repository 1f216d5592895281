"""The flow in the gallery's lid-driven cavity by a spectral stream function.

psi = psi_left + psi_right + phi. The first two are Stokes flow in the corners below the
lid, where the vorticity jumps; phi is a polynomial, found by Gauss-Newton from
psi_y lap(psi)_x - psi_x lap(psi)_y = nu lap(lap(psi)) and the velocities at the walls.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev


@dataclass(frozen=True)
class StreamFunction:
    """psi and its derivatives at points; `lap` is its Laplacian."""

    value: np.ndarray
    x: np.ndarray
    y: np.ndarray
    lap_x: np.ndarray
    lap_y: np.ndarray
    bilap: np.ndarray

    def __add__(self, other: "StreamFunction") -> "StreamFunction":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return StreamFunction(*(a + b for a, b in pairs))

    def __matmul__(self, coefficients: np.ndarray) -> "StreamFunction":
        return StreamFunction(*(a @ coefficients for a in vars(self).values()))


def cavity_velocity(
    n: int, x: np.ndarray, y: np.ndarray, nu: float = 0.01
) -> tuple[np.ndarray, np.ndarray]:
    """u and v at the points (x, y), with n^2 polynomials.

    The lid y = 1 moves with u = 4 x (1 - x); the other walls rest.
    """
    angle = np.pi * (np.arange(n) + 0.5) / n
    nodes = (1 - np.cos(angle)) / 2
    zero, one = np.zeros(n), np.ones(n)
    px = np.concatenate([np.repeat(nodes, n), zero, one, nodes, nodes])
    py = np.concatenate([np.tile(nodes, n), nodes, nodes, zero, one])
    basis, corners = polynomials(n, px, py), corner_flows(px, py)
    lid = np.where(py == 1, 4 * px * (1 - px), 0.0)
    inside = slice(0, n * n)
    # (1 - x^2)^2-like weights, as the conditions hold psi and its slope at the walls;
    # n^-3 balances an equation of fourth order with them.
    edge = np.sin(angle) ** 2
    weight = np.concatenate([n**-3.0 * np.outer(edge, edge).ravel(), np.ones(12 * n)])
    coefficients = np.zeros(n * n)
    for _ in range(12):
        psi = corners + basis @ coefficients
        residual = np.concatenate([momentum(psi, nu)[inside], *walls(psi, lid, n)])
        slope = linearized(psi, basis, nu)[inside]
        jacobian = np.concatenate([slope, *walls(basis, 0 * lid[:, None], n)])
        rows, right = weight[:, None] * jacobian, -weight * residual
        change = np.linalg.lstsq(rows, right, rcond=None)[0]
        coefficients = coefficients + change
        if np.linalg.norm(change) < 1e-12 * np.linalg.norm(coefficients):
            break
    at = corner_flows(x, y) + polynomials(n, x, y) @ coefficients
    return at.y, -at.x


def momentum(psi: StreamFunction, nu: float) -> np.ndarray:
    """The residual of the vorticity equation."""
    return psi.y * psi.lap_x - psi.x * psi.lap_y - nu * psi.bilap


def linearized(psi: StreamFunction, basis: StreamFunction, nu: float) -> np.ndarray:
    """The derivative of `momentum` along each polynomial."""
    y, x, lap_x, lap_y = (a[:, None] for a in (psi.y, psi.x, psi.lap_x, psi.lap_y))
    first = y * basis.lap_x - x * basis.lap_y
    return first + basis.y * lap_x - basis.x * lap_y - nu * basis.bilap


def walls(psi: StreamFunction, lid: np.ndarray, n: int) -> list[np.ndarray]:
    """What must vanish on the walls: psi and both velocities."""
    return [a[n * n :] for a in (psi.value, psi.x, psi.y - lid)]


def corner_flows(x: np.ndarray, y: np.ndarray) -> StreamFunction:
    """Stokes flow in both upper corners, in closed form.

    With X along the lid, Y down, theta = atan2(Y, X):
    psi = pi Y^2 - 2 (X^2 + Y^2) theta - 2 X Y, so that lap(psi) = 2 pi - 8 theta.
    """
    flows = []
    for along, sign in ((x, 1.0), (1 - x, -1.0)):
        down = 1 - y
        r2 = np.maximum(along**2 + down**2, 1e-300)
        theta = np.arctan2(down, along)
        flows.append(
            StreamFunction(
                np.pi * down**2 - 2 * r2 * theta - 2 * along * down,
                sign * -4 * along * theta,
                4 * along + 4 * down * theta - 2 * np.pi * down,
                sign * 8 * down / r2,
                8 * along / r2,
                np.zeros_like(x),
            )
        )
    return flows[0] + flows[1]


def polynomials(n: int, x: np.ndarray, y: np.ndarray) -> StreamFunction:
    """Products of Chebyshev polynomials: arrays of shape (points, n^2)."""
    dx, dy = _derivatives(n, x), _derivatives(n, y)

    def product(i: int, j: int) -> np.ndarray:
        return (dx[i][:, :, None] * dy[j][:, None, :]).reshape(len(x), n * n)

    return StreamFunction(
        product(0, 0),
        product(1, 0),
        product(0, 1),
        product(3, 0) + product(1, 2),
        product(2, 1) + product(0, 3),
        product(4, 0) + 2 * product(2, 2) + product(0, 4),
    )


def _derivatives(n: int, x: np.ndarray) -> list[np.ndarray]:
    """T_k(2 x - 1) and its first four derivatives: arrays of shape (points, n)."""
    identity = np.eye(n)
    return [
        chebyshev.chebval(2 * x - 1, chebyshev.chebder(identity, m, scl=2)).T
        for m in range(5)
    ]
