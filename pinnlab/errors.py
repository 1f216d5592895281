"""Errors that help: what is wrong, where, and what would be accepted."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


WINDOW = 88
"""Characters of a long text that are shown around the caret."""


class ProblemError(ValueError):
    """A problem that cannot be solved as it is written.

    **Arguments:**

    - `message`: what was found and what would be accepted.
    - `file`: the problem file, None for a problem built in Python.
    - `key`: the path of the key, as in `equations.momentum`.
    - `text`: the text of the value that is wrong.
    - `column`: index into `text` where the caret goes.
    - `hint`: one line of advice.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        key: str | None = None,
        text: str | None = None,
        column: int | None = None,
        hint: str | None = None,
    ):
        ValueError.__init__(self, message)
        self.message = message
        self.file = file
        self.key = key
        self.text = text
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        place = [_printable(p) for p in (self.file, self.key) if p]
        lines = [": ".join([*place, _printable(self.message)])]
        if self.text is not None:
            lines += _excerpt(self.text, self.column)
        if self.hint:
            lines.append(_printable(self.hint))
        return "\n".join(lines)


class Preempted(BaseException):
    """A run was asked to stop by the system, and can be continued with --resume."""


@contextmanager
def located(
    *, file: str | None = None, key: str | None = None, text: str | None = None
) -> Iterator[None]:
    """Adds the file, key or text to a `ProblemError` that does not have it yet."""
    try:
        yield
    except ProblemError as error:
        error.file = error.file or file
        error.key = error.key or key
        error.text = text if error.text is None else error.text
        raise


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The hint `did you mean '...'?` for a misspelled name, None without a match."""
    names = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name[:64].lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{names[found[0]]}'?" if found else None


def quoted(name: str) -> str:
    """The name in quotes, shortened where it is very long."""
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _excerpt(text: str, column: int | None) -> list[str]:
    """The line of `text` at `column`, and a caret below it."""
    start = text.rfind("\n", 0, column or 0) + 1
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)]
    caret = (column or 0) - start
    first = max(0, min(caret - WINDOW // 2, len(line) - WINDOW))
    head = "..." if first else ""
    tail = "..." if first + WINDOW < len(line) else ""
    lines = [f"  {head}{_printable(line[first : first + WINDOW])}{tail}"]
    if column is not None:
        lines.append(" " * (2 + len(head) + caret - first) + "^")
    return lines


def _printable(text: str) -> str:
    """The text with each control character as one visible character."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
