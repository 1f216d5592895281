"""Which conditions are built into the ansatz, and which stay penalties, and why."""

from dataclasses import replace

import numpy as np

from pinnlab.equation.calculus import differentiate, substitute
from pinnlab.equation.expression import (
    ZERO,
    Coordinate,
    Expression,
    Number,
    Partial,
)
from pinnlab.equation.structure import (
    affine,
    is_kinked,
    partials,
    uses_coordinates,
    uses_fields,
)
from pinnlab.problem.problem import Axis, Problem
from pinnlab.sampling import sample
from pinnlab.system.ansatz import (
    FaceCondition,
    FieldAnsatz,
    build,
    impose,
    needs_projection,
)
from pinnlab.system.arrays import array_values
from pinnlab.system.terms import (
    EVERYWHERE,
    Term,
    coordinates,
    equation_terms,
    real_fields,
)


CHECK_POINTS = 256
TOLERANCE = 1e-9
SMOOTH = 1e-6
MOST_AXES = 4


def choose(
    problem: Problem, terms: tuple[Term, ...], wishes: tuple[str, ...]
) -> tuple[tuple[Term, ...], dict[str, FieldAnsatz]]:
    """Split the conditions into exact ones and penalties.

    **Arguments:**

    - `terms`: the conditions' terms.
    - `wishes`: "auto", "exact" or "penalty" for each.

    **Returns:** the terms with `enforced` and `why` filled in, and the ansatz of every
    field.
    """
    found: dict[int, FaceCondition] = {}
    why: dict[int, str] = {}
    for i, (term, wish) in enumerate(zip(terms, wishes, strict=True)):
        if wish == "penalty":
            why[i] = "asked for"
            continue
        candidate = face_condition(problem, term)
        if isinstance(candidate, str):
            why[i] = candidate
        else:
            found[i] = candidate
    _drop_repeated(found, why)
    _drop_second_projection(found, why)
    _drop_crowded(found, why)
    while broken := _broken(problem, terms, found):
        for i in _culprits(problem, terms, found, broken):
            del found[i]
            why[i] = "the data disagree where faces meet"
    ansatz = _ansatz(problem, found)
    marked = tuple(
        replace(t, enforced="exact") if i in found else replace(t, why=why[i])
        for i, t in enumerate(terms)
    )
    return marked, ansatz


def face_condition(problem: Problem, term: Term) -> FaceCondition | str:
    """The term as a condition on one derivative of one field at a face.

    **Returns:** a `FaceCondition`, or the reason why the term is none.
    """
    face = term.place.face(problem)
    if face is None or term.place.where is not None:
        return "not on a whole face"
    if not isinstance(term.residual, Expression):
        return "given as a function"
    form = affine(term.residual)
    if form is None:
        return "not linear in the field"
    used = {p: c for p, c in form.coefficients.items() if c != ZERO}
    if len(used) != 1:
        return "combines several values"
    partial, coefficient = next(iter(used.items()))
    if not isinstance(partial, Partial):
        return "an integral"
    names = coordinates(problem)
    axis = names.index(face[0])
    if any(n and i != axis for i, n in enumerate(partial.orders)):
        return "a derivative along the face"
    if partial.at != tuple(Coordinate(n) for n in names):
        return "a value at another place"
    if uses_coordinates(coefficient):
        return "the coefficient varies"
    if face[0] in problem.periodic:
        return "on a periodic coordinate"
    value = -form.rest / coefficient
    if uses_fields(value) or is_kinked(value):
        return "the data have a kink or a jump"
    if _breaks_periodicity(problem, value):
        return "the data are not smooth across the periodic ends"
    side = problem.axes[axis].upper if face[1] else problem.axes[axis].lower
    value = substitute(value, {face[0]: Number(side)})
    return FaceCondition(partial.field, axis, int(face[1]), partial.orders[axis], value)


