"""Slab after slab: lengths and modes are chosen from the tails of the coefficients."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pinnlab.network.basis import tail
from pinnlab.newton.collocation import Collocation, Range, Solved
from pinnlab.newton.pointwise import Pointwise
from pinnlab.newton.space import Space, more_modes, odd
from pinnlab.newton.structure import Evolution
from pinnlab.system.system import System
from pinnlab.system.terms import Term


FIRST_MODES = 16
SHORTEST = 1e-5
FIRST_SLAB = 1 / 16
PATIENT_SHARE, HOPELESS = 0.3, 2.0
"""After this share of the time the rest must take less than this times what is left."""
PATIENCE, ROUGH = 3, 4.0
"""More modes so many times must lower a tail by this factor, or data are rough."""


@dataclass(frozen=True)
class Slabs:
    """A solution in slabs: `edges` [slabs + 1], coefficients [fields, modes...] each.

    - `complete`: whether the last slab ends where the problem ends.
    - `rough`: whether the tails stayed above the tolerance somewhere.
    """

    edges: tuple[float, ...]
    coefficients: tuple[np.ndarray, ...]
    complete: bool
    rough: bool

    def only(self, fields: int) -> "Slabs":
        """The first fields of the solution."""
        return replace(self, coefficients=tuple(c[:fields] for c in self.coefficients))


Tell = Callable[[int, float], None]
"""Told the slabs so far and the residual of the last."""


class March:
    """An initial-value problem solved from its start to its end."""

    def __init__(
        self,
        system: System,
        evolution: Evolution,
        tolerance: float,
        most: int,
        seconds: float,
        tell: Tell,
    ):
        self.system, self.evolution = system, evolution
        self.tolerance, self.most, self.tell = tolerance, most, tell
        self.deadline = time.perf_counter() + seconds
        self.began = time.perf_counter()
        self.lower = np.array([a.lower for a in system.problem.axes])
        self.upper = np.array([a.upper for a in system.problem.axes])
        names = system.coordinates
        self.periodic = tuple(names.index(p) for p in system.problem.periodic)
        self.compiled: dict[tuple[Term, ...], Pointwise] = {}
        self.rough: set[int] = set()
        self.tails: dict[int, list[float]] = {}
        self.slab_seconds = 0.0

    def run(self) -> Slabs:
        """All slabs, as far as time and capacity allow."""
        axis = self.evolution.axis
        start, end = self.lower[axis], self.upper[axis]
        data = self._initial()
        length = (end - start) * FIRST_SLAB
        edges, found = [start], []
        grows, accepted = False, time.perf_counter()
        collocation = self._collocation(self._modes(data))
        while edges[-1] < end:
            left = end - edges[-1]
            if self._late(left, length, grows):
                break
            length = left if length > 0.999 * left else length
            solved = self._slab(collocation, edges[-1], length, data)
            change = self._judged(solved, collocation, length)
            if change == "shorter":
                if length < SHORTEST * (end - start):
                    break
                length /= 2
                continue
            if isinstance(change, tuple):
                data = [_padded(d, change, axis) for d in data]
                collocation = self._collocation(change)
                continue
            self.tails.clear()
            edges.append(end if length == left else edges[-1] + length)
            found.append(solved.coefficients)
            data = self._traces(collocation.space, solved.coefficients, 1.0, length)
            self.tell(len(found), solved.residual)
            now = time.perf_counter()
            self.slab_seconds, accepted = now - accepted, now
            before, length = length, self._next_length(solved, length)
            grows = length > before
        return Slabs(tuple(edges), tuple(found), edges[-1] == end, bool(self.rough))

    def _late(self, left: float, length: float, grows: bool) -> bool:
        """Whether time is up, or will be long before the end.

        `left`: of the marching coordinate; slabs that still grow are given time.
        """
        now = time.perf_counter()
        spent, remaining = now - self.began, self.deadline - now
        if remaining < 0:
            return True
        if grows or spent < PATIENT_SHARE * (spent + remaining):
            return False
        return left / length * self.slab_seconds > HOPELESS * remaining

    def _modes(self, data: list[np.ndarray]) -> tuple[int, ...]:
        shape = list(data[0].shape[1:])
        shape.insert(self.evolution.axis, self.evolution.modes)
        return tuple(shape)

    def _collocation(self, modes: tuple[int, ...]) -> Collocation:
        space = Space(modes, self.periodic, self.evolution.axis, self.evolution.initial)
        groups = [self.system.equations, *((c,) for c in self.evolution.conditions)]
        return Collocation(self.system, space, groups, self.compiled)

    def _slab(
        self, collocation: Collocation, start: float, length: float, data: list
    ) -> Solved:
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[self.evolution.axis], upper[self.evolution.axis] = start, start + length
        scaled = [_scaled(d, length) for d in data]
        axis = self.evolution.axis
        lift = np.stack(
            [
                np.moveaxis(collocation.space.lift(f, d), 0, axis)
                for f, d in enumerate(scaled)
            ]
        )
        return collocation.solve(
            Range(lower, upper), lift, np.zeros(collocation.unknowns), self.tolerance
        )

    def _judged(
        self, solved: Solved, collocation: Collocation, length: float
    ) -> str | tuple[int, ...] | None:
        """What to change: nothing, "shorter" slabs, or more modes."""
        axis = self.evolution.axis
        c = solved.coefficients
        if not solved.converged or not np.isfinite(c).all():
            return "shorter"
        whole = self.upper[axis] - self.lower[axis]
        if tail(c, axis + 1, False) > self.tolerance:
            if length > SHORTEST * whole:
                return "shorter"
            self.rough.add(axis)
        modes = collocation.space.modes
        for i in range(len(modes)):
            if i == axis or i in self.rough:
                continue
            last = tail(c, i + 1, i in self.periodic)
            if last <= self.tolerance:
                continue
            more = list(modes)
            more[i] = more_modes(modes[i], i in self.periodic)
            if self._slow(i, last) or int(np.prod(more)) > self.most:
                self.rough.add(i)
                continue
            return tuple(more)
        return None

    def _slow(self, i: int, last: float) -> bool:
        """Whether more modes in a row have hardly lowered the tail of coordinate i."""
        seen = self.tails.setdefault(i, [])
        seen.append(last)
        return len(seen) > PATIENCE and last > seen[-1 - PATIENCE] / ROUGH

    def _next_length(self, solved: Solved, length: float) -> float:
        """A longer slab where the tail is far below the tolerance."""
        last = tail(solved.coefficients, self.evolution.axis + 1, False)
        power = 1 / (self.evolution.modes - 1)
        factor = 0.9 * (self.tolerance / max(last, 1e-300)) ** power
        return length * min(factor, 2.0) if factor > 1.3 else length

    def _initial(self) -> list[np.ndarray]:
        """The initial data as coefficients, with as many modes as they need."""
        shape = [
            odd(FIRST_MODES) if i in self.periodic else FIRST_MODES
            for i in range(len(self.lower))
        ]
        others = [i for i in range(len(shape)) if i != self.evolution.axis]
        while True:
            data = self._fitted(tuple(shape))
            again = False
            for place, i in enumerate(others):
                if i in self.rough:
                    continue
                last = max(tail(d, place + 1, i in self.periodic) for d in data)
                if last < self.tolerance:
                    continue
                wider = more_modes(shape[i], i in self.periodic)
                room = int(np.prod([shape[j] for j in others])) // shape[i] * wider
                if room * self.evolution.modes > self.most:
                    self.rough.add(i)
                    continue
                shape[i] = wider
                again = True
            if not again:
                return data

    def _fitted(self, shape: tuple[int, ...]) -> list[np.ndarray]:
        """Initial data in one space: the initial conditions by least squares."""
        axis = self.evolution.axis
        modes = list(shape)
        modes[axis] = max(self.evolution.initial)
        nothing = (0,) * len(self.evolution.initial)
        space = Space(tuple(modes), self.periodic, None, nothing)
        terms = [(t,) for t in self.evolution.start]
        collocation = Collocation(self.system, space, terms, self.compiled)
        box = Range(self.lower, self.upper)
        lift = np.zeros((len(self.system.fields), *modes))
        solved = collocation.solve(
            box, lift, np.zeros(collocation.unknowns), self.tolerance
        )
        length = float(self.upper[axis] - self.lower[axis])
        return self._traces(space, solved.coefficients, -1.0, length)

    def _traces(
        self, space: Space, coefficients: np.ndarray, place: float, length: float
    ) -> list[np.ndarray]:
        """Value and velocity of each field at a slab's start (-1) or end (1).

        **Returns:** [initial, modes...] by field.
        """
        axis = self.evolution.axis
        rows = [
            space.functions(axis, np.array([place]), order)[0] * (2 / length) ** order
            for order in range(max(self.evolution.initial))
        ]
        return [
            np.stack(
                [np.tensordot(r, c, axes=(0, axis)) for r in rows[: max(known, 1)]]
            )
            for c, known in zip(coefficients, self.evolution.initial, strict=True)
        ]


def _scaled(data: np.ndarray, length: float) -> np.ndarray:
    """Initial data by the scaled coordinate of a slab of this length."""
    powers = (length / 2) ** np.arange(len(data))
    return data * powers.reshape(-1, *(1,) * (data.ndim - 1))


def _padded(data: np.ndarray, modes: tuple[int, ...], axis: int) -> np.ndarray:
    """The same data with more modes."""
    shape = [m for i, m in enumerate(modes) if i != axis]
    widths = [(0, m - n) for m, n in zip(shape, data.shape[1:], strict=True)]
    return np.pad(data, [(0, 0), *widths])
