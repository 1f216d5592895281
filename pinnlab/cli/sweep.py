"""`sweep`: many runs of one problem, on a laptop or a cluster."""

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from pinnlab.cli.gallery import find_problem
from pinnlab.cli.options import Json
from pinnlab.cli.terminal import Status, console, friendly, leave
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from pinnlab.sweep.drive import Ending, Work
    from pinnlab.sweep.plan import Plan
    from pinnlab.sweep.search import Search
    from pinnlab.sweep.table import Row
    from pinnlab.sweep.trials import Trials

RUN = "run"


class FileFirst(TyperGroup):
    """`sweep FILE` means `sweep run FILE`."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        """Put `run` in front of a first word that is not the name of a command."""
        words = [a for a in args if not a.startswith("-")]
        if words and words[0] not in self.commands:
            args = [RUN, *args]
        return TyperGroup.parse_args(self, ctx, args)


sweep = typer.Typer(
    cls=FileFirst,
    no_args_is_help=True,
    help="Many runs of one problem, on a laptop or a cluster: "
    "`pinnlab sweep EXPERIMENT.toml`.",
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")]
On = Annotated[
    str,
    typer.Option(
        help="Where: local, slurm, pbs, lsf, sge, runner (in an allocation: srun "
        "pinnlab sweep ...), or the Dask scheduler at tcp://HOST:PORT or in file:PATH."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, max=10_000, help="Runs at one time; chosen if missing."),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check everything, print the size and the job script, stop."
    ),
]


@sweep.command(RUN)
@friendly
def run(
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT.toml", help="An experiment file.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A folder; the file's name if missing."),
    ] = None,
    on: On = "local",
    workers: Workers = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Do every run of an experiment that has no result yet.

    Exit status: 0 all verdicts are pass, 1 some are not, 2 the input is wrong, 3 some
    runs failed, 75 stopped by SIGTERM or SIGUSR1, 130 by Ctrl-C or `cancel`.
    """
    from pinnlab.sweep.candidates import probing
    from pinnlab.sweep.checks import check_plan
    from pinnlab.sweep.experiment import load_experiment
    from pinnlab.sweep.folder import save_plan
    from pinnlab.sweep.plan import make_plan
    from pinnlab.sweep.pools import check_place, settled
    from pinnlab.sweep.resources import SCHEDULERS
    from pinnlab.sweep.trials import searching

    check_place(on)
    folder = output or Path(experiment.stem)
    if folder.exists() and not folder.is_dir():
        raise ProblemError(f"{folder}: is not a folder")
    loaded = load_experiment(experiment)
    search = loaded.search
    plan = (probing if search else make_plan)(loaded, find_problem)
    typer.echo(f"checking {len(plan.runs)} runs", err=True)
    warnings = check_plan(plan, folder)
    _announce(plan, folder, on, workers, warnings, search)
    if dry_run:
        if on in SCHEDULERS:
            from pinnlab.sweep.schedulers import job_script

            typer.echo(job_script(on, plan, folder / "jobs"), nl=False)
    elif search:
        _, seconds = settled(on, plan)
        with searching(loaded, find_problem, folder, seconds) as trials:
            ending, rows = _drive(folder, plan, on, workers, as_json, trials)
            _say_best(trials)
        passed = any(r.passed for r in rows)
        raise typer.Exit(int(_status(ending.done == 0, passed)))
    else:
        save_plan(folder, plan)
        _drive_plan(folder, plan, on, workers, as_json)


@sweep.command()
@friendly
def resume(
    folder: Folder, on: On = "local", workers: Workers = None, as_json: Json = False
) -> None:
    """Do what is missing or failed in a folder, without its experiment file."""
    from pinnlab.sweep.folder import load_plan
    from pinnlab.sweep.pools import check_place
    from pinnlab.sweep.search import JOURNAL

    check_place(on)
    plan = load_plan(folder)
    if (folder / JOURNAL).exists():
        again = f"pinnlab sweep EXPERIMENT.toml -o {folder}"
        raise ProblemError(f"{folder}: holds a search, which goes on with: {again}")
    _announce(plan, folder, on, workers, ())
    _drive_plan(folder, plan, on, workers, as_json)


@sweep.command()
@friendly
def status(folder: Folder, as_json: Json = False) -> None:
    """Show how far a sweep is; the tables sweep.h5 and sweep.csv are made anew."""
    from pinnlab.cli.sweep_table import render_status, status_json
    from pinnlab.sweep.folder import load_plan
    from pinnlab.sweep.table import collect

    rows = collect(folder, load_plan(folder))
    if as_json:
        typer.echo(json.dumps(status_json(folder, rows), indent=2))
    else:
        render_status(folder, rows, console())


@sweep.command()
@friendly
def cancel(folder: Folder) -> None:
    """Stop a sweep wherever it runs; results that are there stay."""
    from pinnlab.sweep.drive import cancel as stop
    from pinnlab.sweep.folder import load_plan

    load_plan(folder)
    count = stop(folder)
    what = "no driver was running" if not count else f"told {count} to stop"
    typer.echo(what, err=True)


