"""Where the functions of the linear route come from: pieces, corners, points."""

from dataclasses import dataclass, replace

import numpy as np

from pinnlab.linear.basis import Basis
from pinnlab.linear.box import Box
from pinnlab.linear.features import Features, draw
from pinnlab.linear.partition import Partition, find_partition, whole
from pinnlab.linear.symmetry import Mirror, find_mirrors
from pinnlab.sampling import membership, on, unit_points
from pinnlab.singular.around import Around, find_around
from pinnlab.singular.corners import Corner, find_corners
from pinnlab.singular.weights import singular_weights
from pinnlab.system.forms import Form, LinearForm, Piece
from pinnlab.system.system import System
from pinnlab.system.terms import Term


@dataclass(frozen=True)
class Space:
    """A system with its pieces, its singular points, and its reflections."""

    system: System
    partition: Partition
    corners: tuple[Corner | Around, ...]
    mirrors: tuple[Mirror, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether sine features alone are used."""
        return self.partition.count == 1 and not self.corners

    @property
    def extra(self) -> int:
        """The number of singular functions."""
        return sum(int(c.kept.sum()) for c in self.corners)

    @property
    def least(self) -> int:
        """The fewest rows of a condition: it may have to determine all functions of
        one point."""
        return 2 * max((int(c.kept.sum()) for c in self.corners), default=0)

    @property
    def joints(self) -> tuple[tuple[Term, int], ...]:
        """What is continuous, and across which edge."""
        edges = range(len(self.partition.edges))
        return tuple((t, e) for t in self.partition.terms for e in edges)

    def draw(self, count: int, box: Box, rng: np.random.Generator) -> Features | Basis:
        """`count` sine features on every piece, and the singular functions."""
        partition = self.partition
        lower, upper = partition.lower, partition.upper
        if self.plain:
            mirrored = tuple(m.axis for m in self.mirrors)
            return draw(count, box, lower, upper, rng, mirrored)
        features = tuple(
            draw(count, box, *partition.bounds(i), rng).on(lower, upper)
            for i in range(partition.count)
        )
        return Basis(features, partition, self.corners)

    def points(self, term: Term, count: int, seed: int, clustered: bool) -> np.ndarray:
        """Points of a term's place, denser towards the faces of every piece."""
        problem = self.system.problem
        if term.free is not None and not term.free:
            count = 1
        count = max(count, 1)
        inside = membership(problem, term.place)
        filled = problem.filling if term.place.inside else 1.0
        size = int(max(4 * count, 8) / filled)
        unit = unit_points("sobol", size, len(problem.axes), seed)
        partition = self.partition
        which = np.zeros(len(unit), int)
        if partition.count > 1:
            along = unit[:, partition.axis] * partition.count
            which = along.astype(int)
            unit[:, partition.axis] = along - which
        if clustered:
            unit = (1 - np.cos(np.pi * unit)) / 2
        lower, upper = (
            np.stack(b)[which]
            for b in zip(*map(partition.bounds, range(partition.count)), strict=True)
        )
        points = lower + (upper - lower) * unit
        if clustered and term.kind == "equation":
            points = self._gathered(points, seed)
        points = on(problem, term.place, points, unit)
        return points[inside(points)][:count]

    def _gathered(self, points: np.ndarray, seed: int) -> np.ndarray:
        """Every second point near a hole, as many in each ring twice as large."""
        holes = [c for c in self.corners if isinstance(c, Around) and c.gathers]
        if not holes:
            return points
        shape = self.system.problem.shape
        assert shape is not None
        step = 2 * len(holes)
        points = np.repeat(points[: -(-len(points) // 2)], 2, axis=0)[: len(points)]
        for i, hole in enumerate(holes):
            count = len(points[2 * i + 1 :: step])
            # Parts of one sequence would not be spread as evenly.
            unit = unit_points("sobol", count, 2, seed + 1 + i)
            radius = hole.size * (shape.size / hole.size) ** unit[:, 0]
            angle = 2 * np.pi * unit[:, 1]
            around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
            points[2 * i + 1 :: step] = hole.place + radius[:, None] * around
        return points

    def jump(
        self,
        form_of: Form,
        term: Term,
        edge: int,
        points: np.ndarray,
    ) -> LinearForm:
        """A term above an edge less the same below it, at the points' positions."""
        below, above = (
            form_of(self.system, term, p) for p in self.partition.sides(points, edge)
        )
        negative = tuple(
            Piece(p.field, p.orders, -p.coefficient, p.location) for p in below.pieces
        )
        return LinearForm((*above.pieces, *negative), above.rest - below.rest)

    def weighted(self, term: Term, form: LinearForm, points: np.ndarray) -> LinearForm:
        """A form times the corners' weights for the term's highest derivative."""
        if not self.corners:
            return form
        weights = singular_weights(self.corners, term, points)
        pieces = tuple(
            Piece(p.field, p.orders, p.coefficient * weights[:, None], p.location)
            for p in form.pieces
        )
        return LinearForm(pieces, form.rest * weights)


def find_space(system: System, symmetric: bool = True) -> Space:
    """Pieces, corners and mirrors as the equations and data of a linear system ask for.

    **Arguments:**

    - `symmetric`: whether mirrors are looked for; they split the system's own data.
    """
    if not system.is_linear:
        return Space(system, whole(system), find_around(system))
    corners = (*find_corners(system), *find_around(system))
    space = Space(system, find_partition(system), corners)
    if not (space.plain and symmetric) or system.problem.shape is not None:
        return space
    return replace(space, mirrors=find_mirrors(system))
