"""Expressions as text: one that parses back, and one that reads like the paper."""

from pinnlab.equation.expression import (
    FUNCTIONS,
    RELATIONS,
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
    Partial,
)


PRECEDENCE = {
    "or": 1, "and": 2, "not": 3,
    "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "neg": 7, "^": 8,
}  # fmt: skip
ATOM = 9

GREEK = {
    name: chr(code)
    for name, code in {
        "alpha": 0x3B1, "beta": 0x3B2, "gamma": 0x3B3, "delta": 0x3B4,
        "epsilon": 0x3B5, "eps": 0x3B5, "zeta": 0x3B6, "eta": 0x3B7, "theta": 0x3B8,
        "kappa": 0x3BA, "lambda": 0x3BB, "mu": 0x3BC, "nu": 0x3BD, "xi": 0x3BE,
        "pi": 0x3C0, "rho": 0x3C1, "sigma": 0x3C3, "tau": 0x3C4, "phi": 0x3C6,
        "chi": 0x3C7, "psi": 0x3C8, "omega": 0x3C9, "Omega": 0x3A9, "Delta": 0x394,
    }.items()
}  # fmt: skip
SUPERSCRIPTS = str.maketrans(
    "0123456789-",
    "".join(chr(c) for c in (0x2070, 0xB9, 0xB2, 0xB3, *range(0x2074, 0x207A), 0x207B)),
)
DOT, INTEGRAL, PARTIAL = chr(0xB7), chr(0x222B), chr(0x2202)
SYMBOLS = {"<=": chr(0x2264), ">=": chr(0x2265), "!=": chr(0x2260)}


def format_expression(node: Expression) -> str:
    """Text that parses back to the same tree (in a scope with the same names)."""
    return _text(node, 0)


def _text(node: Expression, least: int) -> str:
    text, strength = _plain(node)
    return f"({text})" if strength < least else text


def _plain(node: Expression) -> tuple[str, int]:
    match node:
        case Number(value):
            return number_text(value)
        case Coordinate(name) | Parameter(name) | Field(name):
            return name, ATOM
        case Derivative(operand, names):
            inside = _text(operand, 0)
            if all(len(n) == 1 for n in names):
                return f"d{''.join(names)}({inside})", ATOM
            return f"d({inside}, {', '.join(names)})", ATOM
        case NormalDerivative(operand):
            return f"dn({_text(operand, 0)})", ATOM
        case At(body, where):
            places = ", ".join(f"{n} = {_text(e, 0)}" for n, e in where)
            return f"at({_text(body, 0)}, {places})", ATOM
        case Integral(body, variable, lower, upper):
            limits = f"[{_text(lower, 0)}, {_text(upper, 0)}]"
            return f"integral({_text(body, 0)}, {variable} = {limits})", ATOM
        case Apply(function, arguments) if function in FUNCTIONS:
            inside = ", ".join(_text(a, 0) for a in arguments)
            return f"{function}({inside})", ATOM
        case Apply(function, arguments):
            return _operator(function, arguments)
        case Partial(field, orders, at):
            places = ", ".join(_text(a, 0) for a in at)
            return f"{field}<{','.join(map(str, orders))}>({places})", ATOM
        case _:
            raise TypeError(f"no text for {type(node).__name__}")


def _operator(function: str, arguments: tuple[Expression, ...]) -> tuple[str, int]:
    strength = PRECEDENCE[function]
    if function == "neg":
        return f"-{_text(arguments[0], strength)}", strength
    if function == "not":
        return f"not {_text(arguments[0], strength)}", strength
    left, right = arguments
    if function == "^":
        return f"{_text(left, ATOM)}^{_text(right, 7)}", strength
    tight = function in ("*", "/")
    symbol = function if tight else f" {function} "
    chained = strength + 1 if function in RELATIONS else strength
    return f"{_text(left, chained)}{symbol}{_text(right, strength + 1)}", strength


