"""Systems that are no systems: too few equations, equations that repeat others."""

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.findings import Findings, listing
from pinnlab.verify.trial import random_state


POINTS, STATES = 32, 3
ABSENT = -1e6


def degenerate_equations(system: System) -> Findings:
    """Errors for what cannot determine the fields; a warning for more equations."""
    terms = system.equations
    if any(not isinstance(t.residual, Expression) for t in terms):
        return Findings()
    errors = [
        f"equations.{t.name}: it holds for any fields: everything in it cancels"
        for t in terms
        if not _used(t)
    ]
    every = set().union(*(_used(t) for t in terms))
    errors += [
        f"no equation determines '{f}': it cancels wherever it appears"
        for f in system.fields
        if f not in every
    ]
    repeated = _repeated(system)
    errors += [
        f"equations '{a}' and '{b}' are multiples of one another: one of them is "
        "missing something"
        for a, b in repeated
    ]
    if errors:
        return Findings(errors=tuple(errors))
    return _counts(system)


def _counts(system: System) -> Findings:
    equations, fields = len(system.equations), len(system.fields)
    if equations < fields:
        return Findings(
            errors=(
                f"{_many(equations, 'equation')} for {_many(fields, 'field')} "
                f"({listing(system.fields)}): {fields - equations} more "
                f"{'is' if fields - equations == 1 else 'are'} needed",
            )
        )
    unmatched = _unmatched(system)
    if unmatched:
        return Findings(
            errors=(
                f"{listing(unmatched)} cannot be determined: the equations that "
                "contain it are needed for other fields (too many equations contain "
                "the same few fields)",
            )
        )
    if equations > fields:
        return Findings(
            warnings=(
                f"{_many(equations, 'equation')} for {_many(fields, 'field')} "
                f"({listing(system.fields)}): the system is over-determined unless "
                "some of them follow from the others",
            )
        )
    return Findings()


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _used(term: Term) -> set[str]:
    assert isinstance(term.residual, Expression)
    return {p.field for p in partials(term.residual)}


def _unmatched(system: System) -> tuple[str, ...]:
    """Fields left over when every field is given an equation that contains it."""
    weights = matching_weights(system, None)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return tuple(
        system.fields[j]
        for i, j in zip(rows, columns, strict=True)
        if weights[i, j] == ABSENT
    )


def matching_weights(system: System, axis: int | None) -> np.ndarray:
    """The highest order along an axis of each field in each equation, [eq, field].

    A field that an equation does not contain counts as `ABSENT`; without an axis the
    others are zero.
    """
    weights = np.full((len(system.equations), len(system.fields)), ABSENT)
    for i, term in enumerate(system.equations):
        assert isinstance(term.residual, Expression)
        for p in partials(term.residual):
            j = system.fields.index(p.field)
            order = 0 if axis is None else p.orders[axis]
            weights[i, j] = max(weights[i, j], order)
    return weights


def _repeated(system: System) -> list[tuple[str, str]]:
    """Pairs of equations with proportional residuals, whatever the fields."""
    points = sample(system.problem, EVERYWHERE, POINTS, seed=47)
    columns = []
    for k in range(STATES):
        state = random_state(system.problem.axes, system.fields, seed=50 + k)
        residuals = tuple(
            t.residual for t in system.equations if isinstance(t.residual, Expression)
        )
        columns.append(array_values(system.problem, residuals, points, state))
    values = np.nan_to_num(np.concatenate(columns))
    sizes = np.linalg.norm(values, axis=0)
    cosines = values.T @ values / np.maximum(np.outer(sizes, sizes), 1e-300)
    pairs = itertools.combinations(range(len(system.equations)), 2)
    return [
        (system.equations[i].name, system.equations[j].name)
        for i, j in pairs
        if 1 - abs(cosines[i, j]) < 1e-13
    ]
