"""Conditions that give one derivative of one field: u = g, dn(u) = g, dt(u) = g."""

from dataclasses import dataclass

from pinnlab.equation.expression import ZERO, Coordinate, Expression, Partial, negate
from pinnlab.equation.structure import affine
from pinnlab.problem.problem import Place
from pinnlab.system.system import System
from pinnlab.system.terms import Term


@dataclass(frozen=True)
class Given:
    """`partial = value` on a place, by the condition `name`."""

    name: str
    place: Place
    partial: Partial
    value: Expression


def given_values(system: System) -> list[Given]:
    """The conditions of this kind that stand on faces, edges or points."""
    point = tuple(Coordinate(n) for n in system.coordinates)
    found = (_given(t, point) for t in system.conditions if not t.place.inside)
    return [g for g in found if g is not None]


def _given(term: Term, point: tuple[Coordinate, ...]) -> Given | None:
    form = affine(term.residual) if isinstance(term.residual, Expression) else None
    if form is None:
        return None
    used = {p: c for p, c in form.coefficients.items() if c != ZERO}
    if len(used) != 1:
        return None
    partial, coefficient = next(iter(used.items()))
    if not isinstance(partial, Partial) or partial.at != point:
        return None
    value = negate(form.rest) / coefficient
    return Given(term.name, term.place, partial, value)
