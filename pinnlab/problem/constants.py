"""Constant expressions: values of parameters and bounds, by a small safe evaluator."""

import cmath
import math
import reprlib
from collections.abc import Callable, Mapping

from pinnlab.equation.expression import (
    Apply,
    Expression,
    Number,
    Parameter,
    children,
    walk,
)
from pinnlab.equation.format import format_expression
from pinnlab.equation.parser import parse_expression
from pinnlab.equation.scope import CONSTANTS, Scope
from pinnlab.errors import ProblemError, located
from pinnlab.problem.order import reading_order


def constant(text: object, scope: Scope, values: Mapping[str, float]) -> float:
    """The value of a number or a text such as "pi/2".

    Raises `ProblemError` for text that is not constant, not real or not finite.
    """
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ProblemError(
            f"expected a number or a constant expression, found {reprlib.repr(text)}"
        )
    if isinstance(text, str):
        value = evaluate(parse_expression(text, scope), values, text)
    else:
        value = _number(text)
    if isinstance(value, complex):
        raise ProblemError("expected a real number", text=str(text), column=0)
    if not math.isfinite(value):
        raise ProblemError(f"the value is {value}, not a finite number")
    return value


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ProblemError("the number is too large (at most 1.8e308)") from None


def parameter_values(table: Mapping[str, object]) -> dict[str, float]:
    """Every parameter's value; texts may use other parameters, in any order."""
    scope = Scope(parameters=tuple(table))
    values: dict[str, float] = {}
    for name in reading_order(table, "parameters"):
        with located(key=f"parameters.{name}"):
            values[name] = constant(table[name], scope, values)
    return {name: values[name] for name in table}


def check_constants(node: Expression, values: Mapping[str, float]) -> None:
    """Raises `ProblemError` where a constant part has no finite value: 10^(10^10)."""
    constants = {n for n in walk(node) if _is_constant(n)}
    for part in walk(node):
        if isinstance(part, Apply) and part.function == "/":
            below = part.arguments[1]
            if below in constants and evaluate(below, values, None) == 0:
                raise ProblemError(
                    f"division by zero: {format_expression(below)[:60]} is 0"
                )
    inner = {c for n in constants for c in children(n)}
    for part in constants - inner:
        value = evaluate(part, values, None)
        if not cmath.isfinite(value):
            message = f"the constant {format_expression(part)[:60]} is not finite"
            raise ProblemError(message)


def _is_constant(node: Expression) -> bool:
    return all(isinstance(n, Number | Parameter | Apply) for n in walk(node))


def evaluate(
    node: Expression, values: Mapping[str, float], text: str | None
) -> float | complex:
    """The number that a constant expression means, in floating point."""
    try:
        return _value(node, values)
    except OverflowError:
        message = "the value is too large (at most 1.8e308)"
    except ZeroDivisionError:
        message = "division by zero"
    except (ValueError, TypeError) as error:
        message = f"the value does not exist: {error}"
    part = f"{format_expression(node)[:60]}: " if text is None else ""
    raise ProblemError(part + message, text=text, column=None if text is None else 0)


def _value(node: Expression, values: Mapping[str, float]) -> float | complex:
    match node:
        case Number(value):
            return value if isinstance(value, complex) else float(value)
        case Parameter(name):
            return values[name] if name in values else CONSTANTS[name]
        case Apply(function, arguments):
            if function == "where":
                chosen = arguments[1] if _value(arguments[0], values) else arguments[2]
                return _value(chosen, values)
            found = [_value(a, values) for a in arguments]
            if any(isinstance(v, complex) for v in found) and function in _COMPLEX:
                return _COMPLEX[function](*found)
            return _OPERATIONS[function](*found)
        case _:
            raise ValueError("only numbers, parameters and functions of them")


def _power(a: complex, b: complex) -> float | complex:
    value = a**b
    if isinstance(value, complex) and not isinstance(a, complex):
        raise ValueError("a negative number to a power that is not an integer")
    return value


def _sign(a: float) -> float:
    return float((a > 0) - (a < 0))


_OPERATIONS: dict[str, Callable[..., float | complex]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "^": _power, "neg": lambda a: -a,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": lambda a: not a,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin,
    "acos": math.acos, "atan": math.atan, "atan2": math.atan2, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "exp": math.exp, "log": math.log,
    "sqrt": math.sqrt, "abs": lambda a: abs(a), "min": min, "max": max, "sign": _sign,
    "heaviside": lambda a: 0.5 * (1 + _sign(a)), "erf": math.erf,
    "conj": lambda a: a.conjugate(), "real": lambda a: a.real, "imag": lambda a: a.imag,
}  # fmt: skip
_COMPLEX: dict[str, Callable[..., complex]] = {
    "sin": cmath.sin, "cos": cmath.cos, "exp": cmath.exp, "log": cmath.log,
    "sqrt": cmath.sqrt, "sinh": cmath.sinh, "cosh": cmath.cosh, "tanh": cmath.tanh,
}  # fmt: skip
