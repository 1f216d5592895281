"""Flows in lid-driven cavities by a spectral stream function, as truths of our own.

    python experiments/cavity_reference.py     # minutes; writes problems/cavity_*.h5

psi = psi_left + psi_right + phi. The first two are Stokes flow in the corners below the
lid, where the vorticity jumps, or the velocity itself; phi is a polynomial, found by
Gauss-Newton from psi_y lap(psi)_x - psi_x lap(psi)_y = nu lap(lap(psi)) and the
velocities at the walls. Where the velocity jumps phi has singular functions as well,
as inertia asks for them: z^a conj(z)^b log(z)^m conj(log(z))^l. It shares nothing with
pinnlab.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
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


@dataclass(frozen=True)
class Lid:
    """The speed of the lid y = 1 at x, and Stokes flow in both corners below it.

    `degrees`: of the singular functions, in r.
    """

    speed: Callable[[np.ndarray], np.ndarray]
    corners: Callable[[np.ndarray, np.ndarray], StreamFunction]
    degrees: tuple[int, ...] = ()


def main() -> None:
    """Velocities on both centre lines of the cavity with nu = 1/400 and a unit lid, and
    on a grid of that of the gallery."""
    line = np.linspace(0, 1, 129)
    x = np.concatenate([0 * line + 0.5, line])
    y = np.concatenate([line, 0 * line + 0.5])
    write("cavity_400_lines.h5", x, y, 1 / 400, INERTIA)
    side = np.linspace(0, 1, 65)
    x, y = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    write("cavity_100_points.h5", x, y, 0.01, PARABOLA)


def write(name: str, x: np.ndarray, y: np.ndarray, nu: float, lid: Lid) -> None:
    """A file of velocities, and the difference of two resolutions."""
    coarse, fine = (cavity_velocity(n, x, y, nu, lid) for n in COUNTS)
    own = [
        np.linalg.norm(b - a) / np.linalg.norm(b)
        for a, b in zip(coarse, fine, strict=True)
    ]
    path = Path(__file__).parent / "problems" / name
    with h5py.File(path, "w") as file:
        file.attrs["source"] = "experiments/cavity_reference.py"
        file.attrs["reference_error"] = max(own)
        for name, values in zip("xyuv", (x, y, *fine), strict=True):
            file[name] = values
    print(f"{path}: relative error {max(own):.1e}, u from {fine[0].min():.6f}")


def cavity_velocity(
    n: int, x: np.ndarray, y: np.ndarray, nu: float = 0.01, lid: Lid | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """u and v at the points (x, y), with n^2 polynomials.

    The lid is the gallery's, with u = 4 x (1 - x), unless given; other walls rest. A
    smaller `nu` than 0.01 is reached by halving.
    """
    lid = lid or PARABOLA
    angle = np.pi * (np.arange(n) + 0.5) / n
    nodes = (1 - np.cos(angle)) / 2
    zero, one = np.zeros(n), np.ones(n)
    near, turns = graded(lid)
    rays = np.pi / 2 * turns
    ring_x = np.outer(near, np.cos(rays)).ravel()
    ring_y = 1 - np.outer(near, np.sin(rays)).ravel()
    px = np.concatenate([np.repeat(nodes, n), ring_x, 1 - ring_x])
    py = np.concatenate([np.tile(nodes, n), ring_y, ring_y])
    # Where the equation holds, and then the walls.
    count = len(px)
    walls_x = np.concatenate([zero, one, nodes, nodes, near, 1 - near, 0 * near, near])
    walls_y = np.concatenate([nodes, nodes, zero, one, near**0, near**0])
    walls_y = np.concatenate([walls_y, 1 - near, 1 - near])
    walls_x[len(walls_x) - len(near) :] = 1.0
    px, py = np.concatenate([px, walls_x]), np.concatenate([py, walls_y])
    basis, corners = columns(n, px, py, lid), lid.corners(px, py)
    speed = np.where(py == 1, lid.speed(px), 0.0)
    inside = slice(0, count)
    # (1 - x^2)^2-like weights, as the conditions hold psi and its slope at the walls;
    # n^-3 balances an equation of fourth order with them.
    edge = np.sin(angle) ** 2
    rings = NEAR * np.repeat(near**2, len(rays)) * n / max(1, 2 * ring_x.size) ** 0.5
    equation = np.concatenate([np.outer(edge, edge).ravel(), rings, rings])
    weight = np.concatenate([n**-3.0 * equation, np.ones(3 * len(walls_x))])
    coefficients = np.zeros(basis.value.shape[1])
    halvings = max(0, int(np.ceil(np.log2(0.01 / nu))))
    for each in np.maximum(nu, 0.01 / 2.0 ** np.arange(halvings + 1)):
        for _ in range(14):
            psi = corners + basis @ coefficients
            residual = momentum(psi, each)[inside]
            slope = linearized(psi, basis, each)[inside]
            right = np.concatenate([residual, *walls(psi, speed, count)])
            rows = np.concatenate([slope, *walls(basis, 0 * speed[:, None], count)])
            rows, right = weight[:, None] * rows, -weight * right
            size = np.linalg.norm(rows, axis=0)
            change = np.linalg.lstsq(rows / size, right, rcond=1e-14)[0] / size
            coefficients = coefficients + change
            if np.linalg.norm(basis.y @ change) < 1e-9 * np.linalg.norm(speed):
                break
    at = lid.corners(x, y) + columns(n, x, y, lid) @ coefficients
    return at.y, -at.x


def momentum(psi: StreamFunction, nu: float) -> np.ndarray:
    """The residual of the vorticity equation."""
    return psi.y * psi.lap_x - psi.x * psi.lap_y - nu * psi.bilap


def linearized(psi: StreamFunction, basis: StreamFunction, nu: float) -> np.ndarray:
    """The derivative of `momentum` along each polynomial."""
    y, x, lap_x, lap_y = (a[:, None] for a in (psi.y, psi.x, psi.lap_x, psi.lap_y))
    first = y * basis.lap_x - x * basis.lap_y
    return first + basis.y * lap_x - basis.x * lap_y - nu * basis.bilap


def walls(psi: StreamFunction, lid: np.ndarray, first: int) -> list[np.ndarray]:
    """What must vanish on the walls, from a node on: psi and both velocities."""
    return [a[first:] for a in (psi.value, psi.x, psi.y - lid)]


def parabolic_corners(x: np.ndarray, y: np.ndarray) -> StreamFunction:
    """Stokes flow in both upper corners where the lid's speed grows as 4 X.

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


