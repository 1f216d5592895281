"""Places of conditions: "t = 0", "x = 1 and y < 0.5", "boundary", "x = 0, y = 0"."""

from pinnlab.equation.expression import Apply, Expression
from pinnlab.equation.format import format_expression
from pinnlab.equation.parser import parse_condition
from pinnlab.equation.tokens import Token, tokenize
from pinnlab.errors import ProblemError, nearest
from pinnlab.problem.constants import constant
from pinnlab.problem.declarations import Declarations
from pinnlab.problem.problem import Place


EVERYWHERE = "the domain"
SNAP = 1e-12


def parse_places(text: str, declared: Declarations) -> tuple[Place, ...]:
    """The places that one text means: "boundary" is every face in space.

    Raises `ProblemError` for a place outside the domain.
    """
    fixed: dict[str, float] = {}
    restrictions: list[Expression] = []
    everywhere = False
    for start, end, equal in _clauses(text):
        if text[start:end].strip() == "boundary":
            everywhere = True
        elif equal is None:
            restrictions.append(_restriction(text, start, end, declared))
        else:
            name, value = _fixed(text, start, end, equal, declared)
            if name in fixed:
                raise ProblemError(f"'{name}' is fixed twice", text=text, column=start)
            fixed[name] = value
    where = restrictions[0] if restrictions else None
    for restriction in restrictions[1:]:
        where = Apply("and", (where, restriction)) if where else restriction
    if not everywhere:
        return (Place(text.strip(), tuple(fixed.items()), where),)
    if fixed:
        raise ProblemError("'boundary' fixes a coordinate already", text=text, column=0)
    return _boundary(where, declared)


def _boundary(where: Expression | None, declared: Declarations) -> tuple[Place, ...]:
    """The faces in space; a periodic coordinate has none."""
    restriction = "" if where is None else f" and {format_expression(where)}"
    found = tuple(
        Place(f"{a.name} = {_short(value)}{restriction}", ((a.name, value),), where)
        for a in declared.axes
        if a.name != "t" and a.name not in declared.periodic
        for value in (a.lower, a.upper)
    )
    if not found:
        raise ProblemError("there is no boundary: no coordinate in space has faces")
    return found


def _clauses(text: str) -> list[tuple[int, int, Token | None]]:
    """Start, end and `=` of each clause: clauses are joined by `and` or commas."""
    tokens = tokenize(text)
    if len(tokens) == 1:
        raise ProblemError("the place is empty", text=text, column=0)
    found: list[tuple[int, int, Token | None]] = []
    depth, start, equal = 0, 0, None
    for token in tokens:
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        ends = token.kind == "end" or token.is_symbol("and", ",")
        if depth == 0 and ends:
            found.append((start, token.column, equal))
            start, equal = token.column + len(token.text), None
        elif depth == 0 and token.is_symbol("or"):
            if not any(t.is_symbol("=") for t in tokens):
                return [(0, len(text), None)]
            raise ProblemError(
                "'or' between parts of a place", text=text, column=token.column,
                hint='write a list, on = ["x = 0", "x = 1"], or parentheses: (a or b)',
            )  # fmt: skip
        elif depth == 0 and token.is_symbol("=="):
            message = "'==' in a place: write = to fix a coordinate"
            raise ProblemError(message, text=text, column=token.column)
        elif depth == 0 and token.is_symbol("="):
            if equal is not None:
                message = "one '=' in each part: join parts with 'and'"
                raise ProblemError(message, text=text, column=token.column)
            equal = token
    return found


def _fixed(
    text: str, start: int, end: int, equal: Token, declared: Declarations
) -> tuple[str, float]:
    name = text[start : equal.column].strip()
    axis = next((a for a in declared.axes if a.name == name), None)
    known = tuple(a.name for a in declared.axes)
    if axis is None:
        raise ProblemError(
            f"'{name}' is no coordinate (coordinates: {', '.join(known)})",
            text=text,
            column=start,
            hint=nearest(name, known),
        )
    # Blanks in front keep the columns of errors right.
    written = " " * (equal.column + 1) + text[equal.column + 1 : end]
    scope = declared.data_scope.between(name)
    try:
        value = constant(written, scope, declared.parameters)
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


def _restriction(text: str, start: int, end: int, declared: Declarations) -> Expression:
    written = " " * start + text[start:end]
    try:
        return parse_condition(written, declared.data_scope)
    except ProblemError as error:
        error.text = text
        if error.hint is None and error.message.startswith("unknown name"):
            hint = nearest(text.strip(), ("boundary",))
            example = "a place is 'boundary', 't = 0', 'x = 0 and y < 0.5' and so on"
            error.hint = hint or example
        raise


def _short(value: float) -> str:
    return f"{value:.6g}"
