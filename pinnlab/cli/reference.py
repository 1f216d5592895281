"""The command `reference`: solve the same file by classical methods."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pinnlab.cli.options import Json, ProblemName, Settings, load, positive, seconds
from pinnlab.cli.terminal import Status, console, friendly, leave


@friendly
def reference(
    problem: ProblemName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file; NAME_reference.h5 if missing."),
    ] = None,
    error: Annotated[float, typer.Option(help="The relative L2 error wanted.")] = 1e-8,
    budget: Annotated[str, typer.Option(help="Time for it: 90, 60s, 2m, 1h.")] = "60s",
    settings: Settings = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Solve a problem by classical methods, and say how good the solution is.

    Exit status: 0 its own error is as small as wanted, 1 it is not, 2 the input is
    wrong, 3 there is no classical solution here.
    """
    from pinnlab.atomic import check_writable

    positive("--error", error)
    span = seconds(budget)
    loaded = load(problem, settings)
    path = output or Path(f"{Path(problem).stem}_reference.h5")
    check_writable(path)
    from pinnlab.classical import solve_classically
    from pinnlab.hdf5 import write_result
    from pinnlab.reference.reference import NoReference
    from pinnlab.report import render_report, report_json

    try:
        result = solve_classically(loaded, error=error, seconds=span)
    except NoReference as refusal:
        message = f"no classical solution of {problem}: {refusal.reason}"
        leave(Status.FAILED, message, as_json)
    write_result(path, result, force=force)
    terminal = console(error=as_json)
    render_report(result.report, terminal)
    terminal.print(f" wrote {path}", style="dim", markup=False)
    if as_json:
        found = report_json(result.report) | {"file": str(path)}
        typer.echo(json.dumps(found, indent=2))
    check = result.report.reference
    good = check is not None and check.error <= error
    raise typer.Exit(int(Status.PASS if good else Status.NOT_PASSED))
