"""The route as a whole: evolution or steady, the history, a separable network.

Where corners are singular the network is a sum of it and of their functions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from pinnlab.network import AbstractNetwork, Separable, Sum, blank_corners
from pinnlab.newton.corners import singular_corners
from pinnlab.newton.march import March, Slabs
from pinnlab.newton.memory import localized
from pinnlab.newton.numbers import Numbers
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.steady import solve_steady
from pinnlab.newton.structure import Evolution, evolution_of, is_local
from pinnlab.newton.velocity import with_velocities
from pinnlab.record import Observation, Record
from pinnlab.singular.corners import Corner
from pinnlab.singular.networks import corner_words, corners_network, split_by_corner
from pinnlab.system.system import System
from pinnlab.viscosity import viscosities


MOST_COORDINATES = 2
MOST_UNKNOWNS = 2500
"""Of one slab: its dense matrix and what is kept beside it take about 0.6 GB."""
PER_TARGET = 1 / 30
"""The tolerance of the tails, as a part of the target."""
FINEST, COARSEST = 1e-12, 1e-5
"""Of tails: more modes cost little, but for a problem with singular corners."""
AMPLIFIED = 10.0
"""The error at the end is about this times the tails; measured on KdV: 7."""


@dataclass(frozen=True)
class Found:
    """What Gauss-Newton led to.

    - `network`: None where it did not converge, or time did not suffice.
    - `singular`: the number of its singular functions.
    - `estimate`: of the relative error, from the tails of the coefficients.
    """

    network: AbstractNetwork | None
    estimate: float
    words: str
    record: Record
    singular: int = 0


def suits(system: System) -> bool:
    """Whether the terms are local, but for memories, and the coordinates few.

    Products of functions of one coordinate need a box.
    """
    if system.problem.shape is not None:
        return False
    system, names = localized(system), system.coordinates
    if len(names) > MOST_COORDINATES or not is_local(system):
        return False
    return "t" not in names or evolution_of(system) is not None


def is_due(system: System) -> bool:
    """Whether to try it unasked: no march converges where initial values jump."""
    return suits(system) and not any(viscosities(system))


def solve_separable(
    system: System,
    target: float,
    seconds: float,
    observe: Callable[[Observation], None],
    longer: System | None = None,
) -> Found:
    """Solve by Gauss-Newton over separable features.

    **Arguments:**

    - `target`: the relative error wanted; tails are kept a factor below it.
    - `seconds`: the time that may be used.
    - `longer`: what is solved instead of a system whose ends are `mirrored`.
    """
    tolerance = float(np.clip(target * PER_TARGET, FINEST, COARSEST))
    record = Record()
    asked = longer or system
    system = localized(asked)
    evolution = evolution_of(system)
    limit = MOST_UNKNOWNS // len(system.fields)
    if evolution is not None:
        system, evolution = with_velocities(system, evolution)
    compiled = Compiled(system)
    clock = compiled.clock

    def tell(count: int, measure: float) -> None:
        elapsed = clock.spent
        row = Observation("separable", count, elapsed, measure**2 / 2, measure, None)
        record.rows.append(row)
        record.train_seconds, record.iterations = elapsed, count
        record.compile_seconds = clock.compiling
        observe(row)

    singular = None
    if evolution is None:
        corners = singular_corners(system, compiled)
        if corners:
            tolerance = max(tolerance, target * PER_TARGET)
        steady = solve_steady(
            system, tolerance, limit, seconds, tell, compiled, corners
        )
        slabs, estimate = None, np.inf
        if steady is not None:
            numbers, estimate = steady[0].numbers, steady[1]
            slabs = _one_slab(system, numbers)
            singular = _Singular(corners, numbers.singular) if corners else None
    else:
        march = March(system, evolution, tolerance, limit, seconds, tell, compiled)
        slabs = march.run()
        estimate = AMPLIFIED * tolerance + slabs.missing
    record.train_seconds, record.compile_seconds = clock.spent, clock.compiling
    if slabs is None or not slabs.complete:
        return Found(None, np.inf, "", record)
    network = as_network(
        asked, slabs.only(len(asked.fields)), evolution.axis if evolution else 0
    )
    words = _words(network, evolution, longer is not None)
    found = Found(network, estimate, words, record)
    return found if singular is None else singular.added(found, asked)


@dataclass(frozen=True)
class _Singular:
    """The functions at corners, and their coefficients [fields, functions]."""

    corners: tuple[Corner, ...]
    coefficients: np.ndarray

    def added(self, found: Found, system: System) -> Found:
        """The sum of a network and of these."""
        assert found.network is not None
        names, outputs = system.coordinates, len(system.fields)
        blank = blank_corners(outputs, names.index("t") if "t" in names else None)
        parts = split_by_corner(self.corners, self.coefficients[:outputs])
        return replace(
            found,
            network=Sum((found.network, corners_network(parts, blank))),
            words=f"{found.words}, {corner_words(self.corners)}",
            singular=self.coefficients.shape[1],
        )


def _one_slab(system: System, numbers: Numbers) -> Slabs:
    first = system.problem.axes[0]
    return Slabs((first.lower, first.upper), (numbers.modes,), True, 0.0)


def as_network(system: System, slabs: Slabs, march: int) -> Separable:
    """The slabs as one network; slabs with fewer modes are filled with zeros."""
    axes = system.problem.axes
    shape = np.max([c.shape for c in slabs.coefficients], axis=0)
    every = np.stack(
        [
            np.pad(c, [(0, w - n) for w, n in zip(shape, c.shape, strict=True)])
            for c in slabs.coefficients
        ]
    )
    return Separable(
        jnp.asarray(every),
        jnp.asarray(slabs.edges),
        march,
        tuple(a.lower for a in axes),
        tuple(a.upper for a in axes),
        system.joined,
    )


def _words(network: Separable, evolution: Evolution | None, is_mirrored: bool) -> str:
    slabs, _, *modes = network.coefficients.shape
    size = " x ".join(str(m) for m in modes)
    kind = "Chebyshev polynomials" + (" and harmonics" if network.periodic else "")
    kind += " of a period with mirrors" * is_mirrored
    where = "" if evolution is None else f" in {slabs} time slabs"
    return f"separable features ({size} {kind}){where}, Gauss-Newton"
