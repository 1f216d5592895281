"""The axes of an experiment: lists and ranges, zipped groups, exclusions."""

import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pinnlab.errors import ProblemError, quoted
from pinnlab.sweep.ranges import LARGEST, is_number, read_range


Value = str | int | float | bool
Settings = dict[str, Value]
Fixed = dict[str, Value | list[Value]]
"""What all runs share, which may be lists too."""

COMPARISONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Axis:
    """Settings that vary together: one for an axis, several for a zipped group.

    - `keys`: what `--set` calls them, or `seed`, `target`, `budget`, `problem`.
    - `values`: a row for each step, a value for each key.
    - `name`: of the dimension where the rows are draws; else the keys name it.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    name: str = ""


@dataclass(frozen=True)
class Exclusion:
    """Combinations that are left out: those that meet all the tests."""

    tests: tuple[tuple[str, str, tuple[Value, ...]], ...]

    def holds(self, settings: Mapping[str, Value]) -> bool:
        """Whether a combination is left out."""
        return all(_meets(settings[key], how, v) for key, how, v in self.tests)


def read_axis(key: str, value: object) -> Axis:
    """The axis that a list or a range describes."""
    where = f"axes.{key}"
    return Axis((key,), tuple((v,) for v in read_values(value, where)))


def read_group(table: Mapping[str, object], where: str) -> Axis:
    """An axis of settings that step together, as in `[[zip]]`."""
    if len(table) < 2:
        raise ProblemError("expected a table of two or more lists", key=where)
    columns = [read_values(v, f"{where}.{k}") for k, v in table.items()]
    if len({len(c) for c in columns}) > 1:
        sizes = ", ".join(f"{k}: {len(c)}" for k, c in zip(table, columns, strict=True))
        raise ProblemError(f"the lists differ in length ({sizes})", key=where)
    return Axis(tuple(table), tuple(zip(*columns, strict=True)))


def read_values(value: object, where: str) -> tuple[Value, ...]:
    """A list of numbers, texts or booleans, or a range of numbers.

    `{ lin = [a, b], n = 5 }` and `{ log = [a, b], n = 5 }` include both ends; between
    integers, values within rounding of an integer are integers.
    """
    if isinstance(value, Mapping):
        return _steps(value, where)
    if not isinstance(value, list) or not value:
        message = (
            f"expected a list with values or a range such as {{ log = [1e-3, 1e-1], "
            f"n = 5 }}, found {value!r}"
        )
        raise ProblemError(message, key=where)
    for v in value:
        _check_value(v, where)
    kept = [(type(v) is bool, v) for v in value]
    for i, v in enumerate(kept):
        if v in kept[:i]:
            raise ProblemError(f"{v[1]!r} is there twice", key=where)
    return tuple(value)


def read_exclusion(
    table: Mapping[str, object], keys: tuple[str, ...], where: str
) -> Exclusion:
    """An exclusion: each test a value, a list of values or a text such as "> 5"."""
    if not table:
        raise ProblemError("expected a table with tests of axes", key=where)
    tests = []
    for key, test in table.items():
        if key not in keys:
            message = f"{quoted(key)} is no axis (axes: {', '.join(keys)})"
            raise ProblemError(message, key=where)
        tests.append((key, *_test(test, f"{where}.{key}")))
    return Exclusion(tuple(tests))


def combinations(
    axes: tuple[Axis, ...], exclusions: tuple[Exclusion, ...]
) -> Iterator[Settings]:
    """Every combination of the axes that no exclusion leaves out, the last fastest."""
    size = math.prod(len(a.values) for a in axes)
    if size > LARGEST:
        raise ProblemError(f"{size} combinations are more than {LARGEST}", key="axes")
    for steps in itertools.product(*(a.values for a in axes)):
        settings: Settings = {}
        for axis, values in zip(axes, steps, strict=True):
            settings |= zip(axis.keys, values, strict=True)
        if not any(e.holds(settings) for e in exclusions):
            yield settings


def _steps(table: Mapping[str, object], where: str) -> tuple[Value, ...]:
    found, n = read_range(table, where)
    if n is None:
        message = (
            "n is missing, as in { log = [a, b], n = 5 }; only a design of random or "
            "sobol, or a search, takes a range without it"
        )
        raise ProblemError(message, key=where)
    return found.steps(n)


def _check_value(value: object, where: str) -> None:
    if not isinstance(value, str | bool) and not is_number(value):
        message = f"expected numbers, texts or booleans, found {value!r}"
        raise ProblemError(message, key=where)


def _test(test: object, where: str) -> tuple[str, tuple[Value, ...]]:
    if isinstance(test, list):
        for v in test:
            _check_value(v, where)
        return "in", tuple(test)
    _check_value(test, where)
    match = re.fullmatch(r"\s*(<=|>=|<|>|!=)\s*(\S+)\s*", str(test))
    if isinstance(test, str) and match:
        try:
            return match[1], (float(match[2]),)
        except ValueError:
            message = f"expected a number after {match[1]}, found {match[2]!r}"
            raise ProblemError(message, key=where) from None
    return "in", (test,)  # pyright: ignore[reportReturnType]


def _meets(value: Value, how: str, tested: tuple[Value, ...]) -> bool:
    if how == "in":
        return value in tested
    return is_number(value) and bool(COMPARISONS[how](value, tested[0]))
