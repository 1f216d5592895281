"""Data that jump: where faces meet (corners, t = 0) and within a face."""

import itertools

import numpy as np

from pinnlab.problem.problem import Place
from pinnlab.system.arrays import array_values, holds
from pinnlab.system.given import Given, given_values
from pinnlab.system.system import System
from pinnlab.verify.findings import Findings
from pinnlab.verify.fluxes import broken_fluxes, face_points
from pinnlab.verify.jumps import find_jump


RELATIVE = 1e-6


def jumping_data(system: System) -> Findings:
    """Warnings: values that disagree where faces meet, and data that jump."""
    values = [
        g
        for g in given_values(system)
        if not any(g.partial.orders) and g.place.face(system.problem)
    ]
    gaps: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for a, b in itertools.combinations(values, 2):
        if a.partial == b.partial and (gap := _gap(system, a, b, values)):
            gaps.setdefault((a.partial.field, a.name, b.name), []).append(gap)
    warnings = [_corner(key, found) for key, found in gaps.items()]
    warnings += broken_fluxes(system, values)
    warnings += [m for g in values for m in _within(system, g)]
    return Findings(warnings=tuple(warnings))


def _corner(key: tuple[str, str, str], found: list[tuple[str, float]]) -> str:
    field, first, second = key
    places = " and at ".join(f"{place}" for place, _ in found[:3])
    size = max(s for _, s in found)
    return (
        f"'{field}' jumps by {size:.3g} at {places}: conditions '{first}' and "
        f"'{second}' disagree there; the solution is not smooth, and errors are "
        "largest near that place (make the data agree if they should)"
    )


def _gap(
    system: System, a: Given, b: Given, every: list[Given]
) -> tuple[str, float] | None:
    """The place and the size of a disagreement on the edge that two faces share."""
    fixed = dict(a.place.fixed) | dict(b.place.fixed)
    if len(fixed) != 2 or set(fixed) & set(system.problem.periodic):
        return None
    points = face_points(system, fixed)
    points = points[
        holds(system.problem, a.place, points) & holds(system.problem, b.place, points)
    ]
    if not len(points):
        return None
    values = array_values(system.problem, (a.value, b.value), points)
    gap = np.nan_to_num(np.abs(values[:, 0] - values[:, 1]))
    size = max(_size(system, g) for g in every if g.partial.field == a.partial.field)
    where = int(np.argmax(gap))
    if not gap[where] > RELATIVE * size:
        return None
    return ", ".join(f"{n} = {v:g}" for n, v in fixed.items()), float(gap[where])


def _size(system: System, given: Given) -> float:
    points = face_points(system, dict(given.place.fixed))
    points = points[holds(system.problem, given.place, points)]
    values = np.abs(array_values(system.problem, (given.value,), points))
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def _within(system: System, given: Given) -> list[str]:
    fixed = dict(given.place.fixed)
    for name in system.coordinates:
        if name in fixed:
            continue
        jump = find_jump(system.problem, given.value, name, fixed)
        if jump is not None and _covers(system, given.place, jump.place):
            return [
                f"conditions.{given.name}: the value of '{given.partial.field}' jumps "
                f"by {jump.size:.3g} at {jump.place}: the solution is not smooth, and "
                "errors are largest near that place"
            ]
    return []


def _covers(system: System, place: Place, at: str) -> bool:
    """Whether a restricted place holds points on both sides of a jump."""
    if place.where is None:
        return True
    name, _, value = at.partition(" = ")
    axis = system.problem.axis(name)
    shift = 1e-3 * (axis.upper - axis.lower)
    points = np.repeat(face_points(system, dict(place.fixed)), 2, axis=0)
    points[:, system.coordinates.index(name)] = float(value) + shift * np.tile(
        [-1.0, 1.0], len(points) // 2
    )
    inside = holds(system.problem, place, points)
    return bool((inside[::2] & inside[1::2]).any())