@sweep.command()
@friendly
def logs(
    folder: Folder,
    run: Annotated[
        str | None, typer.Argument(help="A run, or how its name begins.")
    ] = None,
) -> None:
    """Print what a run printed, and why it failed; without RUN of all failed ones."""
    from pinnlab.sweep.folder import State, files, load_plan, read_error, state
    from pinnlab.sweep.plan import described

    plan = load_plan(folder)
    failed = (r for r in plan.runs if state(folder, r.id) is State.FAILED)
    for one in [plan.run(run)] if run else failed:
        typer.echo(f"== {one.id}  {described(one.settings)}")
        log = files(folder, one.id).log
        if log.is_file():
            typer.echo(log.read_text(encoding="utf-8", errors="replace"), nl=False)
        error = read_error(folder, one.id)
        if error:
            typer.echo(error)


@friendly
def report(
    folder: Folder,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path(
        "report.html"
    ),
    pictures: Annotated[
        int, typer.Option(min=0, help="The most runs that have a picture.")
    ] = 60,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file.")
    ] = False,
) -> None:
    """Write one HTML page about a sweep: a table, pictures, each run's report."""
    from pinnlab.atomic import check_writable, replacing
    from pinnlab.sweep.folder import load_plan
    from pinnlab.sweep.page import report_page
    from pinnlab.sweep.table import collect

    check_writable(output)
    plan = load_plan(folder)
    page = report_page(folder, plan, collect(folder, plan), pictures)
    with replacing(output, force=force) as draft:
        draft.write_text(page, encoding="utf-8")
    typer.echo(str(output), err=True)


def _announce(
    plan: "Plan",
    folder: Path,
    on: str,
    workers: int | None,
    warnings: tuple[str, ...],
    search: "Search | None" = None,
) -> None:
    """Say the size of a plan, or of a search whose trials are like its runs."""
    from pinnlab.cli.progress import clock
    from pinnlab.sweep.alike import in_words
    from pinnlab.sweep.checks import estimate
    from pinnlab.sweep.drive import Missing
    from pinnlab.sweep.pools import pool_size, settled
    from pinnlab.sweep.resources import SCHEDULERS
    from pinnlab.sweep.sharing import Batch

    if on in SCHEDULERS:
        from pinnlab.sweep.walltime import longer_than_a_job

        longer = longer_than_a_job(on, plan)
        warnings = (*warnings, longer) if longer else warnings
    size = pool_size(on, plan, workers)
    total = search.trials * search.repetitions if search else None
    found = estimate(plan, folder, size, total)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    what = f"{found.runs} runs, {found.done} done"
    if search:
        seeds = search.repetitions
        what = f"{search.trials} trials" + (f" with {seeds} seeds" * (seeds > 1))
    typer.echo(
        f"{plan.title}: {what}; {size} at one time, at most about "
        f"{clock(found.seconds)}, {found.disk / 1e6:.0f} MB in {folder}",
        err=True,
    )
    if not search:
        batches = Missing(folder, *settled(on, plan)).more(0, size)
        typer.echo(in_words(batches), err=True)
    elif search.repetitions > 1 and plan.batch is not Batch.NEVER:
        typer.echo("the seeds of a trial share a process where they can", err=True)


def _drive_plan(
    folder: Path, plan: "Plan", on: str, workers: int | None, as_json: bool
) -> None:
    from pinnlab.sweep.drive import Missing
    from pinnlab.sweep.pools import settled

    work = Missing(folder, *settled(on, plan))
    ending, rows = _drive(folder, plan, on, workers, as_json, work)
    raise typer.Exit(int(_status(ending.failed > 0, all(r.passed for r in rows))))


def _drive(
    folder: Path,
    plan: "Plan",
    on: str,
    workers: int | None,
    as_json: bool,
    work: "Work",
) -> tuple["Ending", tuple["Row", ...]]:
    """Do the work and show what is there then. Where it was stopped, so is this."""
    from pinnlab.cli.sweep_table import SweepProgress, render_status, status_json
    from pinnlab.signals import listening
    from pinnlab.sweep.drive import drive_work
    from pinnlab.sweep.folder import load_plan
    from pinnlab.sweep.pools import open_pool
    from pinnlab.sweep.table import collect

    progress = SweepProgress(folder)
    with (
        listening() as signals,
        open_pool(on, plan, folder, workers) as pool,
        progress,
    ):
        ending = drive_work(folder, plan.resources, work, pool, progress)
    rows = collect(folder, load_plan(folder))
    render_status(folder, rows, console(error=True))
    if as_json:
        typer.echo(json.dumps(status_json(folder, rows), indent=2))
    if ending.stopped:
        asked = signals.received not in (None, signal.SIGINT)
        status = Status.CHECKPOINTED if asked else Status.INTERRUPTED
        leave(status, f"stopped; go on with: {work.again}")
    return ending, rows


def _say_best(trials: "Trials") -> None:
    from pinnlab.sweep.plan import described

    found = trials.best()
    if found:
        what = f"smallest {trials.objective} {found.value:.2e}"
        runs = ("run " if len(found.runs) == 1 else "runs ") + ", ".join(
            run.id for run in found.runs
        )
        typer.echo(f"{what}: {described(found.settings)} ({runs})", err=True)


def _status(failed: bool, passed: bool) -> Status:
    if failed:
        return Status.FAILED
    return Status.PASS if passed else Status.NOT_PASSED
