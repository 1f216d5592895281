"""`compare`: how far one result is from another, or from data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinnlab.cli.options import Json
from pinnlab.cli.terminal import console, friendly
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from pinnlab.compare import Comparison

FileA = Annotated[Path, typer.Argument(metavar="A", help="A result or a data file.")]
FileB = Annotated[
    Path, typer.Argument(metavar="B", help="Another; errors are relative to B.")
]
Picture = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="A picture of A, B and A - B (.png, .pdf)."),
]
Coordinates = Annotated[
    str, typer.Option(metavar="NAMES", help="Names of the coordinates, as in t,x.")
]
Match = Annotated[
    list[str] | None,
    typer.Option(metavar="A=B", help="A field with another name in B: u=usol."),
]


@friendly
def compare(
    a: FileA,
    b: FileB,
    output: Picture = None,
    coordinates: Coordinates = "",
    match: Match = None,
    as_json: Json = False,
) -> None:
    """Compare two results, or a result and data (HDF5, netCDF, CSV, .mat).

    Fields and coordinates are matched by name. A result is evaluated by its model, a
    grid is interpolated, scattered points are used as they are.
    """
    from pinnlab.atomic import check_writable
    from pinnlab.compare import compare as compared
    from pinnlab.sources import load_pair

    pairs = dict(_pair(text) for text in match or ())
    if output is not None:
        check_writable(output)
    names = tuple(n.strip() for n in coordinates.split(",") if n.strip())
    found = compared(*load_pair(a, b, names), pairs)
    if output is not None:
        from pinnlab.plotting import save_figure
        from pinnlab.plotting.comparison import comparison_figure

        save_figure(comparison_figure(found), output)
    if as_json:
        typer.echo(json.dumps(_object(found), indent=2))
    else:
        _print(found)


def _pair(text: str) -> tuple[str, str]:
    first, equals, second = (part.strip() for part in text.partition("="))
    if not (first and equals and second):
        raise ProblemError(f"--match {text}: expected A=B, as in u=usol")
    return first, second


def _object(found: "Comparison") -> dict[str, object]:
    return {
        "a": found.names[0],
        "b": found.names[1],
        "points": found.count,
        "fields": {
            f.field: {"rel_l2": f.rel_l2, "maximum": f.maximum, "where": f.where}
            for f in found.fields
        },
        "notes": list(found.notes),
    }


def _print(found: "Comparison") -> None:
    from rich.table import Table
    from rich.text import Text

    terminal = console()
    a, b = found.names
    terminal.print(Text(f"{a} against {b} at {found.count} points", style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("field")
    table.add_column("relative L2", justify="right")
    table.add_column("largest", justify="right")
    table.add_column("at")
    for f in found.fields:
        place = ", ".join(f"{n} = {v:.4g}" for n, v in f.where.items())
        row = (f.field, f"{f.rel_l2:.2e}", f"{f.maximum:.2e}", place)
        table.add_row(*map(Text, row))
    terminal.print(table)
    for note in found.notes:
        terminal.print(Text(f"note: {note}", style="dim"))
