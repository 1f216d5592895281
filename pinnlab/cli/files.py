"""Commands that start from a result file: `show`, `plot` and `predict`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinnlab.cli.options import Json, ResultFile
from pinnlab.cli.terminal import console, friendly


if TYPE_CHECKING:
    from pinnlab.result import Result


@friendly
def show(
    run: ResultFile,
    problem: Annotated[
        bool, typer.Option("--problem", help="Print the problem file instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the truth report of a result file and what is in it."""
    from pinnlab.hdf5 import read_result
    from pinnlab.report import render_report, report_json

    result = read_result(run)
    if problem:
        typer.echo(result.problem, nl=False)
    elif as_json:
        found = report_json(result.report)
        found |= {"file": str(run), "attributes": result.attributes}
        found |= {"dims": {n: len(v) for n, v in result.axes.items()}}
        found |= {"variables": list(result.variables)}
        typer.echo(json.dumps(found, indent=2))
    else:
        terminal = console()
        _heading(result, run)
        render_report(result.report, terminal)


@friendly
def plot(
    run: ResultFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The picture (.png, .pdf, .svg) or movie (.gif, .mp4).",
        ),
    ] = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200)] = 160,
) -> None:
    """Draw the solution, its error, its residual and the training.

    The sweep.h5 of a sweep gives errors over its axes, and against the time. A name
    that ends in .gif or .mp4 gets a moving picture of the first field over time; .mp4
    needs the program ffmpeg.
    """
    from pinnlab.atomic import check_writable
    from pinnlab.hdf5 import read_result
    from pinnlab.plotting import figure, save_animation, save_figure
    from pinnlab.plotting.motion import MOVIES
    from pinnlab.sweep.dataset import is_dataset, read_dataset
    from pinnlab.sweep.pictures import sweep_figure

    path = output or Path(run.with_suffix(".png").name)
    check_writable(path)
    if is_dataset(run):
        save_figure(sweep_figure(read_dataset(run)), path, dpi=dpi)
    elif path.suffix.lower() in MOVIES:
        save_animation(read_result(run), path, dpi=dpi // 2)
    else:
        save_figure(figure(read_result(run)), path, dpi=dpi)
    typer.echo(str(path), err=True)


@friendly
def predict(
    run: ResultFile,
    at: Annotated[
        Path, typer.Option("--at", help="A CSV file with a column per coordinate.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A CSV file; standard output if missing."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file.")
    ] = False,
) -> None:
    """Evaluate a solution at points, with a column per field and output."""
    from pinnlab.atomic import check_writable, replacing
    from pinnlab.cli.points import read_points
    from pinnlab.data.arrays import real_columns
    from pinnlab.export.table import csv_text
    from pinnlab.solution import Solution

    if output is not None:
        check_writable(output)
    solution = Solution.load(run)
    ranges = {a.name: (a.lower, a.upper) for a in solution.problem.axes}
    points = read_points(at, ranges)
    values = solution.values(points)
    text = csv_text(dict(zip(ranges, points.T, strict=True)) | real_columns(values))
    if output is None:
        sys.stdout.write(text)
    else:
        with replacing(output, force=force) as draft:
            draft.write_text(text, encoding="utf-8", newline="")


def _heading(result: "Result", path: Path) -> None:
    from rich.text import Text

    terminal = console()
    facts = result.attributes
    title = str(facts.get("title") or facts.get("problem_name") or path.stem)
    grid = ", ".join(f"{n}: {len(v)}" for n, v in result.axes.items())
    terminal.print(Text(f" {title}", style="bold"))
    rest = [str(path), str(facts.get("created", "")), f"seed {facts.get('seed', '?')}"]
    terminal.print(Text(" " + ", ".join(r for r in rest if r), style="dim"))
    names = ", ".join(n for n in result.variables if not n.startswith("residual_"))
    terminal.print(Text(f" {names} on the grid {grid}", style="dim"))
