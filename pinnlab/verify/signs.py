"""Signs that make a scalar second-order problem gain energy or run backwards."""

import numpy as np

from pinnlab.equation.expression import ZERO, Coordinate, Expression, Partial
from pinnlab.equation.structure import affine, partials
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.findings import Findings
from pinnlab.verify.linearized import slopes
from pinnlab.verify.trial import random_state


POINTS = 64


def wrong_signs(system: System) -> Findings:
    """Warnings for Robin conditions that feed energy; errors for evolutions that
    amplify the shortest waves without bound.

    Only scalar real problems are examined, and none with a declared exact solution.
    """
    scalar = len(system.fields) == 1 and len(system.equations) == 1
    if not scalar or system.problem.exact:
        return Findings()
    equation = system.equations[0]
    if not isinstance(equation.residual, Expression):
        return Findings()
    found = _evolution(system, equation)
    places: dict[str, list[str]] = {}
    for term in system.conditions:
        if _feeds(system, equation, term):
            places.setdefault(term.name, []).append(term.place.text)
    field = system.fields[0]
    warnings = (
        f"conditions.{name} on {' and '.join(on)}: the normal derivative of '{field}' "
        f"grows with '{field}': the boundary feeds what flows in; a loss to the "
        f"surroundings is k*dn({field}) = -h*({field} - ...)"
        for name, on in places.items()
    )
    return found + Findings(warnings=tuple(warnings))


def _feeds(system: System, equation: Term, term: Term) -> bool:
    """Whether a condition is k*dn(u) = +h*(u - T): the flux inwards grows with u."""
    face = term.place.face(system.problem)
    form = affine(term.residual) if isinstance(term.residual, Expression) else None
    if face is None or form is None or face[0] == "t":
        return False
    axis = system.coordinates.index(face[0])
    if _highest(system, equation, axis) != 2 or _time_order(system, equation) > 1:
        return False
    point = tuple(Coordinate(n) for n in system.coordinates)
    zero = tuple(0 for _ in system.coordinates)
    slope = tuple(int(i == axis) for i in range(len(zero)))
    field = system.fields[0]
    value = form.coefficients.get(Partial(field, zero, point), ZERO)
    outward = form.coefficients.get(Partial(field, slope, point), ZERO)
    if value == ZERO or outward == ZERO or len(form.coefficients) != 2:
        return False
    points = sample(system.problem, term.place, POINTS, seed=41)
    a, b = array_values(system.problem, (outward, value), points).T
    sign = 1 if face[1] else -1
    return bool(np.mean(sign * a * b < 0) > 0.5)


def _evolution(system: System, equation: Term) -> Findings:
    """Signs of the highest derivatives in time and in each space coordinate."""
    names = system.coordinates
    starts = _conditions_at_start(system)
    order = _time_order(system, equation)
    if order not in (1, 2) or starts != order:
        return Findings()
    time = names.index("t")
    messages: list[str] = []
    for axis, name in enumerate(names):
        highest = _highest(system, equation, axis)
        if axis == time or highest == 0 or highest % 2:
            continue
        ratio = _ratio(system, equation, (time, order), (axis, highest))
        # exp(i k x): the highest derivative is (-1)^(highest/2) k^highest.
        growth = -ratio * (-1) ** (highest // 2)
        if np.mean(growth > 0) > 0.5:
            messages.append(
                f"equations.{equation.name}: short waves in {name} grow without bound "
                f"from t = start: with this sign of the derivative of order {highest} "
                "in space the problem is ill-posed forwards in time; change the sign"
                + (", or give the condition at t = end" if order == 1 else "")
            )
    return Findings(errors=tuple(messages))


def _ratio(
    system: System, equation: Term, first: tuple[int, int], second: tuple[int, int]
) -> np.ndarray:
    """coefficient of the second derivative over that of the first, at points."""
    assert isinstance(equation.residual, Expression)
    found = slopes(equation.residual)
    dim = len(system.coordinates)
    pair: list[Expression] = []
    for axis, order in (first, second):
        orders = tuple(order * (i == axis) for i in range(dim))
        pair.append(
            next(
                (
                    c
                    for p, c in found.items()
                    if isinstance(p, Partial) and p.orders == orders
                ),
                ZERO,
            )
        )
    points = sample(system.problem, EVERYWHERE, POINTS, seed=43)
    state = random_state(system.problem.axes, system.fields, seed=4)
    a, b = array_values(system.problem, tuple(pair), points, state).T
    with np.errstate(all="ignore"):
        return np.nan_to_num(b / a)


def _time_order(system: System, equation: Term) -> int:
    if "t" not in system.coordinates:
        return 0
    return _highest(system, equation, system.coordinates.index("t"))


def _highest(system: System, equation: Term, axis: int) -> int:
    assert isinstance(equation.residual, Expression)
    return max((p.orders[axis] for p in partials(equation.residual)), default=0)


def _conditions_at_start(system: System) -> int:
    if "t" not in system.coordinates:
        return 0
    start = ("t", system.problem.axis("t").lower)
    return sum(t.place.fixed == (start,) for t in system.conditions)
