"""The space of separable functions on one slab: modes, nodes, what its start knows.

Along the marching coordinate the unknown part of a field vanishes at the slab's start
where initial data say what it is there, so that slabs continue each other exactly;
collocation nodes are those of Radau (the stiff, right ones; Hairer & Wanner,
1996). In the other coordinates nodes are Chebyshev's, or equispaced where periodic.

A steady problem whose corners are not smooth has their singular functions as well, and
nodes near them: without these a residual that grows towards a corner is not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pinnlab.network.basis import chebyshev, harmonics
from pinnlab.singular.corners import Corner


OVERSAMPLING = 1.25
MORE = 1.4
RINGS, RAYS = 20, 6
"""Nodes near a corner: rings around it, and nodes on each."""


@dataclass(frozen=True)
class Space:
    """Modes of each coordinate, and which fields have initial data.

    - `march`: index of the marching coordinate; None for a steady problem.
    - `initial`: 1 for each field that has, 0 for others.
    - `corners`: of a steady problem in two coordinates.
    - `velocity_of`: of each field that is a velocity, the field it is that of. It is a
        derivative by the scaled coordinate, whose numbers follow from that field's.
    """

    modes: tuple[int, ...]
    periodic: tuple[int, ...]
    march: int | None
    initial: tuple[int, ...]
    corners: tuple[Corner, ...] = ()
    velocity_of: Mapping[int, int] = field(default_factory=dict)

    @property
    def independent(self) -> tuple[int, ...]:
        """The fields that have numbers of their own."""
        return tuple(f for f in range(len(self.initial)) if f not in self.velocity_of)

    def source(self, field: int) -> int:
        """The field whose numbers a field's follow from: mostly its own."""
        return self.velocity_of.get(field, field)

    def raised(self, field: int, orders: tuple[int, ...]) -> tuple[int, ...]:
        """By which coordinates' scales a derivative of a field is multiplied: a
        velocity by that of the marching one, once more."""
        more = int(field in self.velocity_of)
        return tuple(n + more * (i == self.march) for i, n in enumerate(orders))

    @property
    def singular(self) -> int:
        """The number of singular functions."""
        return sum(int(c.kept.sum()) for c in self.corners)

    def singular_columns(
        self, points: np.ndarray, orders: tuple[int, ...]
    ) -> np.ndarray:
        """A derivative of every singular function at [n, dim] points, [n, singular]."""
        found = [c.computed(points, orders) for c in self.corners]
        return np.concatenate([np.zeros((len(points), 0)), *found], axis=1)

    def graded(self, fixed: Mapping[int, float]) -> np.ndarray:
        """Nodes near the corners on a face, or inside: [n, dim] points.

        `fixed`: the coordinates that a face fixes, by index.
        """
        found = [np.zeros((0, len(self.modes)))]
        for corner in self.corners:
            if not all(corner.place[i] == v for i, v in fixed.items()):
                continue
            radius, angle = (np.arange(n) + 0.5 for n in (RINGS, RAYS))
            across = (1 - np.cos(np.pi * angle / RAYS)) / 2
            if fixed:
                (face,) = fixed
                # Along the first coordinate the angle is 0, along the other one 1.
                across = np.array([float(face == 0)])
            grid = np.meshgrid(radius / RINGS, across, indexing="ij")
            found.append(corner.near(np.stack(grid, axis=-1).reshape(-1, 2)))
        return np.concatenate(found)

    def nodes(self, i: int) -> np.ndarray:
        """Collocation nodes of coordinate i in [-1, 1]."""
        count = self.modes[i]
        if i == self.march:
            return radau_nodes(count - 1)
        more = int(np.ceil(OVERSAMPLING * count))
        if i in self.periodic:
            return -1 + 2 * np.arange(more) / more
        return -np.cos(np.pi * (2 * np.arange(more) + 1) / (2 * more))

    def functions(self, i: int, z: np.ndarray, order: int) -> np.ndarray:
        """[n, modes]: the functions of coordinate i at scaled points z."""
        family = harmonics if i in self.periodic else chebyshev
        return np.asarray(family(z, self.modes[i], order))

    def unknown(self, field: int) -> np.ndarray:
        """[modes, unknowns] of the marching coordinate: zero initial data.

        The unknowns are those of the field's `source`. A field without initial data
        has lower degree instead, as many numbers as there are nodes.
        """
        assert self.march is not None
        count = self.modes[self.march]
        if field in self.velocity_of:
            # The polynomial that is 0 at the start, and the slope at the nodes.
            slopes = self.functions(self.march, self.nodes(self.march), 1)
            slopes = slopes @ self.unknown(self.velocity_of[field])
            return self._through[:, 1:] @ slopes
        if not self.initial[field]:
            return np.eye(count)[:, : count - 1]
        start = self.functions(self.march, np.array([-1.0]), 0)
        # The first function is 1 everywhere.
        return np.concatenate([-start[:, 1:], np.eye(count - 1)])

    def lift(self, field: int, data: np.ndarray) -> np.ndarray:
        """[modes of the marching coordinate, ...] with the given initial data.

        `data` [...]: coefficients in the other coordinates.
        """
        assert self.march is not None
        found = np.zeros((self.modes[self.march], *data.shape))
        if field in self.velocity_of:
            return np.multiply.outer(self._through[:, 0], data)
        if self.initial[field]:
            found[0] = data
        return found

    @property
    def _through(self) -> np.ndarray:
        """[modes, 1 + nodes]: the polynomials through values at the start and nodes."""
        assert self.march is not None
        places = np.concatenate([[-1.0], self.nodes(self.march)])
        return np.linalg.inv(self.functions(self.march, places, 0))


def radau_nodes(count: int) -> np.ndarray:
    """The right Radau nodes in (-1, 1], ascending: the last one is 1."""
    legendre = np.polynomial.legendre.Legendre
    difference = legendre.basis(count) - legendre.basis(count - 1)
    nodes = np.sort(np.real(difference.roots()))
    nodes[-1] = 1.0
    return nodes


def more_modes(count: int, periodic: bool, growth: float = MORE) -> int:
    """The next larger number of modes of a coordinate."""
    wider = int(np.ceil(growth * count))
    return odd(wider) if periodic else wider


def odd(count: int) -> int:
    """The number or the next: harmonics come in pairs beside the constant."""
    return count + 1 - count % 2
