"""The tables of a problem as given: which keys there may be, and of what kind."""

import reprlib
from collections.abc import Mapping
from typing import TypeGuard

from pinnlab.errors import ProblemError, nearest, quoted


TABLES = (
    "title", "coordinates", "fields", "periodic", "parameters", "definitions",
    "geometry", "equations", "conditions", "exact", "outputs", "solver",
    "reference",
)  # fmt: skip
NOT_YET = ("regions", "data", "history")
REQUIRED = ("coordinates", "fields", "equations")

BEFORE_TABLES: Mapping[str, type | tuple[type, ...]] = {
    "title": str,
    "fields": (list, tuple),
    "periodic": (list, tuple),
    "coordinates": Mapping,
}
"""Keys that stand above the first table, and what their values are."""

MAX_LEVELS = 20

Table = Mapping[str, object]


def check_tables(table: Table) -> None:
    """Raises `ProblemError` for keys that are unknown, missing or misplaced."""
    if _levels(table) > MAX_LEVELS:
        raise ProblemError(f"tables are nested more than {MAX_LEVELS} deep")
    for key, value in table.items():
        if key in NOT_YET:
            raise ProblemError(f"[{key}] is not supported yet", key=key)
        if key not in TABLES:
            raise ProblemError(
                f"unknown key {quoted(key)} (known: {', '.join(TABLES)})",
                key=key[:64],
                hint=nearest(key, TABLES),
            )
        if key in BEFORE_TABLES or not is_table(value):
            continue
        _check_misplaced(value, key)
        for name, inner in value.items():
            if key == "conditions" and is_table(inner):
                _check_misplaced(inner, f"{key}.{name}")
    for key in REQUIRED:
        if key not in table:
            raise ProblemError(f"the key '{key}' is missing")


def _check_misplaced(table: Table, path: str) -> None:
    """A key after a table's header belongs to that table, which few expect."""
    for key, value in table.items():
        if key in BEFORE_TABLES and isinstance(value, BEFORE_TABLES[key]):
            if key == "title" and "=" in str(value) and path == "equations":
                continue
            if path == "conditions" and is_table(value) and "equation" in value:
                continue
            raise ProblemError(
                f"'{key}' stands inside [{path}], because it comes after its header",
                key=f"{path}.{key}",
                hint=f"'{key}' is a top-level key: put it before any [table]",
            )


def _levels(table: Table) -> int:
    """How deep tables and lists are nested."""
    deepest = 0
    stack: list[tuple[object, int]] = [(table, 1)]
    while stack and deepest <= MAX_LEVELS:
        value, level = stack.pop()
        deepest = max(deepest, level)
        if isinstance(value, Mapping):
            stack.extend((inner, level + 1) for inner in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((inner, level + 1) for inner in value)
    return deepest


def only_keys(table: Table, known: tuple[str, ...]) -> None:
    """Raises `ProblemError` for any other key."""
    for key in table:
        if key not in known:
            raise ProblemError(
                f"unknown key {quoted(str(key))} (known: {', '.join(known)})",
                hint=nearest(str(key), known),
            )


def is_table(value: object) -> TypeGuard[Table]:
    """Whether the value is a table with texts as keys."""
    return isinstance(value, Mapping) and all(isinstance(k, str) for k in value)


def subtable(table: Table, key: str) -> Table:
    """The table under a key, empty where there is none."""
    value = table.get(key, {})
    if not is_table(value):
        raise ProblemError(f"expected a table, found {shown(value)}", key=key)
    return value


def string(table: Table, key: str) -> str:
    """The text under a key, empty where there is none."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ProblemError(f"expected a text, found {shown(value)}", key=key)
    if not value.isprintable():
        # It is shown on terminals, where control characters are commands.
        raise ProblemError("control characters are not allowed", key=key)
    return value


def as_list(value: object) -> tuple[object, ...]:
    """The entries of a list, or the one value that stands for a list of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def shown(value: object) -> str:
    """A value as errors print it, shortened where it is long."""
    return reprlib.repr(value)
