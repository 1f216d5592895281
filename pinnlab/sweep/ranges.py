"""Ranges of numbers: even steps between two ends, or any number between them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pinnlab.errors import ProblemError
from pinnlab.sweep.values import is_number


LARGEST = 100_000
"""The most combinations, steps of a range, or runs of a design."""

SCALES = ("lin", "log")


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`, on a logarithmic scale if `log`.

    `whole`: both ends were written as integers. The ends may be in either order.
    """

    low: float
    high: float
    log: bool
    whole: bool

    def at(self, share: float) -> float:
        """The number at a share of the way, 0 to 1."""
        if share in (0, 1):
            return self.high if share else self.low
        if self.log:
            return self.low ** (1 - share) * self.high**share
        return self.low + (self.high - self.low) * share

    def steps(self, count: int) -> tuple[int | float, ...]:
        """Even steps with both ends; near integers are integers if `whole`."""
        return tuple(_tidy(self.at(i / (count - 1)), self.whole) for i in range(count))

    def drawn(self, share: float) -> int | float:
        """The number at a share, 0 to below 1, for draws; integers only if `whole`."""
        if not self.whole:
            return _tidy(self.at(share), False)
        low, high = sorted((round(self.low), round(self.high)))
        # So that the ends are as likely as what is between them.
        wide = Range(low - 0.5, high + 0.5, self.log, False)
        return min(max(round(wide.at(share)), low), high)


def read_range(table: Mapping[str, object], where: str) -> tuple[Range, int | None]:
    """A range and its number of steps, None where `n` is missing.

    Raises `ProblemError` for what is no `{ lin = [a, b] }` or `{ log = [a, b] }`.
    """
    kinds = [k for k in table if k in SCALES]
    if len(kinds) != 1 or not set(table) <= {kinds[0], "n"}:
        message = (
            "expected { lin = [a, b], n = 5 } or { log = [a, b], n = 5 }, found "
            f"{', '.join(table) or 'nothing'}"
        )
        raise ProblemError(message, key=where)
    kind, ends, n = kinds[0], table[kinds[0]], table.get("n")
    if "n" in table and (type(n) is not int or not 2 <= n <= LARGEST):
        raise ProblemError(f"n must be 2 to {LARGEST}, found {n!r}", key=where)
    if not isinstance(ends, list) or len(ends) != 2 or not all(map(is_number, ends)):
        raise ProblemError(f"expected two numbers, found {ends!r}", key=where)
    a, b = (float(e) for e in ends)
    if a == b or (kind == "log" and min(a, b) <= 0):
        need = "two different numbers" + (" above 0" if kind == "log" else "")
        raise ProblemError(f"{kind} needs {need}, found {ends!r}", key=where)
    whole = all(isinstance(e, int) for e in ends)
    return Range(a, b, kind == "log", whole), n if isinstance(n, int) else None


def _tidy(value: float, whole: bool) -> int | float:
    """The value to 12 digits: 0.01, not 0.010000000000000002."""
    if whole and abs(value - round(value)) <= 1e-9 * abs(value):
        return round(value)
    return float(f"{value:.12g}")
