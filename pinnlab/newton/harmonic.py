"""One slab of an evolution on a periodic line by Newton and GMRES, without its matrix.

With coefficients averaged over space, the Jacobian is a small matrix for each harmonic:
polynomials in time times fields. The inverses of these precondition GMRES (Saad and
Schultz, 1986); products with the whole Jacobian take fast transforms (Knoll and Keyes,
2004). Work and memory grow with the number of harmonics, not with its square.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len
from scipy.sparse.linalg import LinearOperator, gmres

from pinnlab.equation.expression import Coordinate, Expression, Partial
from pinnlab.equation.structure import partials
from pinnlab.newton.collocation import Range, Solved
from pinnlab.newton.pointwise import Pointwise
from pinnlab.newton.space import Space
from pinnlab.newton.structure import Evolution
from pinnlab.system.system import System
from pinnlab.system.terms import Term


MOST_UNKNOWNS = 400_000
"""Of one slab: its small matrices and GMRES's vectors take about 1 GB."""
TIME_MODES, GROWTH = 16, 2.0
MOST_STEPS = 12
FORCING, MOST_INNER = 1e-3, 60
"""By what GMRES lowers the correction in each step, and its most iterations."""
CONTRACTS = 0.5
"""A step that lowers the correction by less has reached rounding, or diverges."""


@dataclass(frozen=True)
class Rows:
    """As many equations as fields, at `place` [times] in [-1, 1].

    - `unknown`: the unknown part of each field, [modes, times].
    """

    terms: tuple[Term, ...]
    place: np.ndarray
    unknown: np.ndarray


def suits(system: System, evolution: Evolution) -> bool:
    """Whether space is one periodic coordinate, with initial data for all fields."""
    if len(system.coordinates) != 2 or len(system.joined) != 1:
        return False
    if evolution.conditions or len(set(evolution.initial)) != 1:
        return False
    here = tuple(Coordinate(n) for n in system.coordinates)
    trees = [t.residual for t in system.equations if isinstance(t.residual, Expression)]
    own = all(p.at == here for tree in trees for p in partials(tree))
    return own and len(trees) == len(system.fields)


class Harmonic:
    """The rows, for all harmonics of a space with one periodic coordinate.

    Numbers are kept as complex amplitudes [fields, times, harmonics].
    """

    def __init__(
        self,
        system: System,
        space: Space,
        rows: Rows,
        compiled: dict[tuple[Term, ...], Pointwise],
    ):
        assert space.march is not None
        self.system, self.space, self.rows = system, space, rows
        self.march = march = space.march
        if rows.terms not in compiled:
            compiled[rows.terms] = Pointwise(system, rows.terms)
        self.pointwise = compiled[rows.terms]
        self.most = space.modes[1 - march] // 2
        # Products of two fields have no aliases among the harmonics that are kept.
        self.count: int = next_fast_len(3 * self.most + 1, real=True)  # pyright: ignore
        self.rates = 1j * np.pi * np.arange(self.most + 1)
        line = -1 + 2 * np.arange(self.count) / self.count
        both = [g.ravel() for g in np.meshgrid(rows.place, line, indexing="ij")]
        self.unit = np.stack(both if march == 0 else both[::-1], axis=1)

    def solve(self, box: Range, lift: np.ndarray, tolerance: float) -> Solved:
        """Newton from the lift until the correction is below the tolerance."""
        points = box.points(self.unit)
        for name, value in self.rows.terms[0].place.fixed:
            points[:, self.system.coordinates.index(name)] = value
        pointwise, now = self.pointwise, amplitudes(lift, self.march)
        measure, inverses = np.inf, None
        for _ in range(MOST_STEPS):
            values = np.stack(
                [
                    self.at_nodes(p, self.place(p, box) @ now[self.field(p)])
                    for p in pointwise.partials
                ],
                axis=1,
            )
            residual, slopes = pointwise(points, values)
            jacobian = Jacobian(self, box, pointwise.partials, slopes)
            if inverses is None:
                inverses = jacobian.averaged_inverses()
            right = -_times(inverses, self.transformed(residual))
            size = float(np.linalg.norm(now)) or 1.0
            last, measure = measure, float(np.linalg.norm(right)) / size
            if not measure <= CONTRACTS * last or measure <= 0.1 * tolerance:
                break
            now = now + self.rows.unknown @ self._newton(
                jacobian, inverses, right, 0.01 * tolerance * size
            )
        return Solved(coefficients(now, self.march), measure, measure <= tolerance)

    def _newton(
        self,
        jacobian: "Jacobian",
        inverses: np.ndarray,
        right: np.ndarray,
        enough: float,
    ) -> np.ndarray:
        """The step [fields, times, harmonics] that GMRES finds."""

        class Preconditioned(LinearOperator):
            def _matvec(self, x: np.ndarray) -> np.ndarray:
                move = x.view(complex).reshape(right.shape)
                return _times(inverses, jacobian.product(move)).ravel().view(float)

        size = 2 * right.size
        found, _ = gmres(
            Preconditioned(np.dtype(float), (size, size)),
            right.ravel().view(float),
            rtol=FORCING, atol=enough, restart=MOST_INNER, maxiter=1,
        )  # fmt: skip
        return found.view(complex).reshape(right.shape)

    def field(self, partial: Partial) -> int:
        return self.system.fields.index(partial.field)

    def place(self, partial: Partial, box: Range) -> np.ndarray:
        """[times, modes]: a derivative in time of the polynomials, at the rows."""
        order = partial.orders[self.march]
        return self.space.functions(self.march, self.rows.place, order) * box.factor(
            partial.orders
        )

    def at_nodes(self, partial: Partial, spectrum: np.ndarray) -> np.ndarray:
        """[times * nodes]: a derivative in space of [times, harmonics]."""
        spectrum = spectrum * self.rates ** partial.orders[1 - self.march]
        values = np.fft.irfft(spectrum, self.count, axis=1, norm="forward")
        return values.ravel()

    def transformed(self, values: np.ndarray) -> np.ndarray:
        """[equations, times, harmonics] of [times * nodes, equations]."""
        nodes = values.reshape(len(self.rows.place), self.count, -1)
        found = np.fft.rfft(nodes, axis=1, norm="forward")[:, : self.most + 1]
        return np.ascontiguousarray(np.moveaxis(found, 2, 0))


