"""The axes of an experiment: lists and ranges, zipped groups, exclusions."""

import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pinnlab.errors import ProblemError, quoted
from pinnlab.sweep.ranges import LARGEST, read_range
from pinnlab.sweep.values import Settings, Value, check_value, is_number, label, same


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


def left_out(settings: Mapping[str, Value], exclusions: Sequence[Exclusion]) -> bool:
    """Whether any of them leaves a combination out."""
    return any(e.holds(settings) for e in exclusions)


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
    """A list of values, which may be lists and tables too, or a range of numbers.

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
    check_value(value, where)
    for i, v in enumerate(value):
        if any(same(v, other) for other in value[:i]):
            raise ProblemError(f"{label(v)!r} is there twice", key=where)
    return tuple(value)


def read_exclusion(
    table: Mapping[str, object], known: Mapping[str, Sequence[Value]], where: str
) -> Exclusion:
    """An exclusion: each test a value, a list of values or a text such as "> 5".

    **Arguments:**

    - `known`: the values of each axis.
    """
    if not table:
        raise ProblemError("expected a table with tests of axes", key=where)
    tests = []
    for key, test in table.items():
        if key not in known:
            message = f"{quoted(key)} is no axis (axes: {', '.join(known)})"
            raise ProblemError(message, key=where)
        _check_nesting(test, known[key], f"{where}.{key}")
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
        if not left_out(settings, exclusions):
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


def _check_nesting(test: object, known: Sequence[Value], where: str) -> None:
    """Refuse the list that one value is, where a list of such lists is meant."""
    nested = next((v for v in known if isinstance(v, list)), None)
    if nested is None or not isinstance(test, list):
        return
    if not any(isinstance(t, list) for t in test):
        message = f"expected a list of values such as [{label(nested)}]"
        raise ProblemError(f"{message}, found {label(test)}", key=where)


def _test(test: object, where: str) -> tuple[str, tuple[Value, ...]]:
    check_value(test, where)
    if isinstance(test, list):
        return "in", tuple(test)
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
        return any(same(value, v) for v in tested)
    return is_number(value) and bool(COMPARISONS[how](value, tested[0]))
