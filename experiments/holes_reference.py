"""Solutions on squares with circular holes, by series, as truths of our own.

    python experiments/holes_reference.py     # writes two files into problems/

Around every hole stand the solutions that decay away from it, and at its images behind
the walls too (odd reflections keep a wall at 0); what is left is a regular series
around the middle of the square. Least squares on the edge gives the coefficients. By
the maximum principle the error is nowhere larger than the largest misfit on the edge,
which is measured between the points of the fit. It shares nothing with pinnlab.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import ive, kve


Function = Callable[[np.ndarray, np.ndarray], np.ndarray]
COUNT = 4000
"""Points at which the solutions are stored."""


@dataclass(frozen=True)
class Square:
    """A square around the origin with circular holes.

    - `half`: half of its side.
    - `holes`: center and radius of each.
    - `rate`: k of -lap(u) + k^2 u = f.
    """

    half: float
    holes: tuple[tuple[float, float, float], ...]
    rate: float

    def walls(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Points of all four walls, denser towards the corners."""
        line = -self.half * np.cos(np.pi * (np.arange(count) + 0.5) / count)
        face = np.full(count, self.half)
        return (
            np.concatenate([line, line, face, -face]),
            np.concatenate([face, -face, line, line]),
        )

    def circles(self, count: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """Points of all circles."""
        angle = 2 * np.pi * (np.arange(count) + shift) / count
        x = np.concatenate([a + r * np.cos(angle) for a, _, r in self.holes])
        y = np.concatenate([b + r * np.sin(angle) for _, b, r in self.holes])
        return x, y

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Points inside, at random."""
        rng = np.random.default_rng(0)
        x, y = rng.uniform(-self.half, self.half, (2, 3 * COUNT))
        out = np.all([np.hypot(x - a, y - b) > r for a, b, r in self.holes], axis=0)
        return x[out][:COUNT], y[out][:COUNT]


def main() -> None:
    """Both solutions, with their errors."""
    holes = tuple((a, b, 0.1) for a in (-0.3, 0.3) for b in (-0.3, 0.3))
    one = lambda x, y: np.ones_like(x)
    laplace = Square(0.5, holes, 0.0)
    write("laplace_four_holes", laplace, *solution(laplace, one, lambda x, y: 0 * x))
    holes = ((0.5, 0.5, 0.2), (0.4, -0.4, 0.4), (-0.2, -0.7, 0.1), (-0.6, 0.5, 0.3))
    screened = Square(1.0, holes, 8.0)
    coarse, fine = particular(source, 48), particular(source, 56)
    unsure = float(
        np.max(np.abs(fine(*screened.points()) - coarse(*screened.points())))
    )
    base = lambda x, y: fine(x, y) + 0.2 * constant_walls(x, y)
    found, bound = solution(screened, base, one)
    write("poisson_boltzmann", screened, found, bound + unsure)


def source(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The right side of the screened equation."""
    return 10 * (17 + x**2 + y**2) * np.sin(np.pi * x) * np.sin(4 * np.pi * y)


def solution(square: Square, base: Function, value: Function) -> tuple[Function, float]:
    """base + what is 0 on the walls, so that it is `value` on the circles.

    **Arguments:**

    - `base`: satisfies the equation and the conditions of the walls.

    **Returns:** it, and a bound of its error.
    """
    fits = [
        np.concatenate(p)
        for p in zip(square.walls(300), square.circles(200, 0.0), strict=True)
    ]
    right = np.where(np.arange(len(fits[0])) < 1200, 0.0, value(*fits) - base(*fits))
    matrix = functions(square, *fits)
    sizes = np.linalg.norm(matrix, axis=0)
    coefficients = np.linalg.lstsq(matrix / sizes, right, rcond=1e-15)[0] / sizes
    found = lambda x, y: base(x, y) + functions(square, x, y) @ coefficients
    walls, circles = square.walls(777), square.circles(641, 0.3)
    # On the walls the base is as given; the rest has to vanish there.
    misfits = (
        functions(square, *walls) @ coefficients,
        found(*circles) - value(*circles),
    )
    return found, max(float(np.max(np.abs(m))) for m in misfits)


def functions(square: Square, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values of all functions at points, [n, functions]."""
    found = [regular(square, x, y, 24)]
    for a, b, radius in square.holes:
        for i in range(-2, 3):
            for j in range(-2, 3):
                own = i == j == 0
                p = 2 * square.half * i + (-1) ** i * a
                q = 2 * square.half * j + (-1) ** j * b
                near = abs(i) <= 1 and abs(j) <= 1
                count = 28 if own else 14 if near else 3
                found.append(decaying(square, x - p, y - q, radius, count))
    return np.concatenate(found, axis=1)


def decaying(
    square: Square, x: np.ndarray, y: np.ndarray, radius: float, count: int
) -> np.ndarray:
    """Solutions that decay away from a point: of size one at a radius."""
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    columns = []
    for n in range(count):
        if square.rate:
            k = square.rate
            size = kve(n, k * r) / kve(n, k * radius) * np.exp(-k * (r - radius))
        else:
            size = np.log(r) if n == 0 else (radius / r) ** n
        columns += [size * np.cos(n * angle), size * np.sin(n * angle)][: 2 if n else 1]
    return np.stack(columns, axis=1)


def regular(square: Square, x: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Solutions that are smooth everywhere: of size one at the square's corners."""
    r, angle, far = np.hypot(x, y), np.arctan2(y, x), square.half * 2**0.5
    columns = []
    for n in range(count):
        if square.rate:
            k = square.rate
            size = ive(n, k * r) / ive(n, k * far) * np.exp(k * (r - far))
        else:
            size = (r / far) ** n
        columns += [size * np.cos(n * angle), size * np.sin(n * angle)][: 2 if n else 1]
    return np.stack(columns, axis=1)


def particular(given: Function, count: int, rate: float = 8.0) -> Function:
    """-lap(u) + rate^2 u = given on [-1, 1]^2, u = 0 on the walls, by collocation."""
    nodes = np.cos(np.pi * np.arange(count) / (count - 1))
    values = chebyshev.chebvander(nodes, count - 1)
    second = np.array(
        [chebyshev.chebval(nodes, chebyshev.chebder(c, 2)) for c in np.eye(count)]
    ).T
    # D acts on values at the inner nodes of functions that vanish at both ends.
    matrix = (second @ np.linalg.inv(values))[1:-1, 1:-1]
    rates, vectors = np.linalg.eig(matrix)
    rates, vectors = np.real(rates), np.real(vectors)
    inverse = np.linalg.inv(vectors)
    x, y = np.meshgrid(nodes[1:-1], nodes[1:-1], indexing="ij")
    modes = inverse @ given(x, y) @ inverse.T
    modes = modes / (rate**2 - rates[:, None] - rates[None, :])
    inner = np.zeros((count, count))
    inner[1:-1, 1:-1] = vectors @ modes @ vectors.T
    to_coefficients = np.linalg.inv(values)
    coefficients = to_coefficients @ inner @ to_coefficients.T
    return lambda x, y: chebyshev.chebval2d(x, y, coefficients)


def constant_walls(
    x: np.ndarray, y: np.ndarray, rate: float = 8.0, count: int = 2000
) -> np.ndarray:
    """-lap(u) + rate^2 u = 0 on [-1, 1]^2, u = 1 on the walls, by a Fourier series.

    cosh(k x) / cosh(k) has the right values at x = -1 and 1; the series repairs those
    at y = -1 and 1. Its terms fall like n^-3 there and exponentially inside.
    """
    total = np.cosh(rate * x) / np.cosh(rate)
    for n in range(1, count, 2):
        wave = n * np.pi / 2
        decay = (wave**2 + rate**2) ** 0.5
        size = 4 / (n * np.pi) * np.sin(wave) * rate**2 / (wave**2 + rate**2)
        # cosh(decay y) / cosh(decay), without overflow.
        away = np.exp(decay * (np.abs(y) - 1)) * (1 + np.exp(-2 * decay * np.abs(y)))
        total += size * np.cos(wave * x) * away / (1 + np.exp(-2 * decay))
    return total


def write(name: str, square: Square, found: Function, bound: float) -> None:
    """Scattered values and their relative error as a reference file."""
    x, y = square.points()
    values = found(x, y)
    own = bound / float(np.sqrt(np.mean(values**2)))
    path = Path(__file__).parent / "problems" / f"{name}_points.h5"
    with h5py.File(path, "w") as file:
        file.attrs["source"] = "experiments/holes_reference.py"
        file.attrs["reference_error"] = own
        for key, array in {"x": x, "y": y, "u": values}.items():
            file[key] = array
    print(f"{path}: error below {bound:.1e}, {own:.1e} of the solution's size")


if __name__ == "__main__":
    main()