def scraped_corners(x: np.ndarray, y: np.ndarray) -> StreamFunction:
    """Stokes flow in both upper corners where the lid has unit speed (Taylor 1962).

    psi = -(a Y + theta (b X + c Y)) meets the velocity 1 on the lid theta = 0 and 0 on
    the wall theta = pi/2. theta is harmonic: lap(psi) = -2 grad(theta) . (b, c).
    """
    b = 1 / (1 - np.pi**2 / 4)
    a, c = -b * np.pi**2 / 4, b * np.pi / 2
    flows = []
    for along, sign in ((x, 1.0), (1 - x, -1.0)):
        down = 1 - y
        r2 = np.maximum(along**2 + down**2, 1e-300)
        theta = np.arctan2(down, along)
        across = b * along + c * down
        twist, bend = 2 * along * down / r2**2, (down**2 - along**2) / r2**2
        flows.append(
            StreamFunction(
                -(a * down + theta * across),
                -sign * (b * theta - down / r2 * across),
                a + c * theta + along / r2 * across,
                -sign * 2 * (b * twist + c * bend),
                2 * (b * bend - c * twist),
                np.zeros_like(x),
            )
        )
    return flows[0] + flows[1]


PARABOLA = Lid(lambda x: 4 * x * (1 - x), parabolic_corners)
UNIT = Lid(np.ones_like, scraped_corners)
INERTIA = Lid(np.ones_like, scraped_corners, (2, 3))
COUNTS = (40, 48)
RINGS, RAYS, CLOSEST, NEAR = 24, 8, 1e-5, 0.5