def number_text(value: float | complex) -> tuple[str, int]:
    """A number as written, and how strongly the text holds together."""
    if isinstance(value, complex):
        if value.real == 0:
            text = f"{_real(value.imag)}j"
            return text, 7 if value.imag < 0 else ATOM
        return f"{_real(value.real)} + {_real(value.imag)}j", 5
    return _real(value), 7 if value < 0 else ATOM


def _real(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


# ---------------------------------------------------------------- for people


def pretty(node: Expression) -> str:
    """The expression as the paper would write it: u_t + u u_x, with Greek letters."""
    return _human(node, 0)


def _human(node: Expression, least: int) -> str:
    text, strength = _shown(node)
    return f"({text})" if strength < least else text


def _shown(node: Expression) -> tuple[str, int]:
    match node:
        case Coordinate(name) | Parameter(name) | Field(name):
            return _word(name), ATOM
        case Derivative(Derivative(operand, first), then):
            return _shown(Derivative(operand, first + then))
        case Derivative(Field(name), names):
            return f"{_word(name)}_{_subscript(names)}", ATOM
        case Derivative(operand, names):
            counts = {name: names.count(name) for name in names}
            below = "".join(
                f"{PARTIAL}{_word(n)}{_raised(c)}" for n, c in counts.items()
            )
            return f"{PARTIAL}{_raised(len(names))}/{below}({_human(operand, 0)})", ATOM
        case NormalDerivative(operand):
            return f"{PARTIAL}({_human(operand, 0)})/{PARTIAL}n", ATOM
        case At(body, where):
            places = ", ".join(f"{n}={_human(e, 0)}" for n, e in where)
            return f"{_human(body, ATOM)}|({places})", ATOM
        case Integral(body, variable, lower, upper):
            limits = f"[{_human(lower, 0)}, {_human(upper, 0)}]"
            return f"{INTEGRAL}{limits} {_human(body, 6)} d{variable}", 5
        case Apply(function, arguments) if function in FUNCTIONS:
            inside = ", ".join(_human(a, 0) for a in arguments)
            return f"{function}({inside})", ATOM
        case Apply(function, arguments):
            return _shown_operator(function, arguments)
        case _:
            return _plain(node)


def _word(name: str) -> str:
    """A name in Greek where it is spelled so: nu, omega0, sigma_x."""
    letters = name.rstrip("0123456789").split("_")[0]
    return GREEK.get(letters, letters) + name[len(letters) :]


def _raised(power: int) -> str:
    return "" if power == 1 else str(power).translate(SUPERSCRIPTS)


def _subscript(names: tuple[str, ...]) -> str:
    words = [_word(name) for name in names]
    return "".join(words) if all(len(w) == 1 for w in words) else ",".join(words)


def _shown_operator(
    function: str, arguments: tuple[Expression, ...]
) -> tuple[str, int]:
    strength = PRECEDENCE[function]
    if function in ("neg", "not"):
        sign = "-" if function == "neg" else "not "
        return f"{sign}{_human(arguments[0], strength)}", strength
    left, right = arguments
    if function == "^":
        if isinstance(right, Number) and right.value == int(right.value.real):
            power = str(int(right.value.real)).translate(SUPERSCRIPTS)
            return f"{_human(left, ATOM)}{power}", strength
        return f"{_human(left, ATOM)}^{_human(right, ATOM)}", strength
    if function == "*":
        between = DOT if isinstance(right, Number) else " "
        # a/b c and a -b would read as something else.
        fraction = isinstance(left, Apply) and left.function == "/"
        first = _human(left, ATOM if fraction else strength)
        return f"{first}{between}{_human(right, PRECEDENCE['^'])}", strength
    symbol = "/" if function == "/" else f" {SYMBOLS.get(function, function)} "
    negative = isinstance(right, Apply) and right.function == "neg"
    least = ATOM if negative else strength + 1
    return f"{_human(left, strength)}{symbol}{_human(right, least)}", strength
