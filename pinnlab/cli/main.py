"""The `pinnlab` command: the list of its subcommands."""

from typing import Annotated

import typer

import pinnlab
from pinnlab.cli.check import check
from pinnlab.cli.compare import compare
from pinnlab.cli.doctor import doctor
from pinnlab.cli.export import export
from pinnlab.cli.files import plot, predict, show
from pinnlab.cli.gallery import problems
from pinnlab.cli.new import new
from pinnlab.cli.reference import reference
from pinnlab.cli.sweep import report, sweep
from pinnlab.cli.training import solve


app = typer.Typer(
    name="pinnlab",
    help="Solve differential equations written in small text files, and say how wrong "
    "the solution is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A problem is a file, or a name of the gallery: pinnlab solve burgers",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pinnlab {pinnlab.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show it."),
    ] = False,
) -> None:
    """What stands before a subcommand."""


for command in (
    new,
    solve,
    check,
    reference,
    show,
    plot,
    predict,
    compare,
    export,
    problems,
    doctor,
    report,
):
    app.command()(command)
app.add_typer(sweep, name="sweep")


def main() -> None:
    """The entry point of the `pinnlab` command."""
    app()
