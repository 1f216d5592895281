"""Options as users type them: `60s`, `parameters.nu=0.1`; and the problem they name."""

import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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


def load(name: str, settings: Sequence[str] | None) -> "Problem":
    """The problem that a path or a gallery name means, with `--set` applied."""
    from pinnlab.problem.file import load_problem

    changes = [setting(text) for text in settings or ()]
    return load_problem(find_problem(name), {".".join(p): v for p, v in changes})
