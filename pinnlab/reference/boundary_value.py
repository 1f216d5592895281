"""A boundary-value problem as rows: equations and conditions on collocation points.

Equations hold on Chebyshev points of the first kind, coarser than the fields by the
order of the equation, so that the conditions make the count right (rectangular
collocation; Driscoll and Hale, 2016).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pinnlab.reference.steady_basis import (
    Basis,
    Chebyshev,
    Expansion,
    Fourier,
    Space,
)
from pinnlab.reference.steady_breaks import Break
from pinnlab.reference.steady_linearization import Located, Piece, locate
from pinnlab.reference.steady_statements import Posed
from pinnlab.system.terms import coordinates


INTEGRAL_NODES = 48


@dataclass(frozen=True)
class Variant:
    """How many more functions than collocation points a field has.

    - `extension`: for each field and axis.
    - `extra`: collocation points of equations on each element above the count.
    """

    extension: Mapping[str, tuple[int, ...]]
    extra: int = 0


def variants(posed: Posed) -> tuple[Variant, ...]:
    """Ways to balance unknowns and rows, the usual one first.

    A field without conditions on faces, as the pressure, is sought in a smaller space
    (P_N - P_{N-2}); an equation that needs fewer conditions than its order, as at a
    singular point, has as many points as the fields have functions.
    """
    full = dict(posed.orders)
    none = (0,) * len(posed.problem.axes)
    most = max(max(o) for o in full.values())
    found = [Variant(full)]
    reduced = {f: o if f in posed.held else none for f, o in full.items()}
    if len(none) > 1 and reduced != full:
        found.append(Variant(reduced))
    return (*found, Variant(full, extra=most))


@dataclass(frozen=True, eq=False)
class Collocation:
    """A posed problem at one resolution.

    Unknowns are one array, field after field.
    """

    posed: Posed
    spaces: Mapping[str, Space]
    rows: tuple[tuple[Located, ...], ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return sum(s.size for s in self.spaces.values())

    def parts(self, unknowns: np.ndarray) -> dict[str, np.ndarray]:
        """The unknowns of each field."""
        ends = np.cumsum([s.size for s in self.spaces.values()])[:-1]
        return dict(zip(self.spaces, np.split(unknowns, ends), strict=True))

    def linearize(
        self, unknowns: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[slice, float, Piece]]]:
        """The residuals [rows], and the pieces of the Jacobian with their rows."""
        parts = self.parts(unknowns)
        residuals: list[np.ndarray] = []
        found: list[tuple[slice, float, Piece]] = []
        start = 0
        for sides in self.rows:
            total = np.zeros(0)
            for sign, located in zip((1.0, -1.0), sides, strict=False):
                values, pieces = located.linearize(parts)
                total = total + sign * values if len(total) else sign * values
                rows = slice(start, start + len(values))
                found += [(rows, sign, p) for p in pieces]
            residuals.append(total)
            start += len(total)
        return np.concatenate(residuals), found

    def dense(self, count: int, pieces: list[tuple[slice, float, Piece]]) -> np.ndarray:
        """The Jacobian [count, size] of the pieces."""
        starts = np.cumsum([0] + [s.size for s in self.spaces.values()])
        columns = {
            f: slice(a, b)
            for f, a, b in zip(self.spaces, starts[:-1], starts[1:], strict=True)
        }
        jacobian = np.zeros((count, self.size), order="F")
        for rows, sign, piece in pieces:
            block = piece.coefficients @ piece.site.matrix
            jacobian[rows, columns[piece.site.field]] += sign * block
        return jacobian

    @property
    def row_names(self) -> np.ndarray:
        """The name of the statement of each row."""
        return np.repeat(np.asarray(self.names), self._counts)

    @property
    def are_conditions(self) -> np.ndarray:
        """Which rows are conditions."""
        return np.repeat(np.asarray(self.kinds) == "condition", self._counts)

    @property
    def _counts(self) -> list[int]:
        return [len(next(iter(sides[0].columns.values()))) for sides in self.rows]

    def expansion(self, unknowns: np.ndarray) -> Expansion:
        """The fields that the unknowns mean."""
        return Expansion(self.spaces, self.parts(unknowns))


def collocate(
    posed: Posed, variant: Variant, count: int, cuts: tuple[float, ...] = ()
) -> Collocation:
    """The problem with `count` collocation points on each element of each axis.

    **Arguments:**

    - `cuts`: on a line, where elements meet beside those at breaks.
    """
    dim = len(posed.problem.axes)
    bases = {
        f: tuple(
            _basis(posed, i, count, variant.extension[f][i], cuts) for i in range(dim)
        )
        for f in posed.fields
    }
    spaces = {f: Space(b) for f, b in bases.items()}
    most = lambda i: max(variant.extension[f][i] for f in posed.fields)
    lines = {
        "equation": [_line(posed, i, count, variant.extra, cuts) for i in range(dim)],
        "condition": [_line(posed, i, count, most(i), cuts) for i in range(dim)],
    }
    nodes = max(INTEGRAL_NODES, count)
    place = lambda form, points: locate(
        form,
        dict(zip(coordinates(posed.problem), points.T, strict=True)),
        spaces,
        nodes,
    )
    rows: list[tuple[Located, ...]] = []
    names: list[str] = []
    kinds: list[str] = []
    for statement in posed.statements:
        points = _points(posed, lines[statement.kind], statement.along, statement.fixed)
        points = points[statement.inside(points)]
        if len(points):
            rows.append((place(statement.form, points),))
            names.append(statement.name)
            kinds.append(statement.kind)
    smooth = [Break(0, float(np.nextafter(c, -np.inf)), c) for c in cuts]
    kept = [(b, posed.continuous[b.axis]) for b in posed.breaks]
    for b, quantities in (*kept, *((b, posed.smooth[0]) for b in smooth)):
        along = tuple(i for i in range(dim) if i != b.axis)
        left = _points(posed, lines["condition"], along, {b.axis: b.left})
        right = _points(posed, lines["condition"], along, {b.axis: b.right})
        for form in quantities:
            rows.append((place(form, right), place(form, left)))
            names.append(f"the interface at {posed.problem.axes[b.axis].name}")
            kinds.append("condition")
    return Collocation(posed, spaces, tuple(rows), tuple(names), tuple(kinds))


def _basis(
    posed: Posed, axis: int, count: int, extension: int, cuts: tuple[float, ...]
) -> Basis:
    a = posed.problem.axes[axis]
    if posed.periodic(axis):
        return Fourier(a.lower, a.upper, 2 * (count // 2) + 1)
    edges = (a.lower, *sorted((*posed.cuts(axis), *cuts)), a.upper)
    integrations = extension if len(posed.problem.axes) == 1 else 0
    return Chebyshev(edges, count + extension, integrations)


def _line(
    posed: Posed, axis: int, count: int, extra: int, cuts: tuple[float, ...]
) -> np.ndarray:
    """The collocation points of an axis."""
    basis = _basis(posed, axis, count, 0, cuts)
    size = basis.count if isinstance(basis, Fourier) else count + extra
    return basis.collocation(size)


def _points(
    posed: Posed,
    lines: list[np.ndarray],
    along: tuple[int, ...],
    fixed: Mapping[int, float],
) -> np.ndarray:
    """The product of the lines of some axes; the others fixed or in the middle."""
    columns = [
        lines[i] if i in along else np.asarray([fixed.get(i, (a.lower + a.upper) / 2)])
        for i, a in enumerate(posed.problem.axes)
    ]
    mesh = np.meshgrid(*columns, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)
