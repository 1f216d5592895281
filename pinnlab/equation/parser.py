"""A Pratt parser: text of an equation to an expression in written form.

Precedence, low to high: `or`, `and`, `not`, comparisons, `+ -`, `* /`, unary minus,
`^` (right-associative, so that -x^2 is -(x^2)), call.
"""

from dataclasses import dataclass, replace

from pinnlab.equation.binding import bound_names
from pinnlab.equation.expression import (
    LOGIC,
    RELATIONS,
    Apply,
    Expression,
    Number,
    children,
)
from pinnlab.equation.scope import Scope, Value, Vector, is_boolean
from pinnlab.equation.tokens import Token, tokenize
from pinnlab.equation.vocabulary import apply_name, unknown_name
from pinnlab.errors import ProblemError


MAX_NESTING = 60
MAX_DEPTH = 120
MAX_SIZE = 20_000

BINDING = {
    "or": 1, "and": 2,
    "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "^": 8, "**": 8,
}  # fmt: skip
NOT, UNARY = 3, 7


def parse_expression(text: str, scope: Scope) -> Expression:
    """The value of a text. Raises `ProblemError` with the column of what is wrong."""
    value = parse_value(text, scope)
    if isinstance(value, Vector):
        raise ProblemError(
            "the result is a vector; a number is needed here",
            text=text,
            column=0,
            hint="write div(...), dot(..., ...) or one text for each component",
        )
    return value


def parse_value(text: str, scope: Scope) -> Value:
    """The same where a vector is allowed: in a definition."""
    parser = Parser(text, tokenize(text), scope)
    value = parser.expression(0)
    parser.expect_end()
    return value


def parse_condition(text: str, scope: Scope) -> Expression:
    """A text that is true or false, such as `y < 0.5 and x > 0`."""
    parser = Parser(text, tokenize(text), scope)
    value = parser.expression(0)
    parser.expect_end()
    if not is_boolean(value):
        raise ProblemError(
            "a comparison is needed here, such as y < 0.5", text=text, column=0
        )
    assert isinstance(value, Expression)
    return value


def parse_equation(text: str, scope: Scope) -> tuple[Expression, Expression]:
    """Both sides of `left = right`."""
    parser = Parser(text, tokenize(text), scope)
    start = parser.peek()
    left = parser.expression(0)
    if not parser.peek().is_symbol("="):
        parser.expect_end()
        compares = isinstance(left, Apply) and left.function == "=="
        hint = "write = where you wrote ==" if compares else None
        raise parser.error("an equation needs '=': left = right", parser.peek(), hint)
    parser.next()
    middle = parser.peek()
    right = parser.expression(0)
    if parser.peek().is_symbol("="):
        raise parser.error("an equation has one '=' only", parser.peek())
    parser.expect_end()
    return parser.scalar(left, start), parser.scalar(right, middle)


