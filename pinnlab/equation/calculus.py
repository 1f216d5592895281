"""Symbolic derivatives, and the expanded form in which only `Partial`s remain."""

import math
from collections.abc import Callable, Mapping

from pinnlab.equation.expression import (
    LOGIC,
    ONE,
    RELATIONS,
    ZERO,
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
    add,
    call,
    divide,
    multiply,
    power,
    rebuild,
)


MAX_OPERATIONS = 2_000
CONSTANTS = {"pi": math.pi, "e": math.e}


def expand(
    expression: Expression,
    coordinates: tuple[str, ...],
    normal: Mapping[str, Expression] | None = None,
) -> Expression:
    """The expanded form: derivatives carried out, fields replaced by `Partial`s.

    **Arguments:**

    - `expression`: in written form.
    - `coordinates`: the problem's coordinates, in order.
    - `normal`: the components of the outward normal by coordinate, on an edge.

    **Returns:** an equal expression without `Field`, `Derivative`,
    `NormalDerivative` and `At` nodes.

    Raises `ValueError` for a normal derivative where there is no normal.
    """
    return _Expander(coordinates, normal).expand(expression, 0)


class _Expander:
    """One expansion: the coordinates, the normal and the memory of what was done."""

    def __init__(
        self, coordinates: tuple[str, ...], normal: Mapping[str, Expression] | None
    ):
        self.coordinates = coordinates
        self.normal = normal
        self.point = tuple(Coordinate(c) for c in coordinates)
        self.done: dict[tuple[Expression, int], Expression] = {}

    def expand(self, node: Expression, depth: int) -> Expression:
        key = (node, depth)
        if key not in self.done:
            self.done[key] = self._expand(node, depth)
        return self.done[key]

    def _expand(self, node: Expression, depth: int) -> Expression:
        match node:
            case Field(name):
                return Partial(name, (0,) * len(self.coordinates), self.point)
            case Parameter(name) if name in CONSTANTS:
                return Number(CONSTANTS[name])
            case Derivative(operand, names):
                result = self.expand(operand, depth)
                for name in names:
                    result = differentiate(result, name)
                return result
            case NormalDerivative(operand):
                if self.normal is None:
                    raise ValueError("a normal derivative needs a face")
                inner, result = self.expand(operand, depth), ZERO
                for name, component in self.normal.items():
                    result = result + component * differentiate(inner, name)
                return result
            case At(body, where):
                new = {name: self.expand(e, depth) for name, e in where}
                return substitute(self.expand(body, depth), new)
            case Integral(body, variable, lower, upper):
                # Bound variables are renamed by depth, so that none is captured.
                bound = f"${depth}"
                inner = self.expand(body, depth + 1)
                return Integral(
                    substitute(inner, {variable: Coordinate(bound)}),
                    bound,
                    self.expand(lower, depth),
                    self.expand(upper, depth),
                )
            case _:
                return rebuild(node, lambda child: self.expand(child, depth))


def substitute(node: Expression, new: Mapping[str, Expression]) -> Expression:
    """The expanded expression with coordinates replaced, locations included."""
    done: dict[Expression, Expression] = {}

    def change(node: Expression) -> Expression:
        if node not in done:
            match node:
                case Coordinate(name):
                    done[node] = new.get(name, node)
                case _:
                    done[node] = rebuild(node, change)
        return done[node]

    return change(node)


def differentiate(node: Expression, coordinate: str) -> Expression:
    """The derivative of an expanded expression with respect to a coordinate.

    Derivatives of `Partial`s follow the chain rule through their locations, those of
    integrals the Leibniz rule.
    """
    done: dict[Expression, Expression] = {}

    def derivative(node: Expression) -> Expression:
        if node not in done:
            if len(done) > MAX_OPERATIONS:
                raise ValueError(
                    f"a derivative by {coordinate} of more than {MAX_OPERATIONS} "
                    "operations: simplify what is differentiated"
                )
            done[node] = _derivative(node, coordinate, derivative)
        return done[node]

    return derivative(node)


def _derivative(
    node: Expression, coordinate: str, recurse: Callable[[Expression], Expression]
) -> Expression:
    match node:
        case Coordinate(name):
            return ONE if name == coordinate else ZERO
        case Partial(field, orders, at):
            total: Expression = ZERO
            for i, location in enumerate(at):
                raised = (*orders[:i], orders[i] + 1, *orders[i + 1 :])
                total = total + recurse(location) * Partial(field, raised, at)
            return total
        case Integral(body, variable, lower, upper):
            inside = recurse(body)
            total = ZERO if inside == ZERO else Integral(inside, variable, lower, upper)
            total = total + recurse(upper) * substitute(body, {variable: upper})
            return total - recurse(lower) * substitute(body, {variable: lower})
        case Apply(function, arguments):
            if function in RELATIONS or function in LOGIC:
                return ZERO
            inner = tuple(recurse(a) for a in arguments)
            if all(d == ZERO for d in inner):
                return ZERO
            return _chain(function, arguments, inner)
        case _:
            return ZERO


def _chain(
    function: str, a: tuple[Expression, ...], d: tuple[Expression, ...]
) -> Expression:
    """The derivative of `function(*a)` when the arguments have the derivatives d."""
    match function:
        case "+":
            return add(*d)
        case "-":
            return d[0] - d[1]
        case "neg":
            return -d[0]
        case "*":
            return d[0] * a[1] + a[0] * d[1]
        case "/":
            if d[1] == ZERO:
                return divide(d[0], a[1])
            return divide(d[0] * a[1] - a[0] * d[1], power(a[1], Number(2)))
        case "^":
            if d[1] == ZERO:
                return a[1] * power(a[0], a[1] - ONE) * d[0]
            logarithm = d[1] * call("log", a[0])
            if d[0] == ZERO:
                return power(*a) * logarithm
            return power(*a) * (logarithm + a[1] * d[0] / a[0])
        case "where":
            return Apply("where", (a[0], d[1], d[2]))
        case "min" | "max":
            first = Apply("<" if function == "min" else ">", a)
            return Apply("where", (first, d[0], d[1]))
        case "atan2":
            square = power(a[0], Number(2)) + power(a[1], Number(2))
            return (a[1] * d[0] - a[0] * d[1]) / square
        case "sign" | "heaviside":
            return ZERO
        case _:
            return multiply(_outer(function, a[0]), d[0])


def _outer(function: str, a: Expression) -> Expression:
    """The derivative of a function of one variable, at the argument."""
    one = ONE
    two = Number(2)
    rules: dict[str, Callable[[], Expression]] = {
        "sin": lambda: call("cos", a),
        "cos": lambda: -call("sin", a),
        "tan": lambda: one + power(call("tan", a), two),
        "asin": lambda: one / call("sqrt", one - power(a, two)),
        "acos": lambda: -one / call("sqrt", one - power(a, two)),
        "atan": lambda: one / (one + power(a, two)),
        "sinh": lambda: call("cosh", a),
        "cosh": lambda: call("sinh", a),
        "tanh": lambda: one - power(call("tanh", a), two),
        "exp": lambda: call("exp", a),
        "log": lambda: one / a,
        "sqrt": lambda: one / (2 * call("sqrt", a)),
        "abs": lambda: call("sign", a),
        "erf": lambda: 2 / math.sqrt(math.pi) * call("exp", -power(a, two)),
    }
    return rules[function]()
