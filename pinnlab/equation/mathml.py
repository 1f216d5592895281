"""Expressions as MathML, which browsers and notebooks show as mathematics."""

from html import escape

from pinnlab.equation.expression import (
    FUNCTIONS,
    Apply,
    At,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Integral,
    NormalDerivative,
    Number,
    Parameter,
)
from pinnlab.equation.format import (
    ATOM,
    GREEK,
    INTEGRAL,
    PARTIAL,
    PRECEDENCE,
    SYMBOLS,
    number_text,
)


MINUS = "\N{MINUS SIGN}"
PRODUCT = '<mo lspace="0" rspace="0.17em">\N{INVISIBLE TIMES}</mo>'
SPACE = '<mspace width="0.17em"/>'


def mathml(*sides: Expression) -> str:
    """A `<math>` element of an expression in written form, or of `left = right`."""
    inside = _token("mo", "=").join(_part(side, 0) for side in sides)
    return f"<math>{_row(inside)}</math>"


def _part(node: Expression, least: int) -> str:
    """The node, in parentheses where it holds together less than `least`."""
    text, strength = _shown(node)
    return text if strength >= least else _fenced(text)


def _shown(node: Expression) -> tuple[str, int]:
    match node:
        case Number(value):
            text, strength = number_text(value)
            return _token("mn", text.replace("-", MINUS)), strength
        case Coordinate(name) | Parameter(name) | Field(name):
            return _name(name), ATOM
        case Derivative(Derivative(operand, first), then):
            return _shown(Derivative(operand, first + then))
        case Derivative(Field(name), names):
            below = "".join(_name(n) for n in names)
            return f"<msub>{_name(name)}{_row(below)}</msub>", ATOM
        case Derivative(operand, names):
            powers = {n: names.count(n) for n in names}
            below = "".join(_partial(_name(n), k) for n, k in powers.items())
            top = _raised(_token("mo", PARTIAL), len(names))
            return f"<mfrac>{_row(top)}{_row(below)}</mfrac>{_part(operand, 7)}", 6
        case NormalDerivative(operand):
            below = _partial(_name("n"), 1)
            top = _token("mo", PARTIAL)
            return f"<mfrac>{top}{_row(below)}</mfrac>{_part(operand, 7)}", 6
        case At(body, where):
            places = _token("mo", ",").join(
                f"{_name(n)}{_token('mo', '=')}{_part(e, 0)}" for n, e in where
            )
            bar = _row(_part(body, ATOM) + '<mo stretchy="false">|</mo>')
            return f"<msub>{bar}{_row(places)}</msub>", ATOM
        case Integral(body, variable, lower, upper):
            limits = f"{_row(_part(lower, 0))}{_row(_part(upper, 0))}"
            sign = f"<msubsup>{_token('mo', INTEGRAL)}{limits}</msubsup>"
            end = SPACE + _token("mi", "d") + _name(variable)
            return f"{sign}{_part(body, 6)}{end}", 5
        case Apply(function, arguments) if function in FUNCTIONS:
            return _called(function, arguments)
        case Apply(function, arguments):
            return _operator(function, arguments)
        case _:
            raise TypeError(f"no mathematics for {type(node).__name__}")


def _called(function: str, arguments: tuple[Expression, ...]) -> tuple[str, int]:
    inside = [_part(a, 0) for a in arguments]
    if function == "sqrt":
        return f"<msqrt>{inside[0]}</msqrt>", ATOM
    if function == "abs":
        return _row(_token("mo", "|") + inside[0] + _token("mo", "|")), ATOM
    if function == "exp":
        return f"<msup>{_token('mi', 'e')}{_row(inside[0])}</msup>", ATOM - 1
    listed = _token("mo", ",").join(inside)
    return _token("mi", function) + _fenced(listed), ATOM


def _operator(function: str, arguments: tuple[Expression, ...]) -> tuple[str, int]:
    strength = PRECEDENCE[function]
    if function in ("neg", "not"):
        sign = MINUS if function == "neg" else "not "
        return _token("mo", sign) + _part(arguments[0], strength), strength
    left, right = arguments
    if function == "/":
        return f"<mfrac>{_row(_part(left, 0))}{_row(_part(right, 0))}</mfrac>", ATOM - 1
    if function == "^":
        return f"<msup>{_row(_part(left, ATOM))}{_row(_part(right, 0))}</msup>", 8
    if function == "*":
        dot = _token("mo", "\N{DOT OPERATOR}")
        sign = dot if isinstance(right, Number) else PRODUCT
        return _part(left, strength) + sign + _part(right, PRECEDENCE["^"]), strength
    sign = MINUS if function == "-" else SYMBOLS.get(function, function)
    least = strength + 1
    if isinstance(right, Apply) and right.function == "neg":
        least = ATOM
    return _part(left, strength) + _token("mo", sign) + _part(right, least), strength


def _name(name: str) -> str:
    """A name in Greek where it is spelled so, with what follows as a subscript."""
    head, _, tail = name.partition("_")
    letters = head.rstrip("0123456789")
    if letters != head and not tail:
        head, tail = letters, head[len(letters) :]
    if not head:
        head, tail = name, ""
    word = _token("mi", GREEK.get(head, head))
    return f"<msub>{word}{_token('mi', GREEK.get(tail, tail))}</msub>" if tail else word


def _partial(name: str, count: int) -> str:
    return _token("mo", PARTIAL) + _raised(name, count)


def _raised(base: str, power: int) -> str:
    return base if power == 1 else f"<msup>{base}{_token('mn', str(power))}</msup>"


def _fenced(inside: str) -> str:
    return _row(_token("mo", "(") + inside + _token("mo", ")"))


def _row(inside: str) -> str:
    return f"<mrow>{inside}</mrow>"


def _token(kind: str, text: str) -> str:
    return f"<{kind}>{escape(text)}</{kind}>"
