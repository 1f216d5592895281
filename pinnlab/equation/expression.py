"""The expression tree: what an equation says, as small frozen nodes.

Two forms share the node types. The *written* form is what the parser gives: it has
`Field`, `Derivative`, `NormalDerivative` and `At` nodes and reads like the paper. The
*expanded* form (`pinnlab.equation.calculus.expand`) has none of these: every use of a
field is a `Partial`, a partial derivative of the field at a location.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform


class Expression:
    """A node of the tree. Nodes are immutable, hashable and compare by structure.

    Arithmetic operators build new nodes and fold constants, so that `0 * a`, `a + 0`
    and `2 * 3` do not survive.
    """

    def __add__(self, other: "Expression | complex") -> "Expression":
        return add(self, as_expression(other))

    def __radd__(self, other: complex) -> "Expression":
        return add(as_expression(other), self)

    def __sub__(self, other: "Expression | complex") -> "Expression":
        return add(self, negate(as_expression(other)))

    def __rsub__(self, other: complex) -> "Expression":
        return add(as_expression(other), negate(self))

    def __mul__(self, other: "Expression | complex") -> "Expression":
        return multiply(self, as_expression(other))

    def __rmul__(self, other: complex) -> "Expression":
        return multiply(as_expression(other), self)

    def __truediv__(self, other: "Expression | complex") -> "Expression":
        return divide(self, as_expression(other))

    def __rtruediv__(self, other: complex) -> "Expression":
        return divide(as_expression(other), self)

    def __pow__(self, other: "Expression | complex") -> "Expression":
        return power(self, as_expression(other))

    def __neg__(self) -> "Expression":
        return negate(self)


def _digest(self: Any) -> bytes:
    """What the node is, in 16 bytes, computed bottom-up once.

    Comparing trees that share nodes member by member would take exponential time.
    """
    known = self.__dict__.get("_digest")
    if known is None:
        total = hashlib.blake2b(type(self).__name__.encode(), digest_size=16)
        for f in dataclasses.fields(self):
            total.update(_bytes(getattr(self, f.name)))
        known = total.digest()
        object.__setattr__(self, "_digest", known)
    return known


def _bytes(value: object) -> bytes:
    if isinstance(value, Expression):
        return _digest(value)
    if isinstance(value, tuple):
        return b"(" + b",".join(_bytes(v) for v in value) + b")"
    if isinstance(value, int | float | complex):
        # 2, 2.0 and 2 + 0j are one number, and so are 0.0 and -0.0.
        return repr(complex(value) + 0).encode()
    return repr(value).encode()


def _equal(self: Any, other: object) -> bool:
    return self is other or (
        isinstance(other, Expression) and _digest(self) == _digest(other)
    )


_Node = TypeVar("_Node", bound=type)


@dataclass_transform(frozen_default=True)
def _node(cls: _Node) -> _Node:
    cls.__hash__ = lambda self: hash(_digest(self))  # pyright: ignore[reportAttributeAccessIssue]
    cls.__eq__ = _equal  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass(frozen=True, eq=False)(cls)


@_node
class Number(Expression):
    """A constant, real or complex."""

    value: float | complex


@_node
class Coordinate(Expression):
    """A coordinate of the point, or the bound variable of an integral."""

    name: str


@_node
class Parameter(Expression):
    """A named constant of the problem; its value is given at evaluation."""

    name: str


@_node
class Field(Expression):
    """The value of an unknown field at the point (written form)."""

    name: str


@_node
class Derivative(Expression):
    """`operand` differentiated once by each name in `coordinates` (written form)."""

    operand: Expression
    coordinates: tuple[str, ...]


@_node
class NormalDerivative(Expression):
    """The derivative of `operand` along the outward normal (written form)."""

    operand: Expression


@_node
class At(Expression):
    """`body` with coordinates replaced: a trace, a delay, a value (written form)."""

    body: Expression
    where: tuple[tuple[str, Expression], ...]


@_node
class Integral(Expression):
    """The integral of `body` over `variable` from `lower` to `upper`.

    In `body`, `Coordinate(variable)` is the bound variable.
    """

    body: Expression
    variable: str
    lower: Expression
    upper: Expression


@_node
class Apply(Expression):
    """A function or operator of `FUNCTIONS` applied to its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@_node
class Partial(Expression):
    """A partial derivative of a field at a location (expanded form).

    `orders[i]` is the order in the i-th coordinate of the problem, and `at[i]` is the
    expression of the i-th coordinate of the location; `Coordinate(name_i)` itself
    where the location is the point.
    """

    field: str
    orders: tuple[int, ...]
    at: tuple[Expression, ...]


ZERO = Number(0.0)
ONE = Number(1.0)


def as_expression(value: Expression | complex) -> Expression:
    """`value` itself, or a `Number` of it."""
    return value if isinstance(value, Expression) else Number(value)


# ---------------------------------------------------------------- constructors


def add(a: Expression, b: Expression) -> Expression:
    """a + b, with constants folded."""
    if a == ZERO:
        return b
    if b == ZERO:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value + b.value)
    if isinstance(b, Apply) and b.function == "neg":
        return ZERO if b.arguments[0] == a else Apply("-", (a, b.arguments[0]))
    if isinstance(a, Apply) and a.function == "neg" and a.arguments[0] == b:
        return ZERO
    if isinstance(b, Number) and not isinstance(b.value, complex) and b.value < 0:
        return Apply("-", (a, Number(-b.value)))
    return Apply("+", (a, b))