class Jacobian:
    """The derivative of the rows by the unknown numbers.

    - `slopes`: of the equations by the partials, [times * nodes, equations, partials].
    """

    def __init__(
        self,
        harmonic: Harmonic,
        box: Range,
        partials: tuple[Partial, ...],
        slopes: np.ndarray,
    ):
        self.harmonic, self.partials, self.slopes = harmonic, partials, slopes
        self.places = [harmonic.place(p, box) @ harmonic.rows.unknown for p in partials]

    def product(self, move: np.ndarray) -> np.ndarray:
        """[equations, times, harmonics] for [fields, times, harmonics]."""
        harmonic = self.harmonic
        total = np.zeros(self.slopes.shape[:2])
        for j, (p, place) in enumerate(zip(self.partials, self.places, strict=True)):
            values = harmonic.at_nodes(p, place @ move[harmonic.field(p)])
            total += self.slopes[:, :, j] * values[:, None]
        return harmonic.transformed(total)

    def averaged_inverses(self) -> np.ndarray:
        """[harmonics, n, n]: the inverse for slopes averaged over space.

        Raises `LinAlgError` where they do not determine the fields.
        """
        harmonic = self.harmonic
        times, fields = len(harmonic.rows.place), len(harmonic.system.fields)
        shape = (harmonic.most + 1, fields, times, fields, times)
        matrix = np.zeros(shape, complex)
        mean = self.slopes.reshape(times, harmonic.count, fields, -1).mean(axis=1)
        for j, (p, place) in enumerate(zip(self.partials, self.places, strict=True)):
            rates = harmonic.rates ** p.orders[1 - harmonic.march]
            for e in range(fields):
                if mean[:, e, j].any():
                    block = mean[:, e, j, None] * place
                    matrix[:, e, :, harmonic.field(p)] += rates[:, None, None] * block
        return np.linalg.inv(matrix.reshape(len(matrix), fields * times, -1))


def _times(inverses: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Each harmonic's matrix times its rows [equations, times, harmonics]."""
    flat = rows.reshape(-1, rows.shape[2]).T
    found = (inverses @ flat[:, :, None])[:, :, 0]
    return np.ascontiguousarray(found.T).reshape(rows.shape)


def amplitudes(coefficients: np.ndarray, march: int) -> np.ndarray:
    """Complex amplitudes [fields, modes, harmonics] of the waves exp(i pi m (z + 1)).

    `coefficients`: [fields, modes...] of 1, cos(pi z), sin(pi z), ...
    """
    real = coefficients if march == 0 else np.swapaxes(coefficients, 1, 2)
    cosines, sines = real[:, :, 1::2], real[:, :, 2::2]
    signs = (-1.0) ** np.arange(1, cosines.shape[2] + 1)
    waves = (cosines - 1j * sines) / 2 * signs
    return np.concatenate([real[:, :, :1], waves], axis=2)


def coefficients(amplitudes: np.ndarray, march: int) -> np.ndarray:
    """What `amplitudes` came from."""
    fields, modes, count = amplitudes.shape
    real = np.zeros((fields, modes, 2 * count - 1))
    waves = 2 * amplitudes[:, :, 1:] * (-1.0) ** np.arange(1, count)
    real[:, :, 0] = np.real(amplitudes[:, :, 0])
    real[:, :, 1::2], real[:, :, 2::2] = np.real(waves), -np.imag(waves)
    return real if march == 0 else np.swapaxes(real, 1, 2)
