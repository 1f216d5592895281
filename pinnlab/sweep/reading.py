"""Values of an experiment file, checked: each error names the key and what is right."""

import math
import re
from collections.abc import Iterator, Mapping

from pinnlab.errors import ProblemError, nearest, quoted
from pinnlab.sweep.values import Settings, check_value


SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def known_keys(table: Mapping[str, object], names: tuple | list, where: str) -> None:
    """Raise `ProblemError` for a key that is none of `names`."""
    for key in table:
        if key not in names:
            raise ProblemError(
                f"unknown key {quoted(key)} (known: {', '.join(names)})",
                key=where or None,
                hint=nearest(key, names),
            )


def read_table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The table under a key, empty where there is none."""
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise ProblemError(f"expected a table, found {value!r}", key=key)
    return value


def read_tables(table: Mapping[str, object], key: str) -> list:
    """The list of tables under a key, empty where there is none."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        raise ProblemError(f"expected a list of tables ([[{key}]])", key=key)
    return value


def entries(
    table: Mapping[str, object], path: str = ""
) -> Iterator[tuple[str, object]]:
    """Dotted keys and values: in TOML `parameters.nu = ...` is a table in a table."""
    for key, value in table.items():
        if (
            isinstance(value, Mapping)
            and value
            and not {"lin", "log", "n"} & set(value)
        ):
            yield from entries(value, f"{path}{key}.")
        else:
            yield path + key, value


def flat(table: Mapping[str, object], path: str) -> Settings:
    """A table of tables as dotted keys."""
    found: Settings = {}
    for key, value in table.items():
        where = f"{path}.{key}"
        if isinstance(value, Mapping):
            found |= flat(value, where)
        else:
            check_value(value, where)
            found[where] = value  # pyright: ignore[reportArgumentType]
    return found


def text(value: object, where: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ProblemError(f"expected a text, found {value!r}", key=where)
    return value


def texts(value: object, where: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise ProblemError(f"expected a list, found {value!r}", key=where)
    return tuple(text(v, where) for v in value)


def boolean(value: object, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ProblemError(f"expected true or false, found {value!r}", key=where)
    return value


def integer(value: object, where: str, least: int, most: int) -> int:
    """An integer between two, inclusive."""
    if type(value) is not int or not least <= value <= most:
        message = f"expected an integer from {least} to {most}, found {value!r}"
        raise ProblemError(message, key=where)
    return value


def choice(value: object, where: str, names: tuple[str, ...]) -> str:
    """One of some words."""
    if value not in names:
        message = f"expected {' or '.join(map(repr, names))}, found {value!r}"
        raise ProblemError(message, key=where, hint=nearest(str(value), names))
    return str(value)


def span(value: object, where: str) -> float:
    """Seconds from a number or a text such as `90s`, `2m`, `1.5h`."""
    return scaled(value, SECONDS, where, "a time such as 90, 60s, 2m, 1h")


def scaled(
    value: object, units: Mapping[str, float], where: str, expected: str
) -> float:
    """A number, or a text of a number and a unit, as a positive finite number."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", str(value).lower())
    try:
        if isinstance(value, bool) or match is None:
            raise ValueError
        found = float(match[1]) * units[match[2]]
        if not 0 < found < math.inf:
            raise ValueError
    except (ValueError, KeyError):
        message = f"expected {expected}, found {value!r}"
        raise ProblemError(message, key=where) from None
    return found