def multiply(a: Expression, b: Expression) -> Expression:
    """a * b, with constants folded."""
    if a == ZERO or b == ZERO:
        return ZERO
    if a == ONE:
        return b
    if b == ONE:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value * b.value)
    if isinstance(b, Number):
        a, b = b, a
    if isinstance(a, Number) and a.value == -1:
        return negate(b)
    if isinstance(a, Apply) and a.function == "neg":
        return negate(multiply(a.arguments[0], b))
    if isinstance(b, Apply) and b.function == "neg":
        return negate(multiply(a, b.arguments[0]))
    return Apply("*", (a, b))


def divide(a: Expression, b: Expression) -> Expression:
    """a / b, with constants folded; a division by the constant 0 is kept."""
    if a == ZERO and b != ZERO:
        return ZERO
    if b == ONE:
        return a
    if isinstance(b, Number) and b.value != 0:
        return multiply(Number(1 / b.value), a)
    return Apply("/", (a, b))


def power(a: Expression, b: Expression) -> Expression:
    """a ^ b, with the exponents 0 and 1 folded."""
    if b == ZERO:
        return ONE
    if b == ONE:
        return a
    if b == Number(2) and isinstance(a, Apply) and a.function == "sqrt":
        return a.arguments[0]
    return Apply("^", (a, b))


def negate(a: Expression) -> Expression:
    """-a, with double signs removed."""
    if isinstance(a, Number):
        return Number(-a.value)
    if isinstance(a, Apply) and a.function == "neg":
        return a.arguments[0]
    if isinstance(a, Apply) and a.function == "-":
        return Apply("-", (a.arguments[1], a.arguments[0]))
    return Apply("neg", (a,))


def call(function: str, *arguments: Expression) -> Expression:
    """A function of `FUNCTIONS` by name, with the constructors' folding."""
    fold: dict[str, Callable[..., Expression]] = {
        "+": add,
        "-": lambda a, b: add(a, negate(b)),
        "*": multiply,
        "/": divide,
        "^": power,
        "neg": negate,
    }
    if function in fold:
        return fold[function](*arguments)
    return Apply(function, arguments)


# ------------------------------------------------------------------- traversal


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions of a node."""
    match node:
        case Apply(_, arguments):
            return arguments
        case Derivative(operand) | NormalDerivative(operand):
            return (operand,)
        case At(body, where):
            return (body, *(e for _, e in where))
        case Integral(body, _, lower, upper):
            return (body, lower, upper)
        case Partial(_, _, at):
            return at
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """Every distinct node of the tree, parents before children."""
    seen: set[Expression] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            yield current
            stack.extend(reversed(children(current)))


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with `change` applied to each direct sub-expression."""
    match node:
        case Apply(function, arguments):
            return call(function, *(change(a) for a in arguments))
        case Derivative(operand, coordinates):
            return Derivative(change(operand), coordinates)
        case NormalDerivative(operand):
            return NormalDerivative(change(operand))
        case At(body, where):
            return At(change(body), tuple((n, change(e)) for n, e in where))
        case Integral(body, variable, lower, upper):
            return Integral(change(body), variable, change(lower), change(upper))
        case Partial(field, orders, at):
            return Partial(field, orders, tuple(change(a) for a in at))
        case _:
            return node


def terms(node: Expression) -> tuple[Expression, ...]:
    """The summands of the node: `a + b - c` gives `(a, b, -c)`.

    A factor that holds no field is distributed: `k*(a + b)` gives `(k*a, k*b)`.
    """
    if isinstance(node, Apply) and node.function == "+":
        return terms(node.arguments[0]) + terms(node.arguments[1])
    if isinstance(node, Apply) and node.function == "-":
        return terms(node.arguments[0]) + tuple(
            negate(t) for t in terms(node.arguments[1])
        )
    if isinstance(node, Apply) and node.function == "neg":
        inner = terms(node.arguments[0])
        return tuple(negate(t) for t in inner) if len(inner) > 1 else (node,)
    if isinstance(node, Apply) and node.function in ("*", "/"):
        a, b = node.arguments
        if not _holds_field(b):
            return tuple(call(node.function, t, b) for t in terms(a))
        if node.function == "*" and not _holds_field(a):
            return tuple(multiply(a, t) for t in terms(b))
    return (node,)


def _holds_field(node: Expression) -> bool:
    return any(isinstance(n, Field | Partial) for n in walk(node))


# ------------------------------------------------------------------ vocabulary

ARITHMETIC = {"+": 2, "-": 2, "*": 2, "/": 2, "^": 2, "neg": 1}
RELATIONS = {"<": 2, "<=": 2, ">": 2, ">=": 2, "==": 2, "!=": 2}
LOGIC = {"and": 2, "or": 2, "not": 1}
FUNCTIONS = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2,
    "sinh": 1, "cosh": 1, "tanh": 1, "exp": 1, "log": 1, "sqrt": 1, "abs": 1,
    "min": 2, "max": 2, "sign": 1, "heaviside": 1, "erf": 1, "where": 3,
    "conj": 1, "real": 1, "imag": 1,
}  # fmt: skip
"""Name to number of arguments, for functions a problem file may call."""

ARITIES = ARITHMETIC | RELATIONS | LOGIC | FUNCTIONS
