"""Values of settings, as a problem file has them: plain ones, lists, tables."""

import json
import math
import re
from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

from pinnlab.errors import ProblemError


Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value]"
Settings: TypeAlias = dict[str, Value]
"""Values by their dotted keys."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number, and no boolean."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def check_value(value: object, where: str) -> None:
    """Raise `ProblemError` for what no setting can be, such as a date or infinity."""
    if isinstance(value, list):
        for v in value:
            check_value(v, where)
    elif isinstance(value, Mapping):
        for key, v in value.items():
            check_value(v, f"{where}.{key}")
    elif not isinstance(value, str | bool) and not is_number(value):
        message = "expected numbers, texts, booleans, or lists or tables of them"
        raise ProblemError(f"{message}; found {value!r}", key=where)


def label(value: object) -> str:
    """A value as people read it in a cell: `0.1`, `tanh`, `[4, 4]`, `{ width = 20 }`.

    Lists and tables are what TOML, and so `--set`, reads; texts stand for themselves.
    """
    return _toml(value) if isinstance(value, list | Mapping) else str(value)


def same(a: object, b: object) -> bool:
    """Whether two values are the same; a boolean is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
