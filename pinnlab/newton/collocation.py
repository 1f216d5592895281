"""One slab solved by Gauss-Newton: collocation of all terms in a space of functions.

The unknown numbers of a field are its coefficients of the separable functions, then
those of the singular functions at corners.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from pinnlab.equation.expression import Partial
from pinnlab.newton.least_squares import RCOND, damped, preconditioned, triangle_of
from pinnlab.newton.numbers import Numbers, Range, Solved
from pinnlab.newton.pointwise import Compiled, Pointwise
from pinnlab.newton.space import Space
from pinnlab.newton.weights import row_weights
from pinnlab.sampling import membership
from pinnlab.system.system import System
from pinnlab.system.terms import Term


MOST_STEPS = 12
SHORTEST_STEP = 0.1
DAMPING = 1e-9
"""Of the numbers relative to their columns, where singular functions are there: these
are nearly sums of the others."""
SAMPLES = 12
"""Points along each coordinate where fields with singular functions are compared."""
STALLED, SETTLED = 0.9, 1e-2
"""With these the numbers never settle: the steps end where the residual hardly falls,
and have converged if the fields change by less than this."""


@dataclass
class Block:
    """Terms that share nodes, with the features' derivatives there (kept).

    - `unit`: the nodes, scaled; first `plain` ones of a grid, then those near corners.
    - `weights`: of the rows, [n, terms].
    """

    terms: tuple[Term, ...]
    pointwise: Pointwise
    unit: np.ndarray
    plain: int
    weights: np.ndarray | None = None
    kept: dict[tuple, tuple[np.ndarray, float]] = field(default_factory=dict)
    scale: np.ndarray | None = None


@dataclass(frozen=True)
class Wanted:
    """A derivative of one field at places [n, dim] in scaled coordinates.

    - `scaled`: the orders by which it is multiplied for the scales.
    """

    field: int
    orders: tuple[int, ...]
    scaled: tuple[int, ...]
    place: np.ndarray


Linearized = tuple[np.ndarray, np.ndarray]
"""Scaled Jacobian [rows, unknowns] and residual [rows]."""


class Collocation:
    """The equations and conditions of a system, collocated in one space.

    `weighted`: whether rows count by the measure of the domain that they stand for.
    The `unknowns` are in one row, with `columns` for each field that is independent.
    """

    def __init__(
        self,
        system: System,
        space: Space,
        groups: Sequence[tuple[Term, ...]],
        compiled: Compiled,
        weighted: bool = False,
    ):
        self.system, self.space, self.weighted = system, space, weighted
        axes = system.problem.axes
        self.whole = Range(
            np.array([a.lower for a in axes]), np.array([a.upper for a in axes])
        )
        self.blocks = [self._block(g, compiled) for g in groups]
        self.triangle: np.ndarray | None = None
        self.columns: dict[int, slice] = {}
        self.unknowns = 0
        for f in space.independent:
            size = int(np.prod(self._shape(f))) + space.singular
            self.columns[f] = slice(self.unknowns, self.unknowns + size)
            self.unknowns += size

    def _block(self, terms: tuple[Term, ...], compiled: Compiled) -> Block:
        fixed = dict(terms[0].place.fixed)
        axes = []
        for i, axis in enumerate(self.system.problem.axes):
            if axis.name in fixed:
                width = axis.upper - axis.lower
                axes.append(np.array([2 * (fixed[axis.name] - axis.lower) / width - 1]))
            else:
                axes.append(self.space.nodes(i))
        grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        names = self.system.coordinates
        graded = self.space.graded({names.index(n): v for n, v in fixed.items()})
        unit = np.concatenate([grid, self.whole.unit(graded)])
        block = Block(terms, compiled.of(terms), unit, len(grid))
        if self.weighted:
            points = self.whole.points(unit)
            corners = self.space.corners
            block.weights = row_weights(
                self.system, terms, points, corners, len(graded)
            )
        return block

    def _shape(self, f: int) -> tuple[int, ...]:
        """The shape of a field's unknown numbers."""
        shape = list(self.space.modes)
        if self.space.march is not None:
            shape[self.space.march] = self.space.unknown(f).shape[1]
        return tuple(shape)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(b.terms) * len(b.unit) for b in self.blocks)

    def complete(self, lift: np.ndarray, free: np.ndarray) -> Numbers:
        """All numbers from the unknown ones; `lift` has known coefficients."""
        found = lift.copy()
        singular = np.zeros((len(found), self.space.singular))
        for f in range(len(found)):
            source = self.space.source(f)
            part = free[self.columns[source]]
            modes, singular[f] = np.split(part, [len(part) - self.space.singular])
            found[f] += self._raised(f, modes.reshape(self._shape(source)))
        return Numbers(found, singular)

    def free(self, numbers: Numbers) -> np.ndarray:
        """The unknown numbers of a problem without a march, in one row."""
        fields = len(numbers.modes)
        pair = (numbers.modes.reshape(fields, -1), numbers.singular)
        return np.concatenate(pair, axis=1).ravel()

    def _raised(self, f: int, part: np.ndarray) -> np.ndarray:
        march = self.space.march
        if march is None:
            return part
        moved = np.tensordot(self.space.unknown(f), part, axes=(1, march))
        return np.moveaxis(moved, 0, march)

    def solve(
        self,
        box: Range,
        lift: np.ndarray,
        tolerance: float,
        free: np.ndarray | None = None,
    ) -> Solved:
        """Gauss-Newton until a step changes less than the tolerance.

        `free`: the unknown numbers to begin with, zero if missing.
        """
        free = np.zeros(self.unknowns) if free is None else free
        for block in self.blocks:
            block.scale = None
        now = self._linearized(box, self.complete(lift, free))
        merit = float(np.linalg.norm(now[1]))
        last, converged = 0.0, False
        for _ in range(MOST_STEPS):
            move = self._move(now[0], -now[1])
            del now  # There is room for one Jacobian only.
            if not np.isfinite(move).all():
                break
            trial, length, now = self._searched(box, lift, free, move, merit)
            change = self._change(lift, trial, move)
            new_merit = float(np.linalg.norm(now[1]))
            if new_merit >= merit:
                converged = change <= (SETTLED if self.space.corners else tolerance)
                break
            stays = new_merit > STALLED * merit and change <= SETTLED
            free, merit = trial, new_merit
            if self.space.corners and stays:
                converged = True
                break
            # Newton's steps shrink quadratically: this bounds the next one.
            following = change * min(1.0, change / last if last else 1.0)
            if length == 1.0 and following <= 0.1 * tolerance:
                converged = True
                break
            last = change
        return Solved(self.complete(lift, free), merit, converged)

    def stepped(self, numbers: Numbers) -> tuple[Numbers, float, float]:
        """One whole step of a problem without a march.

        **Returns:** the new numbers, and the norm of all scaled rows before and after.
        """
        lift, free = np.zeros_like(numbers.modes), self.free(numbers)
        matrix, before = self._linearized(self.whole, numbers)
        move = self._move(matrix, -before)
        del matrix  # There is room for one Jacobian only.
        new = self.complete(lift, free + move)
        _, after = self._linearized(self.whole, new)
        return new, float(np.linalg.norm(before)), float(np.linalg.norm(after))

    def _change(self, lift: np.ndarray, free: np.ndarray, move: np.ndarray) -> float:
        """The size of a move relative to that of the solution it leads to."""
        if not self.space.corners:
            size = self.complete(lift, free).size
            return float(np.linalg.norm(move)) / max(size, 1e-300)
        z = (2 * np.arange(SAMPLES) + 1) / SAMPLES - 1
        unit = np.stack([g.ravel() for g in np.meshgrid(z, z, indexing="ij")], axis=1)
        zero = np.zeros_like(lift)
        now, moved = (
            np.linalg.norm(self.values(unit, self.complete(first, numbers)), axis=1)
            for first, numbers in ((lift, free), (zero, move))
        )
        return float(np.max(moved / np.where(now > 0, now, 1.0)))

    def values(self, unit: np.ndarray, numbers: Numbers) -> np.ndarray:
        """The fields [fields, n] at scaled points."""
        zero = (0,) * unit.shape[1]
        columns = self.space.singular_columns(self.whole.points(unit), zero)
        return np.stack(
            [
                self._value(unit, zero, modes) + columns @ singular
                for modes, singular in zip(numbers.modes, numbers.singular, strict=True)
            ]
        )

    def _searched(
        self,
        box: Range,
        lift: np.ndarray,
        free: np.ndarray,
        move: np.ndarray,
        merit: float,
    ) -> tuple[np.ndarray, float, Linearized]:
        """The step halved until the residual falls: numbers, length, linearization."""
        length = 1.0
        while True:
            trial = free + length * move
            new = self._linearized(box, self.complete(lift, trial))
            if float(np.linalg.norm(new[1])) < merit or length < SHORTEST_STEP:
                return trial, length, new
            length /= 2

    def _move(self, jacobian: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The Gauss-Newton step, by an earlier factorization where that serves."""
        if self.space.corners:
            return damped(jacobian, right, DAMPING)
        if self.triangle is not None:
            found = preconditioned(jacobian, right, self.triangle)
            if found is not None:
                return found
        self.triangle = triangle_of(jacobian)
        if self.triangle is not None:
            found = preconditioned(jacobian, right, self.triangle)
            if found is not None:
                return found
        solved = scipy.linalg.lstsq(
            jacobian, right, cond=RCOND, lapack_driver="gelsy", check_finite=False
        )
        assert solved is not None
        return solved[0]

    def _linearized(self, box: Range, numbers: Numbers) -> Linearized:
        """All blocks' rows."""
        # By far the largest array here: it is filled in place, never copied.
        matrix = np.zeros((self.rows, self.unknowns))
        ends = np.cumsum([len(b.terms) * len(b.unit) for b in self.blocks])[:-1]
        right = [
            self._fill(block, box, numbers, rows)
            for block, rows in zip(self.blocks, np.split(matrix, ends), strict=True)
        ]
        return matrix, np.concatenate(right)

    def _fill(
        self, block: Block, box: Range, numbers: Numbers, rows: np.ndarray
    ) -> np.ndarray:
        """Write a block's rows of the Jacobian, [n, unknowns]; returns its residual."""
        points = box.points(block.unit)
        place = block.terms[0].place
        for name, value in place.fixed:
            points[:, self.system.coordinates.index(name)] = value
        places = block.pointwise.locations(points)
        wanted = [
            self._wanted(p, box.unit(where))
            for p, where in zip(block.pointwise.partials, places, strict=True)
        ]
        values = np.zeros((len(points), len(wanted)))
        for j, w in enumerate(wanted):
            found = self._value(w.place, w.orders, numbers.modes[w.field])
            if self.space.corners:
                columns = self._features(block, w)[0][:, -self.space.singular :]
                found = found + columns @ numbers.singular[w.field]
            values[:, j] = found * box.factor(w.scaled)
        residual, slopes = block.pointwise(points, values)
        if block.weights is not None:
            residual = residual * block.weights
            slopes = slopes * block.weights[:, :, None]
        matrix = rows.reshape(len(block.terms), len(points), -1)
        largest = self._assemble(block, box, wanted, slopes, matrix)
        scale = block.scale
        if scale is None:
            size = np.where(largest > 0, largest, 1.0)
            scale = block.scale = 1 / (size * np.sqrt(block.plain))
        weight = np.repeat(scale[:, None], len(points), axis=1)
        if place.where is not None:
            weight *= membership(self.system.problem, place)(points)
        matrix *= weight[:, :, None]
        return (residual.T * weight).ravel()

    def _wanted(self, partial: Partial, place: np.ndarray) -> Wanted:
        f = self.system.fields.index(partial.field)
        return Wanted(f, partial.orders, self.space.raised(f, partial.orders), place)

    def _assemble(
        self,
        block: Block,
        box: Range,
        wanted: list[Wanted],
        slopes: np.ndarray,
        matrix: np.ndarray,
    ) -> np.ndarray:
        """Add the rows to [terms, n, unknowns]; gives the RMS of the largest pieces."""
        count = slopes.shape[1]
        largest = np.zeros(count)
        for j, w in enumerate(wanted):
            features, size = self._features(block, w)
            columns = self.columns[self.space.source(w.field)]
            for e in range(count):
                slope = slopes[:, e, j] * box.factor(w.scaled)
                if slope.any():
                    matrix[e, :, columns] += slope[:, None] * features
                    rms = float(np.sqrt(np.mean(slope[: block.plain] ** 2)))
                    largest[e] = max(largest[e], rms * size)
        return largest

    def _value(
        self, place: np.ndarray, orders: tuple[int, ...], coefficients: np.ndarray
    ) -> np.ndarray:
        """[n]: a derivative of one field by the scaled coordinates."""
        found = self.space.functions(0, place[:, 0], orders[0])
        found = np.tensordot(found, coefficients, axes=1)
        for i, order in enumerate(orders[1:], start=1):
            row = self.space.functions(i, place[:, i], order)
            found = np.einsum("ni,ni...->n...", row, found)
        return found

    def _features(self, block: Block, wanted: Wanted) -> tuple[np.ndarray, float]:
        """[n, unknowns of the field]: its features' derivatives, and the RMS of those
        that are not singular."""
        f, place = wanted.field, wanted.place
        kind = self.space.initial[f], f in self.space.velocity_of
        key = (wanted.orders, kind, np.round(place, 13).tobytes())
        if key not in block.kept:
            rows = np.ones((len(place), 1))
            for i, order in enumerate(wanted.orders):
                row = self.space.functions(i, place[:, i], order)
                if i == self.space.march:
                    row = row @ self.space.unknown(wanted.field)
                rows = (rows[:, :, None] * row[:, None, :]).reshape(len(place), -1)
            rms = float(np.sqrt(np.mean(rows[: block.plain] ** 2)))
            if self.space.corners:
                points = self.whole.points(place)
                extra = self.space.singular_columns(points, wanted.orders)
                extra /= self.whole.factor(wanted.orders)
                rows = np.concatenate([rows, extra], axis=1)
            block.kept[key] = rows, rms
        return block.kept[key]
