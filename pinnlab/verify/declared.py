"""Declared exact solutions and initial data, held against the problem."""

import math

import numpy as np

from pinnlab.equation.calculus import substitute
from pinnlab.equation.expression import (
    ONE,
    Coordinate,
    Expression,
    Number,
    Partial,
    terms,
)
from pinnlab.problem.problem import Problem
from pinnlab.sampling import sample
from pinnlab.system.ansatz import FieldAnsatz, impose
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term, exact_solution
from pinnlab.verify.findings import Findings


POINTS = 512
EXACT_TOLERANCE = 1e-6


def wrong_exact(system: System) -> Findings:
    """Where a declared exact solution misses the equations or conditions."""
    exact = exact_solution(system.problem)
    if set(exact) != set(system.fields):
        missing = sorted(set(system.fields) - set(exact))
        lost = tuple(f"exact: no expression for '{m}'" for m in missing if exact)
        return Findings(errors=lost)
    found: list[str] = []
    inside = sample(system.problem, EVERYWHERE, POINTS, seed=18)
    values = array_values(system.problem, tuple(exact.values()), inside)
    for name, column in zip(exact, values.T, strict=True):
        if not np.isfinite(column).any():
            found.append(f"exact.{name}: the declared solution is not finite")
    if found:
        return Findings(errors=tuple(found))
    for term in (*system.equations, *system.conditions):
        worst = _miss(system, term, exact)
        if worst > EXACT_TOLERANCE:
            kind = "equation" if term.kind == "equation" else "condition"
            where = "" if term.kind == "equation" else f" on {term.place.text}"
            found.append(
                f"exact: the declared solution does not satisfy {kind} "
                f"'{term.name}'{where}: relative residual {worst:.1e}"
            )
    return Findings(errors=tuple(found))


def _miss(system: System, term: Term, exact: dict[str, Expression]) -> float:
    """The largest residual of the exact solution, relative to the summands."""
    if not isinstance(term.residual, Expression):
        return 0.0
    pieces = (term.residual, *terms(term.residual))
    imposed = tuple(_with_exact(p, exact, system.coordinates) for p in pieces)
    points = sample(system.problem, term.place, POINTS, seed=17)
    if term.kind == "equation":
        points = _off_the_edges(system.problem, points)
    # The size of a condition such as u = 0 is the size of u in the domain.
    inside = _off_the_edges(
        system.problem, sample(system.problem, EVERYWHERE, POINTS, seed=18)
    )
    values, around = (
        _finite(array_values(system.problem, imposed, p)) for p in (points, inside)
    )
    if not len(values):
        return 0.0
    size = max(_largest_rms(values[:, 1:]), _largest_rms(around[:, 1:]))
    if term.kind == "condition":
        fields = array_values(system.problem, tuple(exact.values()), inside)
        size = max(size, 1e-2 * _largest_rms(_finite(fields)))
    worst = float(np.sqrt(np.mean(values[:, 0] ** 2)))
    return worst / size if size > 0 else (math.inf if worst > 1e-9 else 0.0)


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values).all(axis=1)]


def _largest_rms(columns: np.ndarray) -> float:
    if not len(columns):
        return 0.0
    return float(np.max(np.sqrt(np.mean(columns**2, axis=0))))


def _off_the_edges(problem: Problem, points: np.ndarray) -> np.ndarray:
    """Points drawn a little inwards: formulas may be singular at t = 0 or corners."""
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    middle = (lower + upper) / 2
    return middle + 0.98 * (points - middle)


def _with_exact(
    node: Expression, exact: dict[str, Expression], names: tuple[str, ...]
) -> Expression:
    """The expression with the exact solution in the fields' place."""
    point = tuple(Coordinate(n) for n in names)
    one = tuple(ONE for _ in names)
    lifts = {
        f: FieldAnsatz(f, e, one, Partial(f, (0,) * len(names), point))
        for f, e in exact.items()
    }
    return impose(node, lifts, names, network=False)


def not_periodic(system: System) -> Findings:
    """Lifts that are not periodic where the problem is."""
    problem, found = system.problem, []
    for axis in problem.axes:
        if axis.name not in problem.periodic:
            continue
        for field in system.fields:
            lift = system.ansatz[field].lift
            ends = tuple(
                substitute(lift, {axis.name: Number(v)})
                for v in (axis.lower, axis.upper)
            )
            points = sample(problem, system.equations[0].place, 64, seed=2)
            values = array_values(problem, (*ends, lift), points)
            gap = float(np.max(np.abs(values[:, 0] - values[:, 1]), initial=0.0))
            if gap > 1e-8 * float(np.max(np.abs(values))):
                found.append(
                    f"the data of '{field}' are not periodic in {axis.name}: they "
                    f"differ by {gap:.2e} between the ends"
                )
    return Findings(warnings=tuple(found))
