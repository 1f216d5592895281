"""The words of an equation: numbers, names, symbols and where each stands."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from pinnlab.errors import ProblemError, quoted


MAX_DIGITS = 100
MAX_NAME = 64
MAX_TOKENS = 20_000

SYMBOLS = (
    "**", "==", "!=", "<=", ">=", "<", ">", "=",
    "+", "-", "*", "/", "^", "(", ")", "[", "]", ",",
)  # fmt: skip
KEYWORDS = frozenset({"and", "or", "not"})

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[jJ]?")
_NAME = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_SYMBOL = re.compile("|".join(re.escape(s) for s in SYMBOLS))
_TYPOGRAPHIC = {
    "\N{MINUS SIGN}": "-",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=",
    "\N{MIDDLE DOT}": "*",
    "\N{DOT OPERATOR}": "*",
    "\N{MULTIPLICATION SIGN}": "*",
}
_ADVICE = {
    "\N{SUPERSCRIPT TWO}": "write ^2",
    "\N{SUPERSCRIPT THREE}": "write ^3",
    "\N{SQUARE ROOT}": "write sqrt(...)",
    "\N{PARTIAL DIFFERENTIAL}": "write dx(u)",
    "\N{NABLA}": "write grad(u), div(v) or lap(u)",
    "\N{INTEGRAL}": "write integral(u, x)",
    ";": "write one equation in each text",
    "{": "write ( )",
    "}": "write ( )",
    ".": "a number is written 0.5 or .5; names have no dots",
    "&": "write and",
    "|": "write or, or abs(...)",
    "!": "write not, or !=",
    "%": "there is no remainder operator",
}


@dataclass(frozen=True)
class Token:
    """A word of the text and its column; `number` is the value of a number."""

    kind: Literal["number", "name", "symbol", "text", "end"]
    text: str
    column: int
    number: float | complex = 0.0

    def is_symbol(self, *symbols: str) -> bool:
        """Whether the token is one of these symbols."""
        return self.kind == "symbol" and self.text in symbols


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of the text, the last one of kind `end`."""
    tokens: list[Token] = []
    column = _skip(text, 0)
    while column < len(text):
        token, column = _token(text, column)
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise ProblemError(
                f"the text has more than {MAX_TOKENS} words",
                text=text,
                column=token.column,
            )
        column = _skip(text, column)
    tokens.append(Token("end", "", len(text.rstrip())))
    return tuple(tokens)


def names_in(text: str) -> frozenset[str]:
    """The names that the text uses, whatever they mean."""
    return frozenset(t.text for t in tokenize(text) if t.kind == "name")


def _skip(text: str, column: int) -> int:
    found = _SPACE.match(text, column)
    return found.end() if found else column


def _token(text: str, column: int) -> tuple[Token, int]:
    """The token that starts at `column`, and the column behind it."""
    if found := _NUMBER.match(text, column):
        number = _number(found.group(), text, column)
        return Token("number", found.group(), column, number), found.end()
    if found := _NAME.match(text, column):
        name = _name(found.group(), text, column)
        kind = "symbol" if name in KEYWORDS else "name"
        return Token(kind, name, column), column + len(name)
    if found := _SYMBOL.match(text, column):
        return Token("symbol", found.group(), column), found.end()
    if found := _QUOTED.match(text, column):
        return Token("text", found.group()[1:-1], column), found.end()
    character = text[column]
    if character in _TYPOGRAPHIC:
        return Token("symbol", _TYPOGRAPHIC[character], column), column + 1
    raise _unexpected(text, column)


def _unexpected(text: str, column: int) -> ProblemError:
    return ProblemError(
        f"unexpected character {text[column]!r}",
        text=text,
        column=column,
        hint=_ADVICE.get(text[column]),
    )


def _name(word: str, text: str, column: int) -> str:
    """The longest start of `word` that is a name: x in x\N{SUPERSCRIPT TWO}."""
    name = word[: MAX_NAME + 1]
    while name and not name.isidentifier():
        name = name[:-1]
    if not name:
        raise _unexpected(text, column)
    if len(name) > MAX_NAME:
        raise ProblemError(
            f"the name {quoted(word)} has more than {MAX_NAME} characters",
            text=text,
            column=column,
        )
    return name


def _number(word: str, text: str, column: int) -> float | complex:
    if len(word) > MAX_DIGITS:
        raise ProblemError(
            f"the number {quoted(word)} has more than {MAX_DIGITS} digits",
            text=text,
            column=column,
        )
    value = float(word.rstrip("jJ"))
    if math.isinf(value):
        raise ProblemError(
            f"the number {word} is too large (the largest is about 1.8e308)",
            text=text,
            column=column,
        )
    return complex(0.0, value) if word[-1] in "jJ" else value
