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
from pinnlab.newton.numbers import Numbers, Range, Solved
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.space import Space
from pinnlab.newton.structure import Evolution
from pinnlab.system.system import System
from pinnlab.system.terms import Term


MOST_UNKNOWNS = 400_000
"""Of one slab: its small matrices and GMRES's vectors take about 1 GB."""
MOST_NUMBERS = 40_000_000
"""Of all slabs, filled up to the same modes."""
TIME_MODES, GROWTH, SAMPLES = 16, 2.0, 16
"""Polynomials in time; what modes in space are multiplied with; nodes for each harmonic
at which initial data are sampled."""
MOST_STEPS = 12
FORCING, MOST_INNER = 1e-3, 60
"""By what GMRES lowers the correction in each step, and its most iterations."""
FEW_INNER = 6
"""A preconditioner that needed more iterations is not kept for the next slab."""
ROUNDING = 1e-13
CONTRACTS = 0.5
"""A step that lowers the correction by less has reached rounding, or diverges."""


@dataclass(frozen=True)
class Rows:
    """As many equations as independent fields, at `place` [times] in [-1, 1].

    - `unknown`: the unknown part of each field, [modes, times] each.
    - `nodes`: in space, for each harmonic: of 3 there are no aliases of products of two
        fields, and more are good for data with kinks.
    """

    terms: tuple[Term, ...]
    place: np.ndarray
    unknown: tuple[np.ndarray, ...]
    nodes: int = 3


def suits(system: System, evolution: Evolution) -> bool:
    """Whether space is one periodic coordinate, with initial data for all fields."""
    if len(system.coordinates) != 2 or len(system.joined) != 1:
        return False
    if evolution.conditions or len(set(evolution.initial)) != 1:
        return False
    here = tuple(Coordinate(n) for n in system.coordinates)
    trees = [t.residual for t in system.equations if isinstance(t.residual, Expression)]
    own = all(p.at == here for tree in trees for p in partials(tree))
    independent = len(system.fields) - len(evolution.velocity_of)
    return own and len(trees) == independent


