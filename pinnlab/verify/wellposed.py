"""What a problem leaves undetermined: null spaces, and zero as a solution."""

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.sampling import sample
from pinnlab.system.arrays import FieldValues, array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE
from pinnlab.verify.findings import Findings, listing
from pinnlab.verify.linearized import NEARLY, Linearized, linearize, rows_of
from pinnlab.verify.trial import random_state


UNCHANGED = 1e-9


def undetermined(system: System) -> Findings:
    """Errors where fields are not unique; a warning where zero is a solution."""
    linear = linearize(system, seed=1)
    if linear is None:
        return Findings()
    found = _null_spaces(system, linear)
    return found + _trivial(system, linear, bool(found.errors))


def _null_spaces(system: System, linear: Linearized) -> Findings:
    """Functions that may be added to a solution.

    Of a nonlinear system only those that may be added to any fields: constants,
    linear functions and functions of one coordinate.
    """
    powers = linear.basis.powers
    constants = _null(system, linear, powers.sum(axis=1) == 0)
    messages: list[str] = []
    for name, vectors in _functions_of_one(system, linear).items():
        messages.append(_message(system, linear, vectors, f"a function of {name}"))
    if not messages:
        if len(constants):
            messages.append(_message(system, linear, constants, "a constant"))
        for i, name in enumerate(system.coordinates):
            straight = (powers.sum(axis=1) == powers[:, i]) & (powers[:, i] < 2)
            vectors = _null(system, linear, straight)
            if len(vectors) > len(constants) and name not in system.problem.periodic:
                what = f"a multiple of {name}"
                messages.append(_message(system, linear, vectors, what))
    if not messages and system.is_linear and not linear.vanishes_at_zero:
        vectors = linear.null_vectors(null=NEARLY)
        if len(vectors):
            fields = listing(linear.used_fields(vectors))
            messages.append(
                f"{fields}: the solution is not unique, some function may be added "
                "that satisfies every equation and condition with zero data: a "
                "condition is missing"
            )
    return Findings(errors=tuple(messages))


def _functions_of_one(system: System, linear: Linearized) -> dict[str, np.ndarray]:
    """Null functions of one coordinate alone, where nearly every such function is one.

    Conditions at points take away two at most.
    """
    powers, names = linear.basis.powers, system.coordinates
    found: dict[str, np.ndarray] = {}
    if len(names) < 2:
        return found
    for i, name in enumerate(names):
        alone = powers.sum(axis=1) == powers[:, i]
        vectors = _null(system, linear, alone)
        if len(vectors) >= int(alone.sum()) - 2:
            found[name] = vectors
    return found


def _null(system: System, linear: Linearized, allowed: np.ndarray) -> np.ndarray:
    columns = linear.of_degrees(allowed)
    small = linear.null_vectors(columns)
    vectors = np.zeros((len(small), len(columns)))
    vectors[:, columns] = small
    if system.is_linear:
        return vectors
    kept = [v for v in vectors if _may_be_added(system, linear.function(v))]
    return np.reshape(kept, (len(kept), len(columns)))


def _may_be_added(system: System, function: FieldValues) -> bool:
    """Whether adding a function to arbitrary fields changes no residual."""
    state = random_state(system.problem.axes, system.fields, seed=3)

    def moved(field: str, orders: tuple[int, ...], places: np.ndarray) -> np.ndarray:
        return state(field, orders, places) + function(field, orders, places)

    for term in (*system.equations, *system.conditions):
        assert isinstance(term.residual, Expression)
        points = rows_of(system, term, 32)
        before, after = (
            array_values(system.problem, (term.residual,), points, f)[:, 0]
            for f in (state, moved)
        )
        size = np.max(np.abs(before), initial=1.0)
        if not np.max(np.abs(after - before), initial=0.0) <= UNCHANGED * size:
            return False
    return True


def _message(system: System, linear: Linearized, vectors: np.ndarray, what: str) -> str:
    fields = linear.used_fields(vectors)
    verb = "is" if len(fields) == 1 else "are"
    lead = f"{listing(fields)} {verb} determined only up to {what}: "
    if what.startswith("a multiple"):
        return f"{lead}a condition is missing (a value at another point, for example)"
    place, mean = _point(system), f" or a mean ({_mean(system, fields[0])} = 0)"
    return (
        f'{lead}add a value at a point ({{ on = "{place}", equation = '
        f'"{fields[0]} = 0" }}){"" if system.problem.shape else mean}'
    )


def _point(system: System) -> str:
    """A corner of the domain; of a shape a point inside."""
    problem = system.problem
    space = [i for i, n in enumerate(system.coordinates) if n != "t"] or [0]
    point = [a.lower for a in problem.axes]
    if problem.shape is not None:
        points = sample(problem, EVERYWHERE, 64, seed=1)
        point = points[np.argmax(problem.shape.level(points))].tolist()
    return ", ".join(f"{system.coordinates[i]} = {point[i]:.3g}" for i in space)


def _mean(system: System, field: str) -> str:
    mean = field
    for name in [n for n in system.coordinates if n != "t"] or ["t"]:
        mean = f"integral({mean}, {name})"
    return mean


def _trivial(system: System, linear: Linearized, not_unique: bool) -> Findings:
    if not linear.vanishes_at_zero or not_unique:
        return Findings()
    fields = ", ".join(f"{f} = 0" for f in system.fields)
    if not system.is_linear:
        return Findings(
            warnings=(
                f"{fields} satisfies every equation and condition: training may "
                "return it; if another solution is meant, add a normalization or data",
            )
        )
    if len(linear.null_vectors(null=NEARLY)):
        square = f"{system.fields[0]}^2"
        for name in system.coordinates:
            square = f"integral({square}, {name})"
        return Findings(
            errors=(
                f"{fields} satisfies everything, and other functions do, with any "
                f"factor: add a normalization such as {square} = 1, or a value at a "
                "point",
            )
        )
    return Findings(
        warnings=(f"{fields} is the only solution: every source and all data are zero",)
    )
