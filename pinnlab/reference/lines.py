"""The method of lines: collocation in time where the stiff part is linear and constant,
an adaptive solver elsewhere."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.reference.collocation import Collocation, collocate
from pinnlab.reference.evolution import Evolution
from pinnlab.reference.radau import Radau, inverses
from pinnlab.reference.semilinear import depends_on, semilinear, space_order
from pinnlab.reference.steps import march
from pinnlab.reference.trajectory import Trajectory


SAVES = {0: 4000, 1: 400, 2: 96}
"""Saved times by the dimension of space: multiples of those of the result grid."""
FINEST = 64
"""The most steps from one saved time to the next; also the tightest tolerance."""
COARSE = 2 / 3
MOST_STEPS = 100_000
"""An explicit method that needs more gives way to an implicit one."""
STIFF = 20_000
"""The largest spectral radius times duration for which the explicit one is tried."""
SHORTEST = 1e-14
"""The step, as a part of the duration, at which a solution is said to blow up."""


@dataclass(frozen=True, eq=False)
class SemiImplicit:
    """Collocation in space, Radau IIA in time with the matrix of the linear part.

    - `linear`: the linear part of each equation.
    - `other`: gives the same with another count.
    """

    evolution: Evolution
    count: int
    linear: tuple[Expression, ...]
    other: Callable[[int], "SemiImplicit"]

    @cached_property
    def collocation(self) -> Collocation:
        return collocate(self.evolution, self.count)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The linear part of the slope."""
        return self.collocation.linear_matrix(self.linear)

    @cached_property
    def _march(self):
        start, saves = jnp.asarray(self.evolution.start), SAVES[self.dimension]

        @eqx.filter_jit
        def whole(solver: Radau, y0: Array, step: Array, each: Array) -> Array:
            slope = self.collocation.slope
            field = lambda n, y: step * slope(start + n * step, y)
            return march(solver, field, y0, saves, each)

        return whole

    @property
    def dimension(self) -> int:
        return len(self.evolution.space)

    def label(self, steps: int) -> str:
        """One line for people."""
        return f"{_nodes(self.collocation)} {self.count}, Radau, {steps} steps"

    def run(self, steps: int, coarse: bool) -> Trajectory:
        """March in a multiple of the saved steps."""
        if coarse:
            return self.other(round(COARSE * self.count)).run(steps, False)
        evolution, saves = self.evolution, SAVES[self.dimension]
        step = (evolution.end - evolution.start) / steps
        matrix = step * self.matrix
        solver = Radau(jnp.asarray(matrix), jnp.asarray(inverses(matrix)))
        size, each = jnp.asarray(step), jnp.asarray(steps / saves)
        states = self._march(solver, self.collocation.start, size, each)
        return self.collocation.trajectory(states)


