"""Names: words that are not taken, each with one meaning."""

from collections.abc import Iterable, Sequence

from pinnlab.equation.scope import RESERVED, RESULT_NAMES, derivative_letters
from pinnlab.errors import ProblemError, located, quoted
from pinnlab.problem.problem import Unknown
from pinnlab.problem.tables import Table, subtable


KINDS = ("coordinate", "field", "parameter", "definition", "output")
LABELS = ("equation", "condition")
SOLIDS = ("rectangle", "disk", "polygon")
MAX_LENGTH = 64


def check_names(
    table: Table, coordinates: Sequence[str], fields: Sequence[Unknown]
) -> None:
    """Raises `ProblemError` for a name that is no word, reserved or used twice."""
    seen: dict[str, str] = {}
    for kind in (*KINDS, *LABELS):
        key = f"{kind}s"
        names: Iterable[str] = subtable(table, key) if kind != "field" else ()
        for name in [f.name for f in fields] if kind == "field" else names:
            with located(key=key if kind == "field" else f"{key}.{name[:64]}"):
                _check_word(name, kind)
                if kind in LABELS:
                    continue
                _check_free(name, kind, coordinates)
                if name in seen:
                    raise ProblemError(_twice(name, seen[name], kind))
                seen[name] = kind
    for name in subtable(subtable(table, "geometry"), "parts"):
        with located(key=f"geometry.parts.{name[:64]}"):
            _check_word(name, "part")
            _check_free(name, "part", coordinates)
            if name in SOLIDS:
                raise ProblemError(f"'{name}' is a solid and cannot name a part")
            if name in seen:
                raise ProblemError(_twice(name, seen[name], "part"))
    for field in fields:
        _check_variables(field, seen)


def _twice(name: str, first: str, second: str) -> str:
    if first == second:
        return f"there are two {first}s '{name}'"
    return (
        f"'{name}' is the name of a {first} and of a {second}: every name may mean "
        "one thing only"
    )


def _check_word(name: str, kind: str) -> None:
    if not name.isidentifier() or len(name) > MAX_LENGTH or name.startswith("_"):
        raise ProblemError(
            f"{quoted(name)} cannot name a {kind}: a name is at most {MAX_LENGTH} "
            "letters, digits and _, and starts with a letter"
        )


def _check_free(name: str, kind: str, coordinates: Sequence[str]) -> None:
    if name.startswith("residual_"):
        raise ProblemError(f"names that start with residual_ are taken: '{name}'")
    if name in RESERVED or name in RESULT_NAMES:
        raise ProblemError(f"'{name}' is reserved and cannot name a {kind}")
    if letters := derivative_letters(name, coordinates):
        by = " and ".join(dict.fromkeys(letters))
        raise ProblemError(
            f"'{name}' cannot name a {kind}: {name}(u) is the derivative by {by}"
        )


def _check_variables(field: Unknown, seen: dict[str, str]) -> None:
    """Names that the result file gives to what belongs to a field."""
    ends = ("exact", "reference", "error_estimate", *(("real", "imag") * field.complex))
    for taken in (f"{field.name}_{end}" for end in ends):
        if seen.get(taken) in ("coordinate", "field", "output"):
            raise ProblemError(
                f"'{taken}' belongs to the field '{field.name}' and cannot name a "
                f"{seen[taken]}",
                key=f"{seen[taken]}s",
            )
