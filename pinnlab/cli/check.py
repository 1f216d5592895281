"""The command `check`, and the same before training."""

import dataclasses
import json
from typing import TYPE_CHECKING

import typer

from pinnlab.cli.options import Json, ProblemName, Settings, load
from pinnlab.cli.terminal import Status, console, friendly, leave


if TYPE_CHECKING:
    from pinnlab.problem.problem import Problem
    from pinnlab.verify.preflight import Preflight


@friendly
def check(
    problem: ProblemName, settings: Settings = None, as_json: Json = False
) -> None:
    """Examine a problem before any training: what was understood, what is wrong."""
    from pinnlab.cli.preflight import render_preflight

    loaded = load(problem, settings)
    # Slow to import: a missing file should not have to wait for it.
    from pinnlab.verify.preflight import check as examine

    found = examine(loaded)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2))
    else:
        render_preflight(found, loaded.title, console())
    raise typer.Exit(int(Status.WRONG_INPUT if found.errors else Status.PASS))


def preflight(problem: "Problem", target: float) -> "Preflight":
    """The findings, shown; with errors the command ends here."""
    from pinnlab.cli.preflight import render_findings
    from pinnlab.verify.preflight import check as examine

    found: Preflight = examine(problem, target)
    render_findings(found, console(error=True), notes=False)
    if found.errors:
        leave(Status.WRONG_INPUT, "nothing was solved; see `pinnlab check`")
    return found
