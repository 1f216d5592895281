"""What is left of a run: the result file, the picture, the report, the exit status."""

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pinnlab.atomic import set_aside
from pinnlab.cli.terminal import Status, console, leave
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from rich.console import Console

    from pinnlab.solution import Solution


def save(solution: "Solution", path: Path, force: bool, as_json: bool) -> None:
    """Write the result; where it cannot be written any more, somewhere else."""
    before = set_aside(path)
    try:
        solution.save(path, force=force)
    except (OSError, ProblemError) as error:
        rescue = Path(tempfile.mkdtemp(prefix="pinnlab-")) / path.name
        solution.save(rescue)
        known = isinstance(error, OSError) and error.errno
        reason = f"cannot write {path}: {os.strerror(known)}" if known else str(error)
        leave(Status.FAILED, f"failed: {reason}\nthe result is in {rescue}", as_json)
    for earlier in set_aside(path) - before:
        typer.echo(f"{path} was there already: it is {earlier} now", err=True)


def draw(solution: "Solution", path: Path) -> None:
    """Draw the picture; without one there is a warning."""
    from pinnlab.plotting import figure, save_figure

    try:
        save_figure(figure(solution.result), path)
    except (ValueError, OSError) as error:
        # The result is written; a picture is no reason to call the run failed.
        typer.echo(f"warning: {path} could not be drawn: {error}", err=True)


def report(
    solution: "Solution",
    path: Path,
    picture: Path | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Print the truth report, what was written, and the seconds of everything."""
    from pinnlab.report import render_report, report_json

    terminal: Console = console(error=as_json)
    render_report(solution.report, terminal)
    wrote = f"{path} and {picture}" if picture else f"{path}"
    line = f" wrote {wrote}; {seconds:.0f} s altogether"
    terminal.print(line, style="dim", markup=False)
    if as_json:
        found = report_json(solution.report) | {"file": str(path)}
        found["figure"] = str(picture) if picture else None
        typer.echo(json.dumps(found, indent=2))


def status(solution: "Solution") -> Status:
    """What the verdict, or the end of training, makes of the exit status."""
    from pinnlab.record import Stop

    stop = solution.result.attributes.get("stop")
    if stop == Stop.INTERRUPTED.value:
        return Status.INTERRUPTED
    if stop == Stop.DIVERGED.value:
        return Status.FAILED
    passed = solution.report.verdict.startswith("pass")
    return Status.PASS if passed else Status.NOT_PASSED
