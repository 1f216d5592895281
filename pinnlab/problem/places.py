"""Places of conditions: "t = 0", "x = 1 and y < 0.5", "boundary", "x = 0, y = 0"."""

from collections.abc import Mapping
from dataclasses import dataclass

from pinnlab.equation.expression import Apply, Expression
from pinnlab.equation.parser import parse_condition
from pinnlab.equation.scope import Scope
from pinnlab.equation.tokens import Token, tokenize
from pinnlab.errors import ProblemError, nearest
from pinnlab.problem.constants import constant
from pinnlab.problem.problem import Axis, Place


EVERYWHERE = "the domain"
SNAP = 1e-12


@dataclass(frozen=True)
class Surroundings:
    """What place texts may refer to."""

    axes: tuple[Axis, ...]
    scope: Scope
    values: Mapping[str, float]


def parse_places(text: str, around: Surroundings) -> tuple[Place, ...]:
    """The places that one text means: "boundary" is every face in space.

    Raises `ProblemError` for a place outside the domain.
    """
    if text.strip() == "boundary":
        return tuple(
            Place(f"{a.name} = {_short(v)}", ((a.name, v),), None)
            for a in around.axes
            if a.name != "t"
            for v in (a.lower, a.upper)
        )
    fixed: dict[str, float] = {}
    restrictions: list[Expression] = []
    for start, end, equal in _clauses(text):
        if equal is None:
            restrictions.append(_restriction(text, start, end, around))
        else:
            name, value = _fixed(text, start, end, equal, around)
            if name in fixed:
                raise ProblemError(f"'{name}' is fixed twice", text=text, column=start)
            fixed[name] = value
    where = None
    for restriction in restrictions:
        where = (
            restriction if where is None else Apply("and", (where, restriction))
        )
    return (Place(text.strip(), tuple(fixed.items()), where),)


def _clauses(text: str) -> list[tuple[int, int, Token | None]]:
    """Start, end and `=` of each clause: clauses are joined by `and` or commas."""
    tokens = tokenize(text)
    if len(tokens) == 1:
        raise ProblemError("the place is empty", text=text, column=0)
    if any(t.is_symbol("or") for t in tokens) and not any(
        t.is_symbol("=") for t in tokens
    ):
        return [(0, len(text), None)]
    found: list[tuple[int, int, Token | None]] = []
    depth, start, equal = 0, 0, None
    for token in tokens:
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        ends = token.kind == "end" or token.is_symbol("and", ",")
        if depth == 0 and ends:
            found.append((start, token.column, equal))
            start, equal = token.column + len(token.text), None
        elif depth == 0 and token.is_symbol("="):
            if equal is not None:
                message = "one '=' in each part: join parts with 'and'"
                raise ProblemError(message, text=text, column=token.column)
            equal = token
    return found


def _fixed(
    text: str, start: int, end: int, equal: Token, around: Surroundings
) -> tuple[str, float]:
    name = text[start : equal.column].strip()
    axis = next((a for a in around.axes if a.name == name), None)
    known = tuple(a.name for a in around.axes)
    if axis is None:
        raise ProblemError(
            f"'{name}' is no coordinate (coordinates: {', '.join(known)})",
            text=text,
            column=start,
            hint=nearest(name, known),
        )
    # Blanks in front keep the columns of errors right.
    written = " " * (equal.column + 1) + text[equal.column + 1 : end]
    scope = around.scope.between(name)
    try:
        value = constant(written, scope, around.values)
    except ProblemError as error:
        error.text = text
        raise
    size = axis.upper - axis.lower
    for bound in (axis.lower, axis.upper):
        if abs(value - bound) <= SNAP * size:
            value = bound
    if not axis.lower <= value <= axis.upper:
        raise ProblemError(
            f"{name} = {_short(value)} is outside the domain "
            f"[{_short(axis.lower)}, {_short(axis.upper)}]",
            text=text,
            column=equal.column,
            hint=f"faces: {name} = {_short(axis.lower)}, {name} = {_short(axis.upper)}",
        )
    return name, value


def _restriction(text: str, start: int, end: int, around: Surroundings) -> Expression:
    written = " " * start + text[start:end]
    scope = Scope(
        axes=around.scope.axes,
        parameters=around.scope.parameters,
        definitions={},
    )
    try:
        return parse_condition(written, scope)
    except ProblemError as error:
        error.text = text
        if error.hint is None and error.message.startswith("unknown name"):
            error.hint = "a place is 'boundary', 'x = 0', 'x = 0 and y < 0.5' or 't = 0'"
            hint = nearest(text.strip(), ("boundary",))
            error.hint = hint or error.hint
        raise


def _short(value: float) -> str:
    return f"{value:.6g}"
