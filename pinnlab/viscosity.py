"""Vanishing viscosity: conservation laws with jumps in their data, made smooth.

A shock is the limit of smooth solutions of the equations with a little diffusion of
what is conserved (von Neumann and Richtmyer, 1950): dt(A) + dx(B) = eps dxx(A), from
data whose jumps are spread likewise. A network can represent these.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pinnlab.equation.calculus import differentiate, expand
from pinnlab.equation.expression import (
    ONE,
    ZERO,
    Apply,
    Derivative,
    Expression,
    Number,
    call,
    rebuild,
)
from pinnlab.equation.structure import has_steps, partials
from pinnlab.problem.problem import Place
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.given import given_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


SPREAD = 0.01
"""The width of a jump in the initial values, as a part of the domain."""
SHOCK = 0.003
"""The width of a shock; wide ones heat the gas that they passed when they began."""
SHARPNESS = 8.0
"""A jump of the characteristic speeds by S is spread over about this times eps / S."""
SAMPLES = 400


def viscosities(system: System, part: float = 1.0) -> tuple[float, ...]:
    """A part of what spreads shocks enough along each coordinate; zero if none is due.

    It is due to nonlinear first-order conservation laws whose initial values jump.
    """
    none = (0.0,) * len(system.coordinates)
    start = _start(system)
    if (
        part == 0
        or system.is_linear
        or not any(has_steps(value) for value in start.values())
        or any(conserved(system, t) is None for t in system.equations)
        or set(start) != set(system.fields)
    ):
        return none
    found = []
    for axis in system.problem.axes:
        length = axis.upper - axis.lower
        speeds = 0.0 if axis.name == "t" else _speeds(system, start, axis.name)
        found.append(part * SHOCK * length * speeds / SHARPNESS)
    return tuple(found) if np.isfinite(found).all() else none


def viscous(system: System, eps: tuple[float, ...]) -> System:
    """The system with viscosity, and with data whose jumps are spread."""
    if not any(eps):
        return system
    return replace(
        system,
        equations=tuple(_diffused(system, t, eps) for t in system.equations),
        conditions=tuple(_smoothed(system, t) for t in system.conditions),
    )


def conserved(system: System, term: Term) -> tuple[Expression, float] | None:
    """A and the sign of dt(A) in an equation of first order; None if it is another."""
    residual = term.residual
    written = next(
        (e for e in system.problem.equations if e.name == term.name and not e.function),
        None,
    )
    if written is None or not isinstance(residual, Expression):
        return None
    if any(sum(p.orders) > 1 for p in partials(residual)):
        return None
    found = list(_rates(written.residual, 1.0))
    return found[0] if len(found) == 1 else None


def _rates(node: Expression, sign: float) -> Iterator[tuple[Expression, float]]:
    """The summands dt(A), with their signs."""
    match node:
        case Apply("+" | "-" as kind, (left, right)):
            yield from _rates(left, sign)
            yield from _rates(right, sign if kind == "+" else -sign)
        case Apply("neg", (operand,)):
            yield from _rates(operand, -sign)
        case Derivative(operand, ("t",)):
            yield operand, sign
        case _:
            return


def _start(system: System) -> dict[str, Expression]:
    """The initial value of each field that has one."""
    found = {}
    for given in given_values(system):
        if _at_start(system, given.place) and not any(given.partial.orders):
            found[given.partial.field] = given.value
    return found


def _speeds(system: System, start: dict[str, Expression], along: str) -> float:
    """The range of all characteristic speeds of the initial values."""
    problem, names = system.problem, system.coordinates
    points = sample(problem, _place(system), SAMPLES, seed=0)
    values = array_values(problem, tuple(start[f] for f in system.fields), points)
    residuals = [
        t.residual for t in system.equations if isinstance(t.residual, Expression)
    ]

    def matrix(along: str) -> np.ndarray:
        """Derivatives of the residuals by the fields' slopes, [m, fields, fields]."""
        slope = tuple(int(n == along) for n in names)

        def at(active: str) -> np.ndarray:
            def fields(field: str, orders: tuple[int, ...], places: np.ndarray):
                if not any(orders):
                    return values[:, system.fields.index(field)]
                return np.full(len(points), float((field, orders) == (active, slope)))

            return array_values(problem, residuals, points, fields)

        flat = at("")
        return np.stack([at(f) - flat for f in system.fields], axis=2)

    with np.errstate(all="ignore"):
        try:
            ratio = np.linalg.solve(matrix("t"), matrix(along))
            speeds = np.linalg.eigvals(ratio).real
        except np.linalg.LinAlgError:
            return np.nan
    return float(np.max(speeds) - np.min(speeds))


def _place(system: System) -> Place:
    """The start."""
    return Place("t = start", (("t", system.problem.axis("t").lower),), None)


def _at_start(system: System, place: Place) -> bool:
    return "t" in system.coordinates and place.fixed == _place(system).fixed


def _diffused(system: System, term: Term, eps: tuple[float, ...]) -> Term:
    found = conserved(system, term)
    assert found is not None and isinstance(term.residual, Expression)
    amount, sign = found
    added = ZERO
    for name, size in zip(system.coordinates, eps, strict=True):
        second = expand(Derivative(amount, (name, name)), system.coordinates)
        added = added + Number(sign * size) * second
    return replace(term, residual=term.residual - added)


def _smoothed(system: System, term: Term) -> Term:
    """A condition with tanh in place of steps over coordinates in space."""

    def change(node: Expression) -> Expression:
        if not (isinstance(node, Apply) and has_steps(node)):
            return rebuild(node, change)
        match node:
            case Apply("sign", (a,)):
                return _step(system, a)
            case Apply("heaviside", (a,)):
                return (_step(system, a) + ONE) / Number(2.0)
            case Apply("where", (Apply("<" | "<=" | ">" | ">=" as kind, (a, b)), c, d)):
                gap = a - b if kind in (">", ">=") else b - a
                share = (_step(system, gap) + ONE) / Number(2.0)
                return change(d) + share * (change(c) - change(d))
        return rebuild(node, change)

    if not _at_start(system, term.place) or not isinstance(term.residual, Expression):
        return term
    return replace(term, residual=change(term.residual))


def _step(system: System, argument: Expression) -> Expression:
    """The sign of an expression of the coordinates, spread where it is 0."""
    size = ZERO
    for axis in system.problem.axes:
        if axis.name != "t":
            slope = differentiate(argument, axis.name)
            size = size + (slope * Number(SPREAD * (axis.upper - axis.lower))) ** 2
    return call("tanh", argument / call("sqrt", size))
