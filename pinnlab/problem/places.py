"""Places of conditions: "t = 0", "x = 1 and y < 0.5", "boundary", "x = 0, y = 0".

With a shape "boundary" and the names of its parts are pieces of its edge, and a line
such as "x = 0" is, where the edge runs along it.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from pinnlab.equation.expression import Apply, Expression
from pinnlab.equation.format import format_expression
from pinnlab.equation.parser import parse_condition
from pinnlab.equation.tokens import Token, tokenize
from pinnlab.errors import ProblemError, located, nearest
from pinnlab.problem.constants import constant
from pinnlab.problem.curves import Curve, Segment
from pinnlab.problem.declarations import Declarations
from pinnlab.problem.problem import Axis, Place


EVERYWHERE = "the domain"
SNAP = 1e-12


def parse_places(text: str, declared: Declarations) -> tuple[Place, ...]:
    """The places that one text means: "boundary" is every face in space.

    Raises `ProblemError` for a place outside the domain.
    """
    found = _read(text, declared)
    where = found.where
    if not found.is_boundary and found.curves is None:
        found.curves = _along(found.fixed, declared)
        if not found.curves:
            return (Place(text.strip(), tuple(found.fixed.items()), where),)
    elif found.fixed:
        message = f"'{found.name}' fixes a coordinate already"
        raise ProblemError(message, text=text, column=0)
    if declared.shape is None:
        return _boundary(where, declared)
    curves = declared.shape.curves if found.curves is None else found.curves
    return tuple(_edge(c, where, declared) for c in curves)


def check_parts(declared: Declarations) -> None:
    """Raises `ProblemError` for a named part that is no place."""
    for name, part in declared.shape.parts if declared.shape else ():
        if isinstance(part, str):
            with located(key=f"geometry.parts.{name}", text=part):
                parse_places(part, declared)


@dataclass
class _Read:
    """What the clauses of a place say.

    - `name`: the word for a whole edge, or a part of it, if there is one.
    - `curves`: of the part.
    """

    fixed: dict[str, float] = field(default_factory=dict)
    restrictions: list[Expression] = field(default_factory=list)
    is_boundary: bool = False
    name: str = ""
    curves: tuple[Curve, ...] | None = None

    @property
    def where(self) -> Expression | None:
        """All restrictions together."""
        together = lambda a, b: Apply("and", (a, b))
        return reduce(together, self.restrictions) if self.restrictions else None


def _read(text: str, declared: Declarations) -> _Read:
    found = _Read()
    parts = {} if declared.shape is None else dict(declared.shape.parts)
    clauses = [(text, *clause) for clause in _clauses(text)]
    for clause in tuple(clauses):
        written = text[clause[1] : clause[2]].strip()
        if (part := parts.get(written)) is not None:
            found.name, found.curves = written, None
            clauses.remove(clause)
            if isinstance(part, str):
                clauses += [(part, *inner) for inner in _clauses(part)]
            else:
                found.curves = part
    for source, start, end, equal in clauses:
        if source[start:end].strip() == "boundary":
            found.is_boundary, found.name = True, "boundary"
        elif equal is None:
            found.restrictions.append(_restriction(source, start, end, declared))
        else:
            name, value = _fixed(source, start, end, equal, declared)
            if name in found.fixed:
                message = f"'{name}' is fixed twice"
                raise ProblemError(message, text=source, column=start)
            found.fixed[name] = value
    return found


def _boundary(where: Expression | None, declared: Declarations) -> tuple[Place, ...]:
    """The faces in space; a periodic coordinate has none."""
    found = tuple(
        _face(a.name, value, where)
        for a in declared.axes
        if a.name != "t" and a.name not in declared.periodic
        for value in (a.lower, a.upper)
    )
    if not found:
        raise ProblemError("there is no boundary: no coordinate in space has faces")
    return found


def _face(name: str, value: float, where: Expression | None) -> Place:
    text = f"{name} = {_short(value)}{_and(where)}"
    return Place(text, ((name, value),), where, is_piece=True)


def _and(where: Expression | None) -> str:
    return "" if where is None else f" and {format_expression(where)}"


def _edge(curve: Curve, where: Expression | None, declared: Declarations) -> Place:
    """A piece of the shape's edge: a whole face of the box is one like any other."""
    assert declared.shape is not None
    axes = [declared.axes[i] for i in declared.shape.columns]
    if isinstance(curve, Segment):
        for i, axis in enumerate(axes):
            other, value = axes[1 - i], curve.first[i]
            along = sorted((curve.first[1 - i], curve.last[1 - i]))
            whole = np.allclose(
                along, (other.lower, other.upper), rtol=0, atol=_slack(other)
            )
            if whole and curve.last[i] == value:
                for bound in (axis.lower, axis.upper):
                    if abs(value - bound) <= _slack(axis):
                        return _face(axis.name, bound, where)
    return Place(f"{curve.text}{_and(where)}", (), where, curve, is_piece=True)


def _along(fixed: dict[str, float], declared: Declarations) -> tuple[Curve, ...]:
    """The pieces of the shape's edge on a line such as x = 0."""
    if declared.shape is None or len(fixed) != 1:
        return ()
    ((name, value),) = fixed.items()
    axes = [declared.axes[i] for i in declared.shape.columns]
    if name not in [a.name for a in axes]:
        return ()
    i = next(k for k, a in enumerate(axes) if a.name == name)
    return tuple(
        c
        for c in declared.shape.curves
        if isinstance(c, Segment)
        and max(abs(p[i] - value) for p in (c.first, c.last)) <= _slack(axes[i])
    )


def _slack(axis: Axis) -> float:
    return SNAP * (axis.upper - axis.lower)


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
            names = (
                [] if declared.shape is None else [n for n, _ in declared.shape.parts]
            )
            hint = nearest(text.strip(), ("boundary", *names))
            example = "a place is 'boundary', 't = 0', 'x = 0 and y < 0.5' and so on"
            if names:
                example += f"; the parts are {', '.join(names)}"
            error.hint = hint or example
        raise


def _short(value: float) -> str:
    return f"{value:.6g}"
