"""The space of separable functions on one slab: modes, nodes, what its start knows.

Along the marching coordinate the unknown part of a field vanishes at the slab's start
as far as the initial data say (value, velocity), so that slabs continue each other
exactly; collocation nodes are those of Radau (the stiff, right ones; Hairer & Wanner,
1996). In the other coordinates nodes are Chebyshev's, or equispaced where periodic.
"""

from dataclasses import dataclass

import numpy as np

from pinnlab.network.basis import chebyshev, harmonics


OVERSAMPLING = 1.25
MORE = 1.4


@dataclass(frozen=True)
class Space:
    """Modes of each coordinate and the number of initial data of each field.

    - `march`: index of the marching coordinate; None for a steady problem.
    - `initial`: of each field, 0, 1 (value) or 2 (value and velocity).
    """

    modes: tuple[int, ...]
    periodic: tuple[int, ...]
    march: int | None
    initial: tuple[int, ...]

    def nodes(self, i: int) -> np.ndarray:
        """Collocation nodes of coordinate i in [-1, 1]."""
        count = self.modes[i]
        if i == self.march:
            return radau_nodes(count - max(self.initial))
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

        A field without initial data has lower degree instead, as many numbers as there
        are nodes.
        """
        assert self.march is not None
        count, most = self.modes[self.march], max(self.initial)
        known = self.initial[field]
        if known == 0:
            return np.eye(count)[:, : count - most]
        start = self._start(known)
        lower = -np.linalg.solve(start[:, :known], start[:, known:])
        return np.concatenate([lower, np.eye(count - known)])

    def lift(self, field: int, data: np.ndarray) -> np.ndarray:
        """[modes of the marching coordinate, ...] with the given initial data.

        `data` [initial, ...]: value and scaled velocity, as coefficients.
        """
        assert self.march is not None
        known = self.initial[field]
        found = np.zeros((self.modes[self.march], *data.shape[1:]))
        if known:
            start = self._start(known)[:, :known]
            flat = data.reshape(known, -1)
            found[:known] = np.linalg.solve(start, flat).reshape(data.shape)
        return found

    def _start(self, known: int) -> np.ndarray:
        """[known, modes]: value and slope of the polynomials at -1."""
        assert self.march is not None
        left = np.array([-1.0])
        rows = [self.functions(self.march, left, order)[0] for order in range(known)]
        return np.array(rows)


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
