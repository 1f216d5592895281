"""Complex equations as pairs of real ones: h becomes h_real + 1j h_imag."""

from pinnlab.equation.expression import (
    ONE,
    ZERO,
    Apply,
    At,
    Derivative,
    Expression,
    Field,
    Integral,
    NormalDerivative,
    Number,
    call,
    power,
    rebuild,
    walk,
)


Pair = tuple[Expression, Expression]

MAX_POWER = 32
"""The largest integer power of a complex number; it is multiplied out."""


def split(expression: Expression, complex_fields: frozenset[str]) -> Pair:
    """The real and the imaginary part of an expression in written form.

    The imaginary part is `ZERO` where the expression is real. Raises `ValueError` for
    a function that is not defined here for complex arguments.
    """
    if not _has_complex(expression, complex_fields):
        return expression, ZERO
    done: dict[Expression, Pair] = {}

    def parts(node: Expression) -> Pair:
        if node not in done:
            done[node] = _split(node)
        return done[node]

    def _split(node: Expression) -> Pair:
        match node:
            case Number(value):
                return Number(value.real), Number(value.imag)
            case Field(name) if name in complex_fields:
                return Field(f"{name}_real"), Field(f"{name}_imag")
            case Derivative(operand, names):
                return _both(parts(operand), lambda e: Derivative(e, names))
            case NormalDerivative(operand):
                return _both(parts(operand), NormalDerivative)
            case At(body, where):
                return _both(parts(body), lambda e: At(e, where))
            case Integral(body, v, lower, upper):
                return _both(parts(body), lambda e: Integral(e, v, lower, upper))
            case Apply(function, arguments):
                inner = tuple(parts(a) for a in arguments)
                if all(b == ZERO for _, b in inner) and function not in ("conj",):
                    return rebuild(node, lambda e: parts(e)[0]), ZERO
                return _apply(function, inner, arguments)
            case _:
                return node, ZERO

    return parts(expression)


def _has_complex(expression: Expression, complex_fields: frozenset[str]) -> bool:
    return any(
        (isinstance(n, Number) and isinstance(n.value, complex))
        or (isinstance(n, Field) and n.name in complex_fields)
        or (isinstance(n, Apply) and n.function in ("conj", "real", "imag"))
        for n in walk(expression)
    )


def _both(pair: Pair, make) -> Pair:  # pyright: ignore[reportMissingParameterType]
    a, b = pair
    return make(a), (ZERO if b == ZERO else make(b))


def _multiply(p: Pair, q: Pair) -> Pair:
    return p[0] * q[0] - p[1] * q[1], p[0] * q[1] + p[1] * q[0]


def _square(p: Pair) -> Expression:
    return power(p[0], Number(2)) + power(p[1], Number(2))


def _apply(function: str, p: tuple[Pair, ...], written: tuple[Expression, ...]) -> Pair:
    match function:
        case "+" | "-":
            return call(function, p[0][0], p[1][0]), call(function, p[0][1], p[1][1])
        case "neg":
            return -p[0][0], -p[0][1]
        case "conj":
            return p[0][0], -p[0][1]
        case "real":
            return p[0][0], ZERO
        case "imag":
            return p[0][1], ZERO
        case "abs":
            return call("sqrt", _square(p[0])), ZERO
        case "*":
            return _multiply(*p)
        case "/":
            upper = _multiply(p[0], (p[1][0], -p[1][1]))
            below = _square(p[1])
            return upper[0] / below, upper[1] / below
        case "^":
            return _power(p[0], p[1], written)
        case "where":
            return (
                Apply("where", (p[0][0], p[1][0], p[2][0])),
                Apply("where", (p[0][0], p[1][1], p[2][1])),
            )
        case "exp":
            size = call("exp", p[0][0])
            return size * call("cos", p[0][1]), size * call("sin", p[0][1])
        case "sin" | "cos" | "sinh" | "cosh":
            return _trigonometric(function, *p[0])
        case _:
            raise ValueError(f"'{function}' is not available for complex arguments")


def _trigonometric(function: str, a: Expression, b: Expression) -> Pair:
    if function == "sin":
        return (
            call("sin", a) * call("cosh", b),
            call("cos", a) * call("sinh", b),
        )
    if function == "cos":
        return (
            call("cos", a) * call("cosh", b),
            -call("sin", a) * call("sinh", b),
        )
    if function == "sinh":
        return (
            call("sinh", a) * call("cos", b),
            call("cosh", a) * call("sin", b),
        )
    return call("cosh", a) * call("cos", b), call("sinh", a) * call("sin", b)


def _power(base: Pair, exponent: Pair, written: tuple[Expression, ...]) -> Pair:
    n = exponent[0]
    if not isinstance(n, Number) or exponent[1] != ZERO or n.value.real % 1:
        raise ValueError("a complex base needs a constant integer exponent")
    count = int(n.value.real)
    if abs(count) > MAX_POWER:
        raise ValueError(f"a complex base needs an exponent of at most {MAX_POWER}")
    result: Pair = (ONE, ZERO)
    for _ in range(abs(count)):
        result = _multiply(result, base)
    if count < 0:
        below = _square(result)
        result = (result[0] / below, -result[1] / below)
    return result