@dataclass(frozen=True, eq=False)
class Adaptive:
    """Collocation in space, an adaptive solver in time.

    The number of steps asked for is a wish that sets the tolerance: it falls with the
    fourth power.

    - `deadline`: the `time.perf_counter()` at which a run is given up. How many steps
        an adaptive solver takes, and what a step costs, nobody knows before.
    - `other`: gives the same with another count.
    """

    evolution: Evolution
    count: int
    deadline: float
    other: Callable[[int], "Adaptive"]

    @cached_property
    def collocation(self) -> Collocation:
        return collocate(self.evolution, self.count)

    @cached_property
    def stiff(self) -> bool:
        """Whether an implicit method is used: the explicit one needs too many steps."""
        evolution, y0 = self.evolution, self.collocation.start
        start = jnp.asarray(evolution.start)
        slope = lambda y: self.collocation.slope(start, y)
        jacobian = np.asarray(jax.jit(jax.jacfwd(slope))(y0))
        radius = np.abs(np.linalg.eigvals(jacobian)).max()
        if radius * abs(evolution.end - evolution.start) > STIFF:
            return True
        loose = self._integrator(implicit=False)(*self._arguments(self.saves))
        return not bool(jnp.isfinite(loose).all())

    @property
    def saves(self) -> int:
        return SAVES[len(self.evolution.space)]

    def tolerance(self, steps: int) -> float:
        """The relative tolerance that stands for a number of steps."""
        return 1e-6 * (self.saves / steps) ** 4

    def label(self, steps: int) -> str:
        """One line for people."""
        solver = "Kvaerno5" if self.stiff else "Dopri8"
        where = (
            f"{_nodes(self.collocation)} {self.count}, " if self.evolution.space else ""
        )
        return f"{where}{solver}, tolerance {self.tolerance(steps):.0e}"

    @cached_property
    def _march(self):
        return self._integrator(self.stiff)

    def _arguments(self, steps: int) -> tuple[Array, ...]:
        y0 = self.collocation.start
        largest = jnp.max(jnp.abs(y0))
        scale = jnp.where(largest > 0, largest, 1.0)
        tolerance, deadline = self.tolerance(steps), self.deadline
        return y0, jnp.asarray(tolerance), scale, jnp.asarray(deadline)

    def _integrator(self, implicit: bool) -> Callable[..., Array]:
        evolution = self.evolution
        times = jnp.linspace(evolution.start, evolution.end, self.saves + 1)
        term = dfx.ODETerm(lambda t, y, args: self.collocation.slope(jnp.asarray(t), y))
        shortest = SHORTEST * abs(evolution.end - evolution.start)

        @eqx.filter_jit
        def whole(y0: Array, tolerance: Array, scale: Array, deadline: Array) -> Array:
            control = dfx.PIDController(
                rtol=tolerance, atol=tolerance * scale,
                dtmin=shortest, force_dtmin=False,
            )  # fmt: skip
            if implicit:
                # Its interpolation in between steps is of low order.
                solver, control = (
                    dfx.Kvaerno5(),
                    dfx.ClipStepSizeController(control, step_ts=times),
                )
            else:
                solver = dfx.Dopri8()
            solution = dfx.diffeqsolve(
                term, solver, times[0], times[-1], None, y0, deadline,
                saveat=dfx.SaveAt(ts=times), stepsize_controller=control,
                max_steps=MOST_STEPS, adjoint=dfx.ForwardMode(), throw=False,
                event=dfx.Event(_time_is_up),
            )  # fmt: skip
            assert solution.ys is not None
            return solution.ys

        return whole

    def run(self, steps: int, coarse: bool) -> Trajectory:
        """Integrate to the tolerance that stands for a number of steps."""
        if coarse and self.evolution.space:
            return self.other(round(COARSE * self.count)).run(steps, False)
        states = self._march(*self._arguments(steps))
        return self.collocation.trajectory(states)


def linear_part(evolution: Evolution) -> tuple[Expression, ...] | None:
    """The linear part of each equation, its coefficients constant in time.

    None where it is not what makes the equations stiff, or the rates are not in it.
    """
    name = evolution.names[evolution.time]
    admitted = lambda c: not depends_on(c, (name,))
    parts = [semilinear(e, admitted) for e in evolution.equations]
    rest = tuple(p.rest for p in parts)
    late = {(q.field, q.orders) for e in rest for q in partials(e)}
    linear = tuple(
        sum((c * p for p, c in part.linear.items()), start=0.0 * part.rest)
        for part in parts
    )
    stiff = space_order(rest, evolution.time)
    if late & set(evolution.highest):
        return None
    if stiff > 1 and stiff >= space_order(linear, evolution.time):
        return None
    return linear


def _time_is_up(t: Array, y: Array, args: Array, **_: object) -> Array:
    """Asks the clock; of the time it only needs that it is another one in each step."""
    late = lambda t, deadline: np.asarray(time.perf_counter() > deadline)
    return jax.pure_callback(late, jax.ShapeDtypeStruct((), bool), t, args)


def _nodes(collocation: Collocation) -> str:
    periodic = [line.periodic for line in collocation.grid.lines]
    if all(periodic):
        return "Fourier"
    return "Chebyshev and Fourier" if any(periodic) else "Chebyshev"
