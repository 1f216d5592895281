"""Options as users type them: `60s`, `parameters.nu=0.1`; and the problem they name."""

import difflib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pinnlab.cli.gallery import find_problem
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from pinnlab.problem.problem import Problem

ProblemName = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="A problem file or a gallery name.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change the problem: parameters.nu=0.1, solver.network.width=40. "
        "May be repeated.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object; the rest on stderr.")
]
ResultFile = Annotated[
    Path, typer.Argument(metavar="RUN.h5", help="A result file of `pinnlab solve`.")
]

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """A time span: `90`, `60s`, `2m`, `1.5h`."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", text, re.IGNORECASE)
    try:
        value = float(match[1]) * SECONDS[match[2].lower()] if match else math.nan
    except (ValueError, KeyError):
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ProblemError(f"--budget {text}: expected a time such as 90, 60s, 2m, 1h")
    return value


def positive(name: str, value: float) -> float:
    """The value, checked."""
    if not (value > 0 and math.isfinite(value)):
        raise ProblemError(f"{name} {value}: expected a positive number")
    return value


def setting(text: str) -> tuple[tuple[str, ...], object]:
    """`key.path=value` as a path and a value: TOML if it is that, else text."""
    key, equals, value = text.partition("=")
    path = tuple(k.strip() for k in key.split("."))
    if not equals or not all(path):
        raise ProblemError(f"--set {text}: expected KEY=VALUE, as in parameters.nu=0.1")
    try:
        table = tomllib.loads(f"value = {value}")
        return path, table["value"] if len(table) == 1 else value.strip()
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return path, value.strip()


def changed(
    document: Mapping[str, object], settings: Sequence[str]
) -> dict[str, object]:
    """The document with `--set` applied; tables are created only below `solver`."""
    copy = _copied(document)
    for text in settings:
        path, value = setting(text)
        table: dict[str, object] = copy
        for depth, key in enumerate(path[:-1]):
            if key not in table and path[0] == "solver":
                table[key] = {}
            inner = table.get(key)
            if not isinstance(inner, dict):
                _unknown(text, path[: depth + 1], table)
            table = inner
        if path[0] == "parameters" and path[-1] not in table:
            _unknown(text, path, table)
        table[path[-1]] = value
    return copy


def load(name: str, settings: Sequence[str] | None) -> "Problem":
    """The problem that a path or a gallery name means, with `--set` applied."""
    path = find_problem(name)
    import tomli_w

    from pinnlab.problem.file import load_problem, loads_problem

    problem = load_problem(path)
    if not settings:
        return problem
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return loads_problem(tomli_w.dumps(changed(document, settings)), path.name)


def _copied(document: Mapping[str, object]) -> dict[str, object]:
    return {k: _copied(v) if isinstance(v, Mapping) else v for k, v in document.items()}


def _unknown(text: str, path: tuple[str, ...], table: Mapping[str, object]) -> NoReturn:
    near = difflib.get_close_matches(path[-1], table, 1)
    known = ", ".join(map(str, table))
    raise ProblemError(
        f"--set {text}: there is no '{'.'.join(path)}' (there are: {known})",
        hint=f"did you mean '{near[0]}'?" if near else None,
    )