def _breaks_periodicity(problem: Problem, value: Expression) -> bool:
    """Whether a value or derivative that the equations need jumps between the ends.

    Data with such a jump in a lift would keep it for all time, and the solution would
    satisfy the equations but not the periodicity.
    """
    names = coordinates(problem)
    for name in problem.periodic:
        axis, i = problem.axis(name), names.index(name)
        expression = value
        for _ in range(max(1, _highest_order(problem, i))):
            ends = tuple(
                substitute(expression, {name: Number(v)})
                for v in (axis.lower, axis.upper)
            )
            points = sample(problem, EVERYWHERE, CHECK_POINTS, seed=3)
            found = array_values(problem, (*ends, expression), points)
            gap = np.max(np.abs(found[:, 0] - found[:, 1]))
            if not gap <= SMOOTH * np.max(np.abs(found)):
                return True
            expression = differentiate(expression, name)
    return False


def _highest_order(problem: Problem, axis: int) -> int:
    orders = [
        p.orders[axis]
        for t in equation_terms(problem)
        if isinstance(t.residual, Expression)
        for p in partials(t.residual)
    ]
    return max(orders, default=0)


def _drop_repeated(found: dict[int, FaceCondition], why: dict[int, str]) -> None:
    seen: set[tuple[str, int, int, int]] = set()
    for i, c in list(found.items()):
        key = (c.field, c.axis, c.side, c.order)
        if key in seen:
            del found[i]
            why[i] = "the face has this condition already"
        seen.add(key)


def _drop_second_projection(
    found: dict[int, FaceCondition], why: dict[int, str]
) -> None:
    """Keep at most one axis with a gap in the orders, for each field."""
    for field in {c.field for c in found.values()}:
        projected: int | None = None
        for axis in sorted({c.axis for c in found.values() if c.field == field}):
            here = {
                i: c for i, c in found.items() if (c.field, c.axis) == (field, axis)
            }
            if not needs_projection(tuple(here.values())):
                continue
            if projected is None:
                projected = axis
                continue
            for i, c in here.items():
                if c.order > 0:
                    del found[i]
                    why[i] = "another axis has Neumann faces"


def _drop_crowded(found: dict[int, FaceCondition], why: dict[int, str]) -> None:
    """Give up a field's conditions on too many axes: a lift has 2^axes summands."""
    for field in {c.field for c in found.values()}:
        here = [i for i, c in found.items() if c.field == field]
        if len({found[i].axis for i in here}) > MOST_AXES:
            for i in here:
                del found[i]
                why[i] = f"faces of more than {MOST_AXES} coordinates"


def _ansatz(
    problem: Problem, found: dict[int, FaceCondition]
) -> dict[str, FieldAnsatz]:
    axes: tuple[Axis, ...] = problem.axes
    return {
        field: build(field, axes, tuple(c for c in found.values() if c.field == field))
        for field in real_fields(problem)
    }


def _culprits(
    problem: Problem,
    terms: tuple[Term, ...],
    found: dict[int, FaceCondition],
    broken: tuple[int, ...],
) -> tuple[int, ...]:
    """One condition whose loss mends the rest if there is one, else all broken ones.

    Initial conditions are given up last.
    """
    names = coordinates(problem)
    fields = {found[i].field for i in broken}
    order = sorted(
        (i for i, c in found.items() if c.field in fields),
        key=lambda i: (names[found[i].axis] == "t", i not in broken),
    )
    for i in order:
        if not _broken(problem, terms, {k: c for k, c in found.items() if k != i}):
            return (i,)
    return broken


def _broken(
    problem: Problem, terms: tuple[Term, ...], found: dict[int, FaceCondition]
) -> tuple[int, ...]:
    """The conditions that the lift does not meet: their data disagree at a corner."""
    ansatz = _ansatz(problem, found)
    broken: list[int] = []
    for i, condition in found.items():
        residual = terms[i].residual
        assert isinstance(residual, Expression)
        left = impose(residual, ansatz, coordinates(problem), network=False)
        points = sample(problem, terms[i].place, CHECK_POINTS, seed=i)
        values = array_values(problem, (left, condition.value), points)
        size = 1e-300 + np.max(np.abs(values[:, 1]), initial=0.0)
        # Rounding of the data shows at the size that the lift has in the domain.
        lifted = ansatz[condition.field].lift
        inside = sample(problem, EVERYWHERE, CHECK_POINTS, seed=i)
        scale = np.max(np.abs(array_values(problem, (lifted,), inside)), initial=0.0)
        worst = np.max(np.abs(values[:, 0]), initial=0.0)
        if not worst <= TOLERANCE * max(size, scale):
            broken.append(i)
    return tuple(broken)
