"""What kind of problem it is for this route: an evolution or a steady one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pinnlab.equation.expression import Coordinate, Expression, Integral, Partial, walk
from pinnlab.equation.structure import partials, uses_fields
from pinnlab.system.system import System
from pinnlab.system.terms import Term


MODES = {1: 20, 2: 8, 3: 6}
"""Modes along the marching coordinate, by the number of coordinates."""


@dataclass(frozen=True)
class Evolution:
    """An initial-value problem along one coordinate.

    - `axis`: its index; `modes`: polynomials in each slab.
    - `initial`: of each field, how many initial data it has.
    - `start`: the initial conditions; `conditions`: all others.
    - `velocity_of`: of each field that is the velocity of another one, the index of
        that one (see `velocity`).
    """

    axis: int
    modes: int
    initial: tuple[int, ...]
    start: tuple[Term, ...]
    conditions: tuple[Term, ...]
    velocity_of: Mapping[int, int] = field(default_factory=dict)


def is_local(system: System) -> bool:
    """Whether all terms are expressions without integrals over fields."""
    terms = (*system.equations, *system.conditions)
    return all(isinstance(t.residual, Expression) for t in terms) and not any(
        isinstance(n, Integral) and uses_fields(n.body)
        for t in terms
        if isinstance(t.residual, Expression)
        for n in walk(t.residual)
    )


def rewritten(term: Term, change: Callable[[Expression], Expression]) -> Term:
    """The term with another expression; one given as a function stays."""
    if not isinstance(term.residual, Expression):
        return term
    return replace(term, residual=change(term.residual))


def evolution_of(system: System) -> Evolution | None:
    """The problem as an evolution; None where data are not all given at a start."""
    names = system.coordinates
    name = "t" if "t" in names else names[0]
    if (name != "t" and len(names) > 1) or len(names) > max(MODES):
        return None
    axis = names.index(name)
    lower = system.problem.axis(name).lower
    start, others = [], []
    for term in system.conditions:
        fixed = dict(term.place.fixed)
        if name not in fixed:
            others.append(term)
        elif fixed[name] != lower or len(fixed) > 1 or term.place.where is not None:
            return None
        else:
            start.append(term)
    initial = _initial(system, axis)
    if initial is None or not _decides(system, start, initial):
        return None
    if not all(_stays(p, name) for t in system.equations for p in _partials(t)):
        return None
    return Evolution(axis, MODES[len(names)], initial, tuple(start), tuple(others))


def _partials(term: Term) -> tuple[Partial, ...]:
    assert isinstance(term.residual, Expression)
    return partials(term.residual)


def _initial(system: System, axis: int) -> tuple[int, ...] | None:
    """The highest derivative of each field along the axis; None above two, or none."""
    highest = [
        max(
            (
                p.orders[axis]
                for t in system.equations
                for p in _partials(t)
                if p.field == name
            ),
            default=0,
        )
        for name in system.fields
    ]
    return tuple(highest) if 0 < max(highest) <= 2 else None


def _decides(system: System, start: list[Term], initial: tuple[int, ...]) -> bool:
    """Whether there are as many initial conditions as initial data."""
    if len(start) != int(np.sum(initial)):
        return False
    for name, known in zip(system.fields, initial, strict=True):
        about = [t for t in start if any(p.field == name for p in _partials(t))]
        if known and len(about) < known:
            return False
    return True


def _stays(partial: Partial, name: str) -> bool:
    """Whether the partial is taken at the point's own time (no delay)."""
    return any(a == Coordinate(name) for a in partial.at)