@dataclass
class Parser:
    """Where the parser stands in the tokens of a text."""

    text: str
    tokens: tuple[Token, ...]
    scope: Scope
    position: int = 0
    nesting: int = 0

    def __post_init__(self) -> None:
        self.measures: dict[int, tuple[Expression, int, int]] = {}

    def peek(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def next(self) -> Token:
        """The next token, taken."""
        token = self.tokens[self.position]
        self.position += 1
        return token

    def error(
        self, message: str, token: Token, hint: str | None = None
    ) -> ProblemError:
        """The error at a token."""
        return ProblemError(message, text=self.text, column=token.column, hint=hint)

    def expect(self, symbol: str) -> Token:
        """Take this symbol, or say what stands there instead."""
        token = self.peek()
        if not token.is_symbol(symbol):
            raise self.error(f"expected '{symbol}', found {_shown(token)}", token)
        return self.next()

    def coordinate(self) -> Token:
        """Take the name of a coordinate, or say which there are."""
        token = self.next()
        if token.kind != "name" or token.text not in self.scope.axes:
            names = ", ".join(self.scope.axes)
            raise self.error(f"expected a coordinate ({names})", token)
        return token

    def expect_end(self) -> None:
        """Nothing may be left."""
        token = self.peek()
        if token.kind != "end":
            hint = "write * for a product" if token.kind in ("name", "number") else None
            raise self.error(f"unexpected {_shown(token)}", token, hint)

    def expression(self, least: int) -> Value:
        """An expression of operators that bind at least this strongly."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.error(
                f"the text is nested more than {MAX_NESTING} deep", self.peek()
            )
        left = self.prefix()
        while True:
            token = self.peek()
            power = BINDING.get(token.text, 0) if token.kind == "symbol" else 0
            if power == 0 or power < least:
                break
            self.next()
            # ^ is right-associative, and its exponent may have a sign.
            right = self.expression(UNARY if power == 8 else power + 1)
            left = self.binary(token, left, right)
        self.nesting -= 1
        return left

    def prefix(self) -> Value:
        """A number, a name, a call, a sign or a parenthesis."""
        token = self.next()
        if token.kind == "number":
            return Number(token.number)
        if token.kind == "name":
            return self.named(token)
        if token.is_symbol("("):
            value = self.expression(0)
            self.expect(")")
            return value
        if token.is_symbol("-"):
            return self.unary("neg", token, self.expression(UNARY))
        if token.is_symbol("+"):
            return self.expression(UNARY)
        if token.is_symbol("not"):
            return self.unary("not", token, self.expression(NOT))
        raise self.error(f"expected a value, found {_shown(token)}", token)

    def named(self, token: Token) -> Value:
        """A name: a call if a parenthesis follows, else what the scope says."""
        if self.peek().is_symbol("("):
            return self.checked(apply_name(self, token), token)
        value = self.scope.resolve(token.text)
        if value is None:
            raise unknown_name(self, token)
        return value

    def inside(self, names: frozenset[str]) -> "Parser":
        """The same place in the text with more bound variables."""
        inner = replace(self, scope=self.scope.bind(names))
        inner.measures = self.measures
        return inner

    def bound_after(self) -> frozenset[str]:
        """Variables that the call starting here binds behind its first argument."""
        return bound_names(self.tokens, self.position)

    def unary(self, function: str, token: Token, value: Value) -> Value:
        """`-a` or `not a`."""
        if (function == "not") != is_boolean(value):
            raise self.error(_kind_message(function), token)
        if isinstance(value, Vector):
            negated = Vector(tuple(Apply("neg", (c,)) for c in value.components))
            return self.checked(negated, token)
        return self.checked(Apply(function, (value,)), token)

    def binary(self, token: Token, left: Value, right: Value) -> Value:
        """An infix operator, on numbers or vectors."""
        function = "^" if token.text == "**" else token.text
        logic = function in LOGIC
        if logic != is_boolean(left) or logic != is_boolean(right):
            raise self.error(_kind_message(function), token)
        if isinstance(left, Vector) or isinstance(right, Vector):
            return self.checked(self.vector(function, token, left, right), token)
        return self.checked(Apply(function, (left, right)), token)

    def vector(self, function: str, token: Token, left: Value, right: Value) -> Value:
        """Sums of vectors, and products and quotients with numbers."""
        if isinstance(left, Vector) and isinstance(right, Vector):
            if function not in ("+", "-"):
                message = f"'{function}' of two vectors: write dot(a, b)"
                raise self.error(message, token)
            pairs = zip(left.components, right.components, strict=True)
            return Vector(tuple(Apply(function, p) for p in pairs))
        if isinstance(left, Vector) and isinstance(right, Expression):
            if function in ("*", "/"):
                parts = left.components
                return Vector(tuple(Apply(function, (c, right)) for c in parts))
        elif isinstance(right, Vector) and isinstance(left, Expression):  # noqa: SIM102
            if function == "*":
                return Vector(tuple(Apply("*", (left, c)) for c in right.components))
        raise self.error(f"'{function}' between a vector and a number", token)

    def scalar(self, value: Value, token: Token) -> Expression:
        """The value as a number, or an error for a vector or a truth value."""
        if isinstance(value, Vector):
            raise self.error(
                "a vector stands where a number is needed", token,
                "write div(...), dot(..., ...) or one equation for each component",
            )  # fmt: skip
        if is_boolean(value):
            raise self.error(
                "a comparison stands where a number is needed", token,
                "write where(condition, a, b)",
            )  # fmt: skip
        return value

    def checked(self, value: Value, token: Token) -> Value:
        """The value, or an error if its tree is too large to be worked with."""
        parts = value.components if isinstance(value, Vector) else (value,)
        for part in parts:
            depth, size = self.measure(part)
            if size > MAX_SIZE:
                message = f"the expression is more than {MAX_SIZE} operations long"
                raise self.error(message, token)
            if depth > MAX_DEPTH:
                raise self.error(
                    f"the expression is more than {MAX_DEPTH} operations deep", token,
                    "use parentheses to group a long sum",
                )  # fmt: skip
        return value

    def measure(self, node: Expression) -> tuple[int, int]:
        """The height of the tree and the number of its nodes."""
        # By identity: definitions share nodes, and comparing trees costs their size.
        known = self.measures.get(id(node))
        if known is None:
            below = [self.measure(c) for c in children(node)]
            depth = 1 + max((d for d, _ in below), default=0)
            known = (node, depth, 1 + sum(s for _, s in below))
            self.measures[id(node)] = known
        return known[1:]


def _kind_message(function: str) -> str:
    if function in LOGIC:
        return f"'{function}' needs comparisons on both sides, such as x < 0.5"
    if function in RELATIONS:
        return "comparisons cannot be chained: write a < b and b < c"
    return f"'{function}' of a comparison: write where(condition, a, b)"


def _shown(token: Token) -> str:
    return "the end of the text" if token.kind == "end" else f"'{token.text}'"
