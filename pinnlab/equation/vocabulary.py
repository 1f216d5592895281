"""What the names with parentheses mean: functions, derivatives, vector calculus."""

from typing import TYPE_CHECKING

from pinnlab.equation.binding import integral, trace
from pinnlab.equation.expression import (
    FUNCTIONS,
    Apply,
    Derivative,
    Expression,
    NormalDerivative,
)
from pinnlab.equation.scope import (
    OPERATORS,
    Value,
    Vector,
    derivative_letters,
    is_boolean,
)
from pinnlab.equation.tokens import Token
from pinnlab.errors import ProblemError, nearest, quoted


if TYPE_CHECKING:
    from pinnlab.equation.parser import Parser


def unknown_name(parser: "Parser", token: Token) -> ProblemError:
    """The error for a name that means nothing here."""
    scope = parser.scope
    hint = nearest(token.text, (*scope.names(), *FUNCTIONS, *OPERATORS))
    if token.text in FUNCTIONS or token.text in OPERATORS:
        hint = f"'{token.text}' is a function: write {token.text}(...)"
    message = f"unknown name {quoted(token.text)} ({scope.listing()})"
    return parser.error(message, token, hint)


def apply_name(parser: "Parser", token: Token) -> Value:
    """A call: `token` is the name, the parser stands at the parenthesis."""
    parser.expect("(")
    name = token.text
    if name == "integral":
        return integral(parser, token)
    if name == "at":
        return trace(parser, token)
    if name == "d":
        return _general_derivative(parser, token)
    if name == "jump":
        raise parser.error("jump(...) is not supported yet", token)
    letters = derivative_letters(name, parser.scope.axes)
    if name not in FUNCTIONS and name not in OPERATORS and letters is None:
        raise _no_function(parser, token)
    arguments = _arguments(parser)
    if letters is not None:
        return _derivative(_only(parser, token, arguments), letters)
    if name in FUNCTIONS:
        return _function(parser, token, arguments)
    if name == "dn":
        if not parser.scope.normal:
            raise parser.error("dn(...) needs a face: use it in a condition", token)
        return NormalDerivative(_one(parser, token, arguments))
    return _vector_calculus(parser, token, arguments)


def _no_function(parser: "Parser", token: Token) -> ProblemError:
    name, axes = token.text, parser.scope.axes
    if parser.scope.resolve(name) is not None:
        hint = "write * for a product"
        if name in parser.scope.fields:
            hint = f"write {name} for its value at the point, at({name}, ...) elsewhere"
        return parser.error(f"'{name}' is not a function", token, hint)
    known = (*FUNCTIONS, *OPERATORS, *(f"d{a}" for a in axes if len(a) == 1))
    letters = name.removeprefix("d")
    like_derivative = len(letters) == 1 or any(c in axes for c in letters)
    if not name.startswith("d") or not letters:
        hint = nearest(name, known)
    elif letters in axes:
        hint = f"write d(..., {letters})"
    elif like_derivative and len(letters) <= 6:
        strange = next(c for c in letters if c not in axes)
        hint = f"'{strange}' is not a coordinate (coordinates: {', '.join(axes)})"
    else:
        hint = nearest(name, known)
    return parser.error(f"unknown function {quoted(name)}", token, hint)


def _arguments(parser: "Parser") -> list[tuple[Value, Token]]:
    """The values up to the closing parenthesis, each with its first token."""
    found: list[tuple[Value, Token]] = []
    if parser.peek().is_symbol(")"):
        parser.next()
        return found
    while True:
        start = parser.peek()
        found.append((parser.expression(0), start))
        if parser.peek().is_symbol(","):
            parser.next()
            continue
        parser.expect(")")
        return found


def _function(
    parser: "Parser", token: Token, arguments: list[tuple[Value, Token]]
) -> Expression:
    count = FUNCTIONS[token.text]
    if len(arguments) != count:
        raise parser.error(
            f"{token.text}() takes {count} argument{'s' * (count > 1)}, "
            f"found {len(arguments)}",
            token,
        )
    values: list[Expression] = []
    for i, (value, start) in enumerate(arguments):
        if token.text == "where" and i == 0:
            if not is_boolean(value):
                message = "where() needs a comparison first, such as x < 0.5"
                raise parser.error(message, start)
            assert isinstance(value, Expression)
            values.append(value)
        else:
            values.append(parser.scalar(value, start))
    return Apply(token.text, tuple(values))


def _only(
    parser: "Parser", token: Token, arguments: list[tuple[Value, Token]]
) -> Value:
    if len(arguments) != 1:
        message = f"{token.text}() takes 1 argument, found {len(arguments)}"
        raise parser.error(message, token)
    return arguments[0][0]


def _one(
    parser: "Parser", token: Token, arguments: list[tuple[Value, Token]]
) -> Expression:
    return parser.scalar(_only(parser, token, arguments), token)


def _derivative(value: Value, letters: tuple[str, ...]) -> Value:
    if isinstance(value, Vector):
        return Vector(tuple(Derivative(c, letters) for c in value.components))
    return Derivative(value, letters)


def _general_derivative(parser: "Parser", token: Token) -> Value:
    """d(expression, r, r): the letters of a `dxx` spelled out."""
    value = parser.expression(0)
    names: list[str] = []
    while parser.peek().is_symbol(","):
        parser.next()
        name = parser.coordinate()
        names.append(name.text)
    parser.expect(")")
    if not names:
        message = "d() needs the coordinates to differentiate by: d(u, x)"
        raise parser.error(message, token)
    return _derivative(value, tuple(names))


def _vector_calculus(
    parser: "Parser", token: Token, arguments: list[tuple[Value, Token]]
) -> Value:
    name, space = token.text, parser.scope.space
    if name == "dot":
        values = [v for v, _ in arguments]
        if len(values) != 2 or not all(isinstance(v, Vector) for v in values):
            raise parser.error("dot() takes two vectors, such as grad(u)", token)
        a, b = values
        assert isinstance(a, Vector) and isinstance(b, Vector)
        pairs = zip(a.components, b.components, strict=True)
        return _sum(tuple(Apply("*", pair) for pair in pairs))
    if not space:
        raise parser.error(f"{name}() needs a space coordinate", token)
    if name == "div":
        return _divergence(parser, token, arguments)
    value = _only(parser, token, arguments)
    if name == "grad":
        inner = parser.scalar(value, token)
        return Vector(tuple(Derivative(inner, (c,)) for c in space))
    if isinstance(value, Vector):
        parts = tuple(_sum(_seconds(c, space)) for c in value.components)
        return Vector(parts)
    return _sum(_seconds(parser.scalar(value, token), space))


def _seconds(value: Expression, space: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(Derivative(value, (c, c)) for c in space)


def _divergence(
    parser: "Parser", token: Token, arguments: list[tuple[Value, Token]]
) -> Expression:
    space = parser.scope.space
    if len(arguments) == 1 and isinstance(arguments[0][0], Vector):
        parts = arguments[0][0].components
    else:
        parts = tuple(parser.scalar(v, t) for v, t in arguments)
    if len(parts) != len(space):
        raise parser.error(
            f"div() needs a component for each of {', '.join(space)}, "
            f"found {len(parts)}",
            token,
        )
    return _sum(tuple(Derivative(p, (c,)) for p, c in zip(parts, space, strict=True)))


def _sum(parts: tuple[Expression, ...]) -> Expression:
    total = parts[0]
    for part in parts[1:]:
        total = Apply("+", (total, part))
    return total
