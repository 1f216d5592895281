"""Conditions counted against what the order of the equations needs on each face."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from pinnlab.equation.expression import ZERO, Coordinate, Expression, Partial
from pinnlab.equation.structure import partials
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.degenerate import ABSENT, matching_weights
from pinnlab.verify.edges import edge_counts
from pinnlab.verify.findings import Findings, listing
from pinnlab.verify.linearized import atoms, linearize, slopes
from pinnlab.verify.orders import order_along
from pinnlab.verify.trial import random_state


NEAR, DROPPED, CONSISTENT = 1e-6, 1e-4, 1e-6


def face_counts(system: System) -> Findings:
    """Errors and warnings: too few or surplus conditions on the faces.

    Along each coordinate a system needs as many conditions as its determinant has
    order there (the largest sum of orders when every field is given its own equation:
    Agmon, Douglis and Nirenberg, 1964): all at the start for an evolution in time,
    over the two ends otherwise, at the inflow for a transport equation.
    """
    if any(not isinstance(t.residual, Expression) for t in system.equations):
        return Findings()
    if system.problem.shape is not None:
        return edge_counts(system)
    found = Findings()
    for axis, name in enumerate(system.coordinates):
        if name in system.problem.periodic:
            found += _on_periodic(system, name)
        else:
            found += _along(system, axis, name)
    return found + _points_in_time(system)


def _on_periodic(system: System, name: str) -> Findings:
    return Findings(
        errors=tuple(
            f"'{name}' is periodic: it has no faces, but '{field}' has a condition "
            "there"
            for field in system.fields
            if any(_on_axis(system, t, name, field) for t in system.conditions)
        )
    )


def _along(system: System, axis: int, name: str) -> Findings:
    needed = _needed(system, axis) - _free_ends(system, axis)
    most = _most(system, axis)
    inflow = _inflow(system, axis)
    if inflow is not None:
        return _transport(system, name, inflow)
    given = sum(_given(system, name, f) for f in system.fields)
    fields = listing(tuple(f for f in system.fields if order_along(system, f, (axis,))))
    have = "has" if " and " not in fields else "have"
    if needed > given:
        evolves = name == "t" or len(system.coordinates) == 1
        lost = (given == 0 or evolves) and not _held_elsewhere(system)
        count = "no condition" if given == 0 else _many(given, "condition")
        where = "any face" if given == 0 else "the faces"
        text = (
            f"{fields} {have} {count} on {where} of '{name}' ({needed} needed: the "
            f"equations have order {needed} there)"
        )
        return Findings(errors=(text,)) if lost else Findings(warnings=(text,))
    if given > most > 0 and not _consistent(system):
        return Findings(
            warnings=(
                f"{fields} {have} {_many(given, 'condition')} on the faces of "
                f"'{name}', {most} would do: it may be over-determined",
            )
        )
    return Findings()


def _consistent(system: System) -> bool:
    """Whether smooth fields satisfy all of a linear system, surplus and all."""
    linear = linearize(system, seed=1) if system.is_linear else None
    return linear is not None and linear.misfit() < CONSISTENT


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _needed(system: System, axis: int) -> int:
    weights = matching_weights(system, axis)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    chosen = weights[rows, columns]
    return int(chosen[chosen != ABSENT].sum())


def _most(system: System, axis: int) -> int:
    return sum(order_along(system, f, (axis,)) for f in system.fields)


def _on_axis(system: System, term: Term, name: str, field: str) -> bool:
    """Whether the condition stands on a face of the coordinate, for the field there."""
    fixed = dict(term.place.fixed)
    axis = system.problem.axis(name)
    on_face = len(fixed) == 1 and fixed.get(name) in (axis.lower, axis.upper)
    return on_face and field in _local(system, term)


def _local(system: System, term: Term) -> tuple[str, ...]:
    """The fields whose values or derivatives at the point itself are in a condition."""
    if not isinstance(term.residual, Expression):
        return system.fields
    point = tuple(Coordinate(n) for n in system.coordinates)
    used = {
        p.field
        for p in atoms(term.residual)
        if isinstance(p, Partial) and p.at == point
    }
    return tuple(f for f in system.fields if f in used)


def _given(system: System, name: str, field: str) -> int:
    """Conditions on the faces of a coordinate, each for the first field in it."""
    here = [
        t
        for t in system.conditions
        if _on_axis(system, t, name, field) and _local(system, t)[0] == field
    ]
    # Restricted places share a face: together they count once per side and name.
    seen = {
        (t.name if t.place.where is None else "part", dict(t.place.fixed)[name])
        for t in here
    }
    return len(seen)


def _held_elsewhere(system: System) -> bool:
    """Whether a condition is no local one on a face: a point, a mean."""
    return any(
        t.place.face(system.problem) is None or not _local(system, t)
        for t in system.conditions
    )


def _free_ends(system: System, axis: int) -> int:
    """Faces at which the highest derivative of a scalar equation drops out.

    It vanishes there against the others (S = 0 of Black-Scholes, r = 0 in polar
    coordinates), and a smooth solution needs no condition (Fichera, 1956).
    """
    residual = system.equations[0].residual
    order = order_along(system, system.fields[0], (axis,))
    if len(system.equations) != 1 or not isinstance(residual, Expression) or order != 2:
        return 0
    share = _share(system, residual, axis, order)
    points = sample(system.problem, EVERYWHERE, 64, seed=53)
    inside = np.nanmax(share(points))
    at = system.problem.axes[axis]
    count = 0
    for value, inwards in ((at.lower, 1), (at.upper, -1)):
        points[:, axis] = value + inwards * NEAR * (at.upper - at.lower)
        count += bool(np.nanmax(share(points)) <= DROPPED * inside)
    return count


def _share(
    system: System, residual: Expression, axis: int, order: int
) -> Callable[[np.ndarray], np.ndarray]:
    """The size of the pure derivative's coefficient among all, as a function."""
    found = slopes(residual)
    pure = _slope(residual, axis, len(system.coordinates), order) or ZERO
    state = random_state(system.problem.axes, system.fields, seed=5)

    def share(points: np.ndarray) -> np.ndarray:
        every = (pure, *found.values())
        sizes = np.abs(array_values(system.problem, every, points, state))
        return sizes[:, 0] / np.sum(sizes[:, 1:], axis=1)

    return share


