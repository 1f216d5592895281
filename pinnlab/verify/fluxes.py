"""Values of one face against the flux condition of the face next to it."""

import itertools

import numpy as np

from pinnlab.equation.expression import ONE, Coordinate, Expression, Partial, terms
from pinnlab.sampling import unit_points
from pinnlab.system.ansatz import FieldAnsatz, impose
from pinnlab.system.arrays import array_values, holds
from pinnlab.system.given import Given
from pinnlab.system.system import System
from pinnlab.system.terms import Term
from pinnlab.verify.linearized import atoms


POINTS = 64
RELATIVE = 1e-6


def broken_fluxes(system: System, values: list[Given]) -> list[str]:
    """Messages for values that break a condition of slopes where faces meet.

    An initial temperature has a slope at the wall: a flux condition there asks for
    another one, and the solution cannot satisfy both at t = 0.

    **Arguments:**

    - `values`: the conditions that give a field's value on a face.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for given, term in itertools.product(values, system.conditions):
        fixed = dict(given.place.fixed) | dict(term.place.fixed)
        if _applies(system, given, term) and _breaks(system, given, term, fixed):
            at = ", ".join(f"{n} = {v:g}" for n, v in fixed.items())
            places.setdefault((given.name, term.name), []).append(at)
    return [
        f"the values of condition '{first}' do not satisfy '{second}' where they meet, "
        f"at {' and at '.join(found[:3])}: the slope is not continuous there, and "
        "errors are largest near that place"
        for (first, second), found in places.items()
    ]


def _applies(system: System, given: Given, term: Term) -> bool:
    """Whether a condition has slopes of the field, all of them along the other face."""
    face, other = (p.place.face(system.problem) for p in (given, term))
    residual = term.residual
    if face is None or other is None or face[0] == other[0]:
        return False
    if {face[0], other[0]} & set(system.problem.periodic):
        return False
    if not isinstance(residual, Expression):
        return False
    point = tuple(Coordinate(n) for n in system.coordinates)
    across = system.coordinates.index(face[0])
    used = [p for p in atoms(residual) if isinstance(p, Partial)]
    return (
        len(used) == len(atoms(residual))
        and any(any(p.orders) for p in used)
        and all(p.field == given.partial.field and p.at == point for p in used)
        and not any(p.orders[across] for p in used)
    )


def _breaks(system: System, given: Given, term: Term, fixed: dict[str, float]) -> bool:
    """Whether the residual of the given values is not zero on the edge."""
    assert isinstance(term.residual, Expression)
    edge = face_points(system, fixed)
    edge = edge[
        holds(system.problem, given.place, edge)
        & holds(system.problem, term.place, edge)
    ]
    names, field = system.coordinates, given.partial.field
    lift = FieldAnsatz(field, given.value, tuple(ONE for _ in names), given.partial)
    pieces = tuple(
        impose(part, {field: lift}, names, network=False)
        for part in (term.residual, *terms(term.residual))
    )
    near = face_points(system, dict(given.place.fixed))
    miss = np.abs(array_values(system.problem, pieces[:1], edge))
    size = np.abs(array_values(system.problem, pieces[1:], near))
    worst, most = (np.max(v, initial=0.0, where=np.isfinite(v)) for v in (miss, size))
    return bool(worst > RELATIVE * most)


def face_points(system: System, fixed: dict[str, float]) -> np.ndarray:
    """Points of a face or edge, its own ends included."""
    axes = system.problem.axes
    lower = np.array([a.lower for a in axes])
    upper = np.array([a.upper for a in axes])
    unit = unit_points("sobol", POINTS, len(axes), seed=13)
    unit = np.clip(1.1 * unit - 0.05, 0.0, 1.0)
    points = lower + (upper - lower) * unit
    for i, a in enumerate(axes):
        points[unit[:, i] == 1.0, i] = a.upper
        if a.name in fixed:
            points[:, i] = fixed[a.name]
    return points