class Harmonic:
    """The rows, for all harmonics of a space with one periodic coordinate.

    Numbers are kept as complex amplitudes [fields, times, harmonics].
    """

    def __init__(
        self,
        system: System,
        space: Space,
        rows: Rows,
        compiled: Compiled,
    ):
        assert space.march is not None
        self.system, self.space, self.rows = system, space, rows
        self.march = march = space.march
        self.pointwise = compiled.of(rows.terms)
        self.most = space.modes[1 - march] // 2
        least = rows.nodes * self.most + 1
        self.count: int = next_fast_len(least, real=True)  # pyright: ignore
        self.rates = 1j * np.pi * np.arange(self.most + 1)
        line = -1 + 2 * np.arange(self.count) / self.count
        both = [g.ravel() for g in np.meshgrid(rows.place, line, indexing="ij")]
        self.unit = np.stack(both if march == 0 else both[::-1], axis=1)
        self.independent = space.independent
        self.kept: Average | None = None

    def solve(self, box: Range, lift: np.ndarray, tolerance: float) -> Solved:
        """Newton from the lift until the correction is below the tolerance.

        The preconditioner of the slab before serves again while it is good.
        """
        kept = self.kept
        if kept is not None and kept.suits(box):
            found = self._solved(box, lift, tolerance, kept)
            if found.converged:
                return found
        return self._solved(box, lift, tolerance, None)

    def _solved(
        self, box: Range, lift: np.ndarray, tolerance: float, average: "Average | None"
    ) -> Solved:
        self.kept = None
        points = box.points(self.unit)
        for name, value in self.rows.terms[0].place.fixed:
            points[:, self.system.coordinates.index(name)] = value
        now = amplitudes(lift, self.march)
        measure, inner = np.inf, 0
        for _ in range(MOST_STEPS):
            residual, slopes = self._linearized(points, box, now)
            if average is None:
                average = self._average(box, slopes.mean(axis=1))
            if average is None:
                break
            right = -average.solve(self.transformed(residual))
            size = float(np.linalg.norm(now)) or 1.0
            last, measure = measure, float(np.linalg.norm(right)) / size
            if not measure <= CONTRACTS * last or measure <= 0.1 * tolerance:
                break
            move, count = _step(average, slopes, right, 0.01 * tolerance * size)
            inner = max(inner, count)
            now = now + np.stack(
                [u @ move[self.row(f)] for f, u in enumerate(self.rows.unknown)]
            )
        if inner <= FEW_INNER:
            self.kept = average
        numbers = Numbers(coefficients(now, self.march))
        return Solved(numbers, measure, measure <= tolerance)

    def _average(self, box: Range, mean: np.ndarray) -> "Average | None":
        """The preconditioner; None where the equations do not determine the fields."""
        try:
            return Average(self, box, mean)
        except np.linalg.LinAlgError:
            return None

    def _linearized(
        self, points: np.ndarray, box: Range, now: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Residuals [equations, times, nodes], slopes [times, nodes, equations,
        partials]."""
        values = [
            self.at_nodes(p, self.place(p, box) @ now[self.field(p)]).ravel()
            for p in self.pointwise.partials
        ]
        residual, slopes = self.pointwise(points, np.stack(values, axis=1))
        shape = (len(self.rows.place), self.count)
        return (
            np.ascontiguousarray(residual.T).reshape(-1, *shape),
            slopes.reshape(*shape, *slopes.shape[1:]),
        )

    def field(self, partial: Partial) -> int:
        return self.system.fields.index(partial.field)

    def row(self, field: int) -> int:
        """Where the numbers that a field follows from are among the unknown ones."""
        return self.independent.index(self.space.source(field))

    def place(self, partial: Partial, box: Range) -> np.ndarray:
        """[times, modes]: a derivative in time of the polynomials, at the rows."""
        order = partial.orders[self.march]
        scaled = self.space.raised(self.field(partial), partial.orders)
        functions = self.space.functions(self.march, self.rows.place, order)
        return functions * box.factor(scaled)

    def at_nodes(self, partial: Partial, spectrum: np.ndarray) -> np.ndarray:
        """[times, nodes]: a derivative in space of [times, harmonics]."""
        spectrum = spectrum * self.rates ** partial.orders[1 - self.march]
        return np.fft.irfft(spectrum, self.count, axis=-1, norm="forward")

    def transformed(self, values: np.ndarray) -> np.ndarray:
        """[..., harmonics] of [..., nodes]."""
        return np.fft.rfft(values, axis=-1, norm="forward")[..., : self.most + 1]


class Average:
    """The part of the Jacobian that has averaged slopes, and its inverse.

    Equations times times are as many as fields times unknown numbers of each.

    - `mean`: the slopes, [times, equations, partials].

    Raises `LinAlgError` where they do not determine the fields.
    """

    def __init__(self, harmonic: Harmonic, box: Range, mean: np.ndarray):
        self.harmonic, self.mean, self.size = harmonic, mean, box.upper - box.lower
        self.partials = harmonic.pointwise.partials
        fields = [harmonic.field(p) for p in self.partials]
        self.rows = [harmonic.row(f) for f in fields]
        self.places = [
            harmonic.place(p, box) @ harmonic.rows.unknown[f]
            for p, f in zip(self.partials, fields, strict=True)
        ]
        numbers = harmonic.rows.unknown[0].shape[1]
        self.unknown = (len(harmonic.independent), numbers, harmonic.most + 1)
        self.inverses = self._inverses()

    def suits(self, box: Range) -> bool:
        """Whether another slab is as long."""
        return np.allclose(box.upper - box.lower, self.size, rtol=1e-12)

    def _inverses(self) -> np.ndarray:
        """[harmonics, n, n], n for the equations times the times."""
        harmonic, mean = self.harmonic, self.mean
        times, equations, _ = mean.shape
        shape = (harmonic.most + 1, equations, times, *self.unknown[:2])
        matrix = np.zeros(shape, complex)
        for j, (p, place) in enumerate(zip(self.partials, self.places, strict=True)):
            rates = harmonic.rates ** p.orders[1 - harmonic.march]
            for e in range(equations):
                if mean[:, e, j].any():
                    block = mean[:, e, j, None] * place
                    matrix[:, e, :, self.rows[j]] += rates[:, None, None] * block
        return np.linalg.inv(matrix.reshape(len(matrix), equations * times, -1))

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """[fields, unknown, harmonics] for rows [equations, times, harmonics]."""
        flat = rows.reshape(-1, rows.shape[2]).T
        found = (self.inverses @ flat[:, :, None])[:, :, 0]
        return np.ascontiguousarray(found.T).reshape(self.unknown)


class Rest(LinearOperator):
    """What the preconditioner makes of the Jacobian: 1 + average^-1 (J - average).

    - `slopes`: of the equations by the partials, [times, nodes, equations, partials].
    """

    def __init__(self, average: Average, slopes: np.ndarray):
        times, nodes, equations, _ = slopes.shape
        self.average = average
        size = 2 * int(np.prod(average.unknown))
        LinearOperator.__init__(self, np.dtype(float), (size, size))
        less = np.moveaxis(slopes - average.mean[:, None], (3, 2), (0, 1))
        scale = np.abs(slopes).max(axis=(0, 1, 2))
        varies = np.abs(less).max(axis=(1, 2, 3)) > ROUNDING * scale
        # Constant coefficients take no transforms.
        self.varying = {
            int(j): np.ascontiguousarray(less[j]) for j in np.flatnonzero(varies)
        }
        self.total = np.zeros((equations, times, nodes))

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        average, harmonic = self.average, self.average.harmonic
        move = x.view(complex).reshape(average.unknown)
        self.total[:] = 0.0
        for j, slopes in self.varying.items():
            p = average.partials[j]
            values = harmonic.at_nodes(p, average.places[j] @ move[average.rows[j]])
            self.total += slopes * values
        found = move + average.solve(harmonic.transformed(self.total))
        return found.ravel().view(float)


def _step(
    average: Average, slopes: np.ndarray, right: np.ndarray, enough: float
) -> tuple[np.ndarray, int]:
    """Newton's step [fields, unknown, harmonics] by GMRES, and its iterations."""
    norms = list[float]()
    found, _ = gmres(
        Rest(average, slopes),
        np.ascontiguousarray(right).ravel().view(float),
        rtol=FORCING, atol=enough, restart=MOST_INNER, maxiter=1,
        callback=norms.append, callback_type="pr_norm",
    )  # fmt: skip
    return found.view(complex).reshape(right.shape), len(norms)


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