def graded(lid: Lid) -> tuple[np.ndarray, np.ndarray]:
    """Distances from a corner, and parts of its angle, of nodes near it."""
    if not lid.degrees:
        return np.zeros(0), np.zeros(0)
    share = (np.arange(RINGS) + 0.5) / RINGS
    turns = (1 - np.cos(np.pi * (np.arange(RAYS) + 0.5) / RAYS)) / 2
    return CLOSEST * (0.7 / CLOSEST) ** share, turns


def columns(n: int, x: np.ndarray, y: np.ndarray, lid: Lid) -> StreamFunction:
    """All functions of phi: arrays of shape (points, functions)."""
    parts = [polynomials(n, x, y)]
    if lid.degrees:
        parts += [singular(lid.degrees, x, y, is_right) for is_right in (False, True)]
    every = zip(*(vars(p).values() for p in parts), strict=True)
    return StreamFunction(*(np.concatenate(a, axis=1) for a in every))


Sum = dict[tuple[int, int, int, int], complex]
"""Coefficients of z^a conj(z)^b log(z)^m conj(log(z))^l, by (a, b, m, l)."""


def singular(
    degrees: tuple[int, ...], x: np.ndarray, y: np.ndarray, is_right: bool
) -> StreamFunction:
    """Real and imaginary parts of singular functions, with z = X + iY from the corner
    along the lid and down."""
    sign = -1.0 if is_right else 1.0
    z = (1 - x if is_right else x) + 1j * (1 - y)
    z = np.where(z == 0, 1e-14, z)
    powers = [
        (n - b, b, m, l)
        for n in degrees
        for b in range(-1, n + 2)
        for m, l in itertools.product(range(3), repeat=2)
        if 0 < m + l <= 2 or (m + l == 0 and not 0 <= b <= n)
    ]
    # The conjugate of a function has the same parts.
    powers = [p for p in powers if (p[0], p[2]) >= (p[1], p[3])]

    def derived(found: Sum, by_conjugate: int) -> Sum:
        more: Sum = {}
        for key, c in found.items():
            for place, factor in (
                (by_conjugate, key[by_conjugate]),
                (2 + by_conjugate, key[2 + by_conjugate]),
            ):
                low = list(key)
                low[by_conjugate] -= 1
                if place >= 2:
                    low[place] -= 1
                if factor:
                    new = (low[0], low[1], low[2], low[3])
                    more[new] = more.get(new, 0) + factor * c
        return more

    def value(found: Sum) -> np.ndarray:
        log, total = np.log(z), np.zeros_like(z)
        for (a, b, m, l), c in found.items():
            total += c * z**a * z.conj() ** b * log**m * log.conj() ** l
        return total

    rows = []
    for power in powers:
        f: Sum = {power: 1.0}
        lap = derived(derived(f, 0), 1)
        first = [value(derived(f, k)) for k in (0, 1)]
        third = [4 * value(derived(lap, k)) for k in (0, 1)]
        rows.append(
            (
                value(f),
                sign * (first[0] + first[1]),
                -1j * (first[0] - first[1]),
                sign * (third[0] + third[1]),
                -1j * (third[0] - third[1]),
                16 * value(derived(derived(lap, 0), 1)),
            )
        )
    every = [np.stack(a, axis=1) for a in zip(*rows, strict=True)]
    parts = [np.concatenate([np.real(a), np.imag(a)], axis=1) for a in every]
    return StreamFunction(*parts)


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


if __name__ == "__main__":
    main()
