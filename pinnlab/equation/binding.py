"""Calls that give a coordinate another meaning: integral(u, x) and at(u, x = 0)."""

from typing import TYPE_CHECKING

from pinnlab.equation.expression import At, Expression, Integral
from pinnlab.equation.scope import RESERVED, signed
from pinnlab.equation.tokens import Token
from pinnlab.errors import quoted


if TYPE_CHECKING:
    from pinnlab.equation.parser import Parser


def bound_names(tokens: tuple[Token, ...], start: int) -> frozenset[str]:
    """Names followed by `= [` in the call whose arguments start at `start`."""
    found: set[str] = set()
    depth = 1
    for i in range(start, len(tokens) - 2):
        token = tokens[i]
        if token.is_symbol("(", "["):
            depth += 1
        elif token.is_symbol(")", "]"):
            depth -= 1
            if depth == 0:
                break
        elif (
            depth == 1
            and token.kind == "name"
            and tokens[i + 1].is_symbol("=")
            and tokens[i + 2].is_symbol("[")
        ):
            found.add(token.text)
    return frozenset(found)


def integral(parser: "Parser", token: Token) -> Expression:
    """integral(body, x), integral(body, s = [a, b]); several variables nest."""
    inner = parser.inside(parser.bound_after())
    start = inner.peek()
    body = inner.scalar(inner.expression(0), start)
    parser.position = inner.position
    ranges: list[tuple[str, Expression, Expression]] = []
    while parser.peek().is_symbol(","):
        parser.next()
        ranges.append(_range(parser))
    parser.expect(")")
    if not ranges:
        raise parser.error("integral() needs a variable: integral(u, x)", token)
    for name, lower, upper in reversed(ranges):
        body = Integral(body, name, lower, upper)
    return body


def _range(parser: "Parser") -> tuple[str, Expression, Expression]:
    axes = parser.scope.axes
    name = parser.next()
    if name.kind != "name":
        raise parser.error("expected a variable of integration", name)
    if name.text == "on":
        raise parser.error("integral(..., on = ...) is not supported yet", name)
    if not parser.peek().is_symbol("="):
        if name.text not in axes:
            message = (
                f"{quoted(name.text)} is no coordinate ({', '.join(axes)}): give its "
                f"range, integral(..., {name.text[:20]} = [0, 1])"
            )
            raise parser.error(message, name)
        lower, upper = axes[name.text]
        return name.text, signed(lower), signed(upper)
    _check_bound(parser, name)
    parser.next()
    parser.expect("[")
    outer, parser.scope = parser.scope, parser.scope.between(name.text)
    first = parser.peek()
    lower = parser.scalar(parser.expression(0), first)
    parser.expect(",")
    second = parser.peek()
    upper = parser.scalar(parser.expression(0), second)
    parser.expect("]")
    parser.scope = outer
    return name.text, lower, upper


def _check_bound(parser: "Parser", name: Token) -> None:
    """A variable of integration may hide a coordinate, but nothing else."""
    for kind, names in parser.scope.kinds().items():
        if kind in ("fields", "parameters", "definitions") and name.text in names:
            message = f"'{name.text}' is one of the {kind}: integrate over another name"
            raise parser.error(message, name)
    if name.text in RESERVED:
        raise parser.error(f"'{name.text}' is a word of the language", name)


def trace(parser: "Parser", token: Token) -> Expression:
    """at(body, x = 0, t = t - 1)."""
    start = parser.peek()
    body = parser.scalar(parser.expression(0), start)
    where: list[tuple[str, Expression]] = []
    while parser.peek().is_symbol(","):
        parser.next()
        name = parser.coordinate()
        parser.expect("=")
        inner = parser.peek()
        outer, parser.scope = parser.scope, parser.scope.between(name.text)
        where.append((name.text, parser.scalar(parser.expression(0), inner)))
        parser.scope = outer
    parser.expect(")")
    if not where:
        raise parser.error("at() needs a place: at(u, x = 0)", token)
    return At(body, tuple(where))