# -------------------------------------------------------------------- transport


def _inflow(system: System, axis: int) -> tuple[bool, bool] | None:
    """Where dt(u) + c dx(u) = ... flows in: at the start and at the end of the axis.

    None if the problem is not of this kind, or if c depends on the field.
    """
    names = system.coordinates
    one = len(system.fields) == 1 and len(system.equations) == 1 and "t" in names
    if not one or names[axis] == "t":
        return None
    time = names.index("t")
    residual = system.equations[0].residual
    assert isinstance(residual, Expression)
    if any(sum(p.orders) > 1 for p in partials(residual)):
        return None
    along, rate = (_slope(residual, i, len(names), 1) for i in (axis, time))
    if along is None or rate is None:
        return None
    if partials(along) or partials(rate):
        return None
    points = sample(system.problem, EVERYWHERE, 64, seed=53)
    ends: list[bool] = []
    state = random_state(system.problem.axes, system.fields, seed=5)
    for side, value in enumerate(
        (system.problem.axes[axis].lower, system.problem.axes[axis].upper)
    ):
        points[:, axis] = value
        c, d = array_values(system.problem, (along, rate), points, state).T
        ends.append(bool(np.any((1 - 2 * side) * c * np.sign(d) > 0)))
    return ends[0], ends[1]


def _slope(residual: Expression, axis: int, dim: int, order: int) -> Expression | None:
    """The coefficient of the pure derivative of an order along an axis."""
    orders = tuple(order * (i == axis) for i in range(dim))
    found = slopes(residual).items()
    return next(
        (c for p, c in found if isinstance(p, Partial) and p.orders == orders), None
    )


def _transport(system: System, name: str, inflow: tuple[bool, bool]) -> Findings:
    """Every inflow face needs a condition, no other face may have one."""
    axis = system.problem.axis(name)
    field = system.fields[0]
    errors: list[str] = []
    for side, (value, enters) in enumerate(
        zip((axis.lower, axis.upper), inflow, strict=True)
    ):
        given = any(dict(t.place.fixed) == {name: value} for t in system.conditions)
        if enters and not given:
            errors.append(
                f"'{field}' has no condition at {name} = {value:g}, where it flows in"
            )
        if given and not enters:
            other = (axis.upper, axis.lower)[side]
            errors.append(
                f"'{field}' is carried out of the domain at {name} = {value:g}: a "
                f"condition there contradicts the equation (inflow: "
                f"{f'{name} = {other:g}' if inflow[1 - side] else 'nowhere'})"
            )
    return Findings(errors=tuple(errors))


# --------------------------------------------------------------- points in time


def _points_in_time(system: System) -> Findings:
    """Warnings for initial conditions at one point of space."""
    names = system.coordinates
    if "t" not in names or len(names) < 2:
        return Findings()
    time = system.problem.axis("t")
    warnings: list[str] = []
    for term in system.conditions:
        fixed = dict(term.place.fixed)
        if len(fixed) < 2 or fixed.get("t") not in (time.lower, time.upper):
            continue
        time_axis = names.index("t")
        evolving = {
            f for f in _local(system, term) if order_along(system, f, (time_axis,))
        }
        whole = any(
            set(dict(t.place.fixed)) == {"t"} and evolving & set(_local(system, t))
            for t in system.conditions
        )
        if evolving and not whole:
            warnings.append(
                f"conditions.{term.name} holds at one point only, {term.place.text}: "
                f'an initial condition for all of space is on = "t = {fixed["t"]:g}"'
            )
    return Findings(warnings=tuple(warnings))
