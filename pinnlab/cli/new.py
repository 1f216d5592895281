"""`new`: a commented problem file to start from."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pinnlab.cli.starters import KINDS, TIME, Names, starter
from pinnlab.cli.terminal import friendly
from pinnlab.errors import ProblemError, nearest


What = Annotated[
    str | None,
    typer.Argument(metavar="KIND", help=f"One of: {', '.join(KINDS)}."),
]
Coordinates = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Coordinates in order, as in t,x,y."),
]
Fields = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Unknown fields, as in u,v.")
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="The file; KIND.toml if missing.")
]


@friendly
def new(
    kind: What = None,
    coordinates: Coordinates = None,
    fields: Fields = None,
    output: Output = None,
) -> None:
    """Write a commented problem file to start from; asks for what is not given.

    An existing file is never overwritten. In a script everything has a default but
    the kind.
    """
    asks = kind is None and sys.stdin.isatty()
    if asks:
        for name, each in KINDS.items():
            typer.echo(f"  {name:<12}{each.about}", err=True)
        kind = typer.prompt("kind", default="heat", err=True)
    chosen = _known(kind)
    usual = ",".join(KINDS[chosen].coordinates)
    if asks:
        coordinates = coordinates or typer.prompt("coordinates", usual, err=True)
        fields = fields or typer.prompt("fields", "u", err=True)
        output = output or Path(typer.prompt("file", f"{chosen}.toml", err=True))
    path = output or Path(f"{chosen}.toml")
    names = Names(_names(coordinates or usual), _names(fields or "u"))
    _check_coordinates(chosen, names)
    text = starter(chosen, names, path.name)

    from pinnlab.problem.file import loads_problem

    loads_problem(text, path.name)  # Names that a file cannot have end here.
    _write(path, text)
    typer.echo(f"{path}: now try `pinnlab check {path}`", err=True)


def _known(kind: str | None) -> str:
    if kind is None:
        raise ProblemError(f"which kind of problem? One of: {', '.join(KINDS)}")
    if kind not in KINDS:
        message = f"unknown kind '{kind}' (known: {', '.join(KINDS)})"
        raise ProblemError(message, hint=nearest(kind, KINDS))
    return kind


def _names(text: str) -> tuple[str, ...]:
    return tuple(n.strip() for n in text.split(",") if n.strip())


def _check_coordinates(kind: str, names: Names) -> None:
    """The coordinates must be as many, and with time or without, as the kind needs."""
    chosen, found = KINDS[kind], ", ".join(names.coordinates)
    if len(chosen.coordinates) == 1:
        if len(names.coordinates) != 1:
            raise ProblemError(f"'{kind}' has one coordinate; found {found}")
    elif chosen.timed != (TIME in names.coordinates) or not names.space:
        needs = f"'{TIME}' and one or more" if chosen.timed else "one or more"
        raise ProblemError(
            f"'{kind}' needs {needs} coordinates in space; found {found}"
        )


def _write(path: Path, text: str) -> None:
    """Create the file; an existing one is left alone."""
    from pinnlab.atomic import check_writable

    check_writable(path)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise ProblemError(
            f"{path}: exists already and is not overwritten",
            hint="give another name with -o",
        ) from error
