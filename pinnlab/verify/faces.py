"""Conditions counted against what the order of the equations needs on each face."""

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.system.system import System
from pinnlab.system.terms import Term


def face_counts(system: System) -> tuple[list[str], list[str]]:
    """Errors and warnings: too few, repeated or surplus conditions.

    Along each coordinate a field whose highest derivative has order m needs m
    conditions in all: m at the start for an evolution in time, m over the two ends
    otherwise (a first-order transport equation: one, at the inflow).
    """
    errors: list[str] = []
    warnings: list[str] = []
    if any(not isinstance(t.residual, Expression) for t in system.equations):
        return errors, warnings
    for field in system.fields:
        for i, name in enumerate(system.coordinates):
            needed = _order(system, field, i)
            if name in system.problem.periodic:
                if any(_on_axis(system, t, name, field) for t in system.conditions):
                    errors.append(
                        f"'{name}' is periodic: it has no faces, but '{field}' has a "
                        "condition there"
                    )
                continue
            if needed == 0:
                continue
            given = _given(system, name, field)
            if given == 0 and not _held_elsewhere(system, field):
                errors.append(
                    f"'{field}' has no condition on any face of '{name}' "
                    f"({needed} needed: its equation has a derivative of order "
                    f"{needed} there)"
                )
            elif given < needed:
                warnings.append(
                    f"'{field}' has {given} condition{'s' * (given != 1)} on the faces "
                    f"of '{name}', its derivative of order {needed} needs {needed}"
                )
            elif given > needed:
                warnings.append(
                    f"'{field}' has {given} conditions on the faces of '{name}', "
                    f"{needed} would do: it may be over-determined"
                )
    errors += _repeated(system)
    return errors, warnings


def _order(system: System, field: str, axis: int) -> int:
    orders = [
        p.orders[axis]
        for t in system.equations
        if isinstance(t.residual, Expression)
        for p in partials(t.residual)
        if p.field == field
    ]
    return max(orders, default=0)


def _on_axis(system: System, term: Term, name: str, field: str) -> bool:
    """Whether the condition stands on a face of the coordinate and uses the field."""
    fixed = dict(term.place.fixed)
    axis = next(a for a in system.problem.axes if a.name == name)
    if fixed.get(name) not in (axis.lower, axis.upper):
        return False
    if not isinstance(term.residual, Expression):
        return True
    return any(p.field == field for p in partials(term.residual))


def _given(system: System, name: str, field: str) -> int:
    here = [t for t in system.conditions if _on_axis(system, t, name, field)]
    # Restricted places share a face: together they count once per side and name.
    seen = {
        (_base(t) if t.place.where is None else "part", dict(t.place.fixed)[name])
        for t in here
    }
    return len(seen)


def _base(term: Term) -> str:
    """The condition's name without its part: a complex condition counts once."""
    return term.name.removesuffix(".real").removesuffix(".imag")


def _held_elsewhere(system: System, field: str) -> bool:
    """Whether a condition that is not on a face (a point, a mean) uses the field."""
    for term in system.conditions:
        if term.place.face(system.problem) is not None:
            continue
        if not isinstance(term.residual, Expression) or any(
            p.field == field for p in partials(term.residual)
        ):
            return True
    return False


def _repeated(system: System) -> list[str]:
    """Conditions given twice on the same place."""
    seen: dict[tuple[object, ...], str] = {}
    found: list[str] = []
    for term in system.conditions:
        if not isinstance(term.residual, Expression):
            continue
        used = frozenset((p.field, p.orders) for p in partials(term.residual))
        key = (term.place.fixed, term.place.where, used)
        if term.place.face(system.problem) is None:
            continue
        if key in seen and not term.name.endswith((".real", ".imag")):
            found.append(
                f"'{seen[key]}' and '{term.name}' ask the same of {term.place.text}"
            )
        seen.setdefault(key, term.name)
    return found
