"""Slab after slab: lengths and modes are chosen from the tails of the coefficients."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pinnlab.network.basis import tail
from pinnlab.newton import harmonic
from pinnlab.newton.collocation import Collocation
from pinnlab.newton.harmonic import Harmonic, Rows
from pinnlab.newton.numbers import Range, Solved
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.resolution import Resolution
from pinnlab.newton.space import MORE, Space, odd
from pinnlab.newton.structure import Evolution
from pinnlab.system.system import System


FIRST_MODES = 16
SHORTEST = 1e-5
FIRST_SLAB = 1 / 16
RECENT = 0.2
TIME_ALLOWED = 1.5
"""The largest tail in time, relative to what is missing in space."""
WAVES = 4.0
"""Waves too fast for a slab have about so many times the share of its last degrees;
measured on Schrodinger's equation from a kink."""
PATIENT_SHARE, HOPELESS = 0.3, 2.0
"""After this share of the time the rest must take less than this times what is left."""


@dataclass(frozen=True)
class Slabs:
    """A solution in slabs: `edges` [slabs + 1], coefficients [fields, modes...] each.

    - `complete`: whether the last slab ends where the problem ends.
    - `missing`: the largest share of what is left out in space and in time, where it
        is above the tolerance.
    """

    edges: tuple[float, ...]
    coefficients: tuple[np.ndarray, ...]
    complete: bool
    missing: float

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
        compiled: Compiled,
    ):
        self.system, self.tolerance, self.tell = system, tolerance, tell
        self.clock = compiled.clock
        self.began = self.clock.spent
        self.deadline = self.began + seconds
        self.lower = np.array([a.lower for a in system.problem.axes])
        self.upper = np.array([a.upper for a in system.problem.axes])
        self.periodic = system.joined
        self.fast = harmonic.suits(system, evolution)
        self.evolution = (
            replace(evolution, modes=harmonic.TIME_MODES) if self.fast else evolution
        )
        self.resolution = Resolution(
            evolution.axis,
            self.periodic,
            tolerance,
            harmonic.MOST_UNKNOWNS // len(system.fields) if self.fast else most,
            harmonic.GROWTH if self.fast else MORE,
        )
        self.compiled = compiled
        self.slab_seconds, self.fast_waves = 0.0, 0.0

    def run(self) -> Slabs:
        """All slabs, as far as time and capacity allow."""
        axis = self.evolution.axis
        start, end = self.lower[axis], self.upper[axis]
        modes, data = self._initial()
        length = (end - start) * FIRST_SLAB
        edges, found = [start], []
        grows, accepted = False, self.clock.spent
        solver = self._solver(modes)
        while edges[-1] < end:
            left = end - edges[-1]
            if self._late(left, length, grows) or self._full(found, solver):
                break
            length = left if length > 0.999 * left else length
            solved = self._slab(solver, edges[-1], length, data)
            if self._too_long(solved, length):
                if length < SHORTEST * (end - start):
                    break
                length /= 2
                continue
            wider = self.resolution.wider(solved.coefficients, solver.space.modes)
            if wider is not None:
                data = [_resized(d, wider, axis) for d in data]
                solver = self._solver(wider)
                continue
            edges.append(end if length == left else edges[-1] + length)
            found.append(solved.coefficients)
            ends = self._traces(solver.space, solved.coefficients, 1.0)
            data = [self._rate(f, length) * d for f, d in enumerate(ends)]
            self.tell(len(found), solved.residual)
            now = self.clock.spent
            self.slab_seconds = _smoothed(self.slab_seconds, now - accepted)
            accepted = now
            before, length = length, self._next_length(solved, length)
            grows = length > before
            if self.fast:
                fewer = self.resolution.fewer(solved.coefficients, solver.space.modes)
                if fewer != solver.space.modes:
                    data = [_resized(d, fewer, axis) for d in data]
                    solver = self._solver(fewer)
        missing = self.resolution.missing + WAVES * self.fast_waves
        return Slabs(tuple(edges), tuple(found), edges[-1] == end, missing)

    def _late(self, left: float, length: float, grows: bool) -> bool:
        """Whether time is up, or will be long before the end.

        `left`: of the marching coordinate; slabs that still grow are given time.
        """
        now = self.clock.spent
        spent, remaining = now - self.began, self.deadline - now
        if remaining < 0:
            return True
        if grows or spent < PATIENT_SHARE * (spent + remaining):
            return False
        return left / length * self.slab_seconds > HOPELESS * remaining

    def _full(self, found: list[np.ndarray], solver: Collocation | Harmonic) -> bool:
        """Whether another slab would be too much to keep."""
        sizes = [c.size for c in found]
        own = len(self.evolution.initial) * int(np.prod(solver.space.modes))
        return (len(found) + 1) * max([*sizes, own]) > harmonic.MOST_NUMBERS

    def _solver(self, modes: tuple[int, ...]) -> Collocation | Harmonic:
        evolution = self.evolution
        space = Space(
            modes, self.periodic, evolution.axis, evolution.initial,
            velocity_of=evolution.velocity_of,
        )  # fmt: skip
        if self.fast:
            unknown = tuple(map(space.unknown, range(len(self.system.fields))))
            nodes = space.nodes(evolution.axis)
            rows = Rows(self.system.equations, nodes, unknown)
            return Harmonic(self.system, space, rows, self.compiled)
        groups = [self.system.equations, *((c,) for c in evolution.conditions)]
        return Collocation(self.system, space, groups, self.compiled)

    def _slab(
        self,
        solver: Collocation | Harmonic,
        start: float,
        length: float,
        data: list[np.ndarray],
    ) -> Solved:
        lower, upper = self.lower.copy(), self.upper.copy()
        axis = self.evolution.axis
        lower[axis], upper[axis] = start, start + length
        lift = np.stack(
            [
                np.moveaxis(solver.space.lift(f, d / self._rate(f, length)), 0, axis)
                for f, d in enumerate(data)
            ]
        )
        return solver.solve(Range(lower, upper), lift, self.tolerance)

    def _too_long(self, solved: Solved, length: float) -> bool:
        """Whether the slab must be shorter."""
        axis = self.evolution.axis
        c = solved.coefficients
        if not solved.converged or not np.isfinite(c).all():
            return True
        last = tail(c, axis + 1, False)
        if last <= self._allowed:
            if last > self.tolerance:
                self.fast_waves = max(self.fast_waves, last)
            return False
        if length > SHORTEST * (self.upper[axis] - self.lower[axis]):
            return True
        self.fast_waves = max(self.fast_waves, last)
        return False

    @property
    def _allowed(self) -> float:
        """The largest tail in time: no smaller than what space lacks anyway."""
        return max(self.tolerance, TIME_ALLOWED * self.resolution.missing)

    def _next_length(self, solved: Solved, length: float) -> float:
        """A longer slab where the tail is far below the tolerance."""
        last = tail(solved.coefficients, self.evolution.axis + 1, False)
        power = 1 / (self.evolution.modes - 1)
        factor = 0.9 * (self._allowed / max(last, 1e-300)) ** power
        return length * min(factor, 2.0) if factor > 1.3 else length

    def _initial(self) -> tuple[tuple[int, ...], list[np.ndarray]]:
        """The first slab's modes, and the initial data with as many as they need."""
        axis = self.evolution.axis
        modes = tuple(
            odd(FIRST_MODES) if i in self.periodic else FIRST_MODES
            for i in range(len(self.lower))
        )
        modes = (*modes[:axis], self.evolution.modes, *modes[axis + 1 :])
        while True:
            space, fitted = self._fitted(modes)
            wider = self.resolution.wider(fitted, modes)
            if wider is None:
                return modes, self._traces(space, fitted, -1.0)
            modes = wider

    def _fitted(self, modes: tuple[int, ...]) -> tuple[Space, np.ndarray]:
        """Initial data in one space: the initial conditions by least squares."""
        axis, fields = self.evolution.axis, len(self.system.fields)
        modes = (*modes[:axis], 1, *modes[axis + 1 :])
        space = Space(modes, self.periodic, axis, (0,) * fields)
        start = self.evolution.start
        if self.fast:
            place, unknown = np.full(1, -1.0), (np.eye(1),) * fields
            rows = Rows(start, place, unknown, harmonic.SAMPLES)
            solver = Harmonic(self.system, space, rows, self.compiled)
        else:
            space = replace(space, march=None)
            groups = [(t,) for t in start]
            solver = Collocation(self.system, space, groups, self.compiled)
        lift = np.zeros((fields, *modes))
        box = Range(self.lower, self.upper)
        return space, solver.solve(box, lift, self.tolerance).coefficients

    def _traces(
        self, space: Space, coefficients: np.ndarray, place: float
    ) -> list[np.ndarray]:
        """What is kept of each field at a slab's start (-1) or end (1), [modes...]."""
        axis = self.evolution.axis
        row = space.functions(axis, np.array([place]), 0)[0]
        return [np.tensordot(row, c, axes=(0, axis)) for c in coefficients]

    def _rate(self, field: int, length: float) -> float:
        """A field over what is kept for it: velocities are by the scaled coordinate."""
        return 2 / length if field in self.evolution.velocity_of else 1.0


def _smoothed(before: float, now: float) -> float:
    """Seconds of a slab: one slow slab says little, the machine may be busy."""
    return before + RECENT * (now - before) if before else now


def _resized(data: np.ndarray, modes: tuple[int, ...], axis: int) -> np.ndarray:
    """The same data with more modes, or with the higher ones left out."""
    shape = [m for i, m in enumerate(modes) if i != axis]
    widths = [(0, max(m - n, 0)) for m, n in zip(shape, data.shape, strict=True)]
    return np.pad(data, widths)[tuple(slice(m) for m in shape)]
