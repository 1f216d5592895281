"""Commands that need a problem: `solve` and `check`."""

import dataclasses
import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinnlab.cli.options import (
    Json,
    ProblemName,
    Settings,
    load,
    positive,
    seconds,
)
from pinnlab.cli.terminal import Status, console, friendly, leave
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from rich.console import Console

    from pinnlab.diagnosis.profiler import Profiler
    from pinnlab.diagnosis.watch import Watch
    from pinnlab.keeper import Keeper
    from pinnlab.problem.problem import Problem
    from pinnlab.programs import Programs, Stage
    from pinnlab.solution import Solution
    from pinnlab.team import Team
    from pinnlab.verify.preflight import Preflight

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The result file; NAME.h5 if missing."),
]
Target = Annotated[float, typer.Option(help="The relative L2 error wanted.")]
Budget = Annotated[
    str, typer.Option(help="Time for training: 90, 60s, 2m, 1h; the rest is extra.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of everything random.")]
Seeds = Annotated[
    int,
    typer.Option(
        min=1,
        max=4096,
        help="Solve from so many seeds, SEED and those after it; the best is written, "
        "with the spread of all. --budget is for all together.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Check the run and add a diagnosis; slower.")
]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Leave short traces of JAX's profiler in a folder."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from NAME.ckpt, if it is there.")
]
Devices = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Devices (GPUs) that share the collocation points; all there are if "
        "missing.",
    ),
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where the processes meet: a free port of the computer of process 0. "
        "Not needed under srun or mpirun.",
    ),
]
Processes = Annotated[
    int | None, typer.Option(metavar="N", help="How many processes there are.")
]
Process = Annotated[
    int | None, typer.Option(metavar="I", help="The number of this one, from 0.")
]
NoReference = Annotated[
    bool, typer.Option("--no-reference", help="Do not solve classically for the truth.")
]
Plot = Annotated[bool, typer.Option(help="Also draw NAME.png.")]


@friendly
def solve(
    problem: ProblemName,
    output: Output = None,
    target: Target = 1e-3,
    budget: Budget = "60s",
    seed: Seed = 0,
    seeds: Seeds = 1,
    settings: Settings = None,
    plot: Plot = True,
    force: Force = False,
    resume: Resume = False,
    no_reference: NoReference = False,
    debug: Debug = False,
    profile: Profile = None,
    devices: Devices = None,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process: Process = None,
    as_json: Json = False,
) -> None:
    """Solve a problem, verify the solution, and leave one HDF5 file and a picture.

    Training is kept in NAME.ckpt every half minute, and when it is asked to stop by
    Ctrl-C, SIGTERM or SIGUSR1. Started by srun or mpirun, all processes train together.
    Exit status: 0 the verdict is pass, 1 it is not, 2 the input is wrong, 3 the run
    failed, 75 stopped and to be resumed, 130 interrupted.
    """
    from pinnlab.cli.processes import joined, launched

    positive("--target", target)
    asked = _Asked(
        problem,
        output or Path(f"{Path(problem).stem}.h5"),
        target,
        seconds(budget),
        seed,
        seeds,
        settings,
        plot,
        force,
        resume,
        not no_reference,
        debug,
        profile,
        devices,
    )
    launch = launched(coordinator, processes, process, os.environ)
    if seeds > 1:
        _check_seeds(asked, together=launch is not None)
    with joined(launch, asked.checkpoint) as team:
        if team.leads:
            _lead(asked, team, as_json=as_json)
        else:
            _assist(asked, team)


@dataclasses.dataclass(frozen=True)
class _Asked:
    """The options of `solve`, checked one by one."""

    problem: str
    path: Path
    target: float
    budget: float
    seed: int
    seeds: int
    settings: list[str] | None
    plot: bool
    force: bool
    resume: bool
    reference: bool
    debug: bool
    profile: Path | None
    devices: int | None

    @property
    def picture(self) -> Path:
        return self._beside(".png")

    @property
    def checkpoint(self) -> Path:
        return self._beside(".ckpt")

    def _beside(self, suffix: str) -> Path:
        # A path that is no file's is refused later, with its reason.
        return self.path.parent / f"{self.path.stem}{suffix}"


@friendly
def _lead(asked: _Asked, team: "Team", *, as_json: bool) -> None:
    """What the first process does, or the only one."""
    from pinnlab.atomic import check_writable
    from pinnlab.claim import claimed
    from pinnlab.signals import listening

    loaded = load(asked.problem, asked.settings)
    path, picture = asked.path, asked.picture
    check_writable(path)
    if path in (picture, asked.checkpoint):
        what = "a picture" if path == picture else "a checkpoint"
        leave(Status.WRONG_INPUT, f"error: {path}: a result file is not {what}")
    if asked.plot:
        check_writable(picture)
    checked = _preflight(loaded, asked.target)
    with listening() as signals, claimed(path):
        from pinnlab.keeper import Keeper

        keeper = Keeper(
            asked.checkpoint,
            resume=asked.resume,
            say=_say,
            signals=signals,
            team=team,
        )
        try:
            if asked.seeds > 1:
                solution = _best_of(loaded, asked, checked, keeper)
            else:
                solution = _solved(loaded, asked, checked, keeper)
        except Exception:
            team.settle()
            raise
        with signals.deferred():
            _save(solution, path, asked.force, as_json)
            if _status(solution) is not Status.INTERRUPTED:
                keeper.finish()
            if asked.plot:
                _draw(solution, picture)
            _report(solution, path, picture if asked.plot else None, as_json)
    raise typer.Exit(int(_status(solution)))


def _assist(asked: _Asked, team: "Team") -> None:
    """What all other processes do."""
    from pinnlab.cache import keep_compiled_programs
    from pinnlab.keeper import Keeper
    from pinnlab.signals import listening
    from pinnlab.solver import assist

    keep_compiled_programs()
    watch = _watch(asked, team)
    with listening() as signals, signals.deferred():
        keeper = Keeper(
            asked.checkpoint, resume=asked.resume, signals=signals, team=team
        )
        assist(
            load(asked.problem, asked.settings),
            team,
            target=asked.target,
            seed=asked.seed,
            inspect=watch.inspect if watch else None,
            keeper=keeper,
            devices=asked.devices,
        )
        team.told("status")


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


def _preflight(problem: "Problem", target: float) -> "Preflight":
    """The findings, shown; with errors the command ends here."""
    from pinnlab.cli.preflight import render_findings
    from pinnlab.verify.preflight import check as examine

    found: Preflight = examine(problem, target)
    render_findings(found, console(error=True), notes=False)
    if found.errors:
        leave(Status.WRONG_INPUT, "nothing was solved; see `pinnlab check`")
    return found


def _solved(
    problem: "Problem", asked: _Asked, checked: "Preflight", keeper: "Keeper"
) -> "Solution":
    from pinnlab.cache import keep_compiled_programs
    from pinnlab.cli.progress import TrainingProgress
    from pinnlab.diagnosis.diagnosis import diagnosed
    from pinnlab.solver import solve as solved

    keep_compiled_programs()
    watch = _watch(asked, keeper.team)
    profiler = profiler_in(asked.profile) if asked.profile else None
    helpers = [h for h in (watch, profiler) if h is not None]

    def inspect(stage: "Stage", programs: "Programs") -> "Programs":
        for helper in helpers:
            programs = helper.inspect(stage, programs)
        return programs

    with ExitStack() as around:
        progress = around.enter_context(TrainingProgress())
        for helper in helpers:
            around.enter_context(helper.listening())
        solution = solved(
            problem,
            target=asked.target,
            budget=asked.budget,
            seed=asked.seed,
            progress=progress,
            reference=asked.reference,
            checked=checked,
            inspect=inspect if helpers else None,
            keeper=keeper,
            devices=asked.devices,
            team=keeper.team,
        )
    return diagnosed(solution, watch) if watch else solution


def _watch(asked: _Asked, team: "Team") -> "Watch | None":
    from pinnlab.diagnosis.watch import Watch

    return Watch(team) if asked.debug else None


def _check_seeds(asked: _Asked, together: bool) -> None:
    """What is made for one run alone is refused for several."""
    alone = {
        "--debug": asked.debug,
        "--profile": asked.profile is not None,
        "several processes": together,
    }
    for name, wanted in alone.items():
        if wanted:
            raise ProblemError(f"{name} is for one seed: leave --seeds away")
    if asked.seed + asked.seeds > 2**31:
        raise ProblemError(
            f"--seeds {asked.seeds}: the last seed would be above 2147483647"
        )


def _best_of(
    problem: "Problem", asked: _Asked, checked: "Preflight", keeper: "Keeper"
) -> "Solution":
    """The best of several seeds, with all of them in its report."""
    from pinnlab.cache import keep_compiled_programs
    from pinnlab.cli.progress import TrainingProgress
    from pinnlab.ensemble.solve import solve_ensemble

    keep_compiled_programs()
    with TrainingProgress() as progress:
        ensemble = solve_ensemble(
            problem,
            seeds=range(asked.seed, asked.seed + asked.seeds),
            target=asked.target,
            budget=asked.budget,
            progress=progress,
            reference=asked.reference,
            checked=checked,
            keeper=keeper,
        )
    return dataclasses.replace(ensemble.best, result=ensemble.result())


def profiler_in(folder: Path) -> "Profiler":
    """A profiler that writes in the folder, which is made."""
    from pinnlab.atomic import check_writable

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"--profile {folder}: cannot be made: {error.strerror}"
        raise ProblemError(message) from error
    check_writable(folder / "trace")
    from pinnlab.diagnosis.profiler import Profiler

    return Profiler(folder)


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _save(solution: "Solution", path: Path, force: bool, as_json: bool) -> None:
    """Write the result; where it cannot be written any more, somewhere else."""
    try:
        solution.save(path, force=force)
    except (OSError, ProblemError) as error:
        rescue = Path(tempfile.mkdtemp(prefix="pinnlab-")) / path.name
        solution.save(rescue)
        known = isinstance(error, OSError) and error.errno
        reason = f"cannot write {path}: {os.strerror(known)}" if known else str(error)
        leave(Status.FAILED, f"failed: {reason}\nthe result is in {rescue}", as_json)


def _draw(solution: "Solution", path: Path) -> None:
    from pinnlab.plotting import figure, save_figure

    try:
        save_figure(figure(solution.result), path)
    except (ValueError, OSError) as error:
        # The result is written; a picture is no reason to call the run failed.
        typer.echo(f"warning: {path} could not be drawn: {error}", err=True)


def _report(
    solution: "Solution", path: Path, picture: Path | None, as_json: bool
) -> None:
    from pinnlab.report import render_report, report_json

    terminal: Console = console(error=as_json)
    render_report(solution.report, terminal)
    wrote = f"{path} and {picture}" if picture else f"{path}"
    terminal.print(f" wrote {wrote}", style="dim", markup=False)
    if as_json:
        found = report_json(solution.report) | {"file": str(path)}
        found["figure"] = str(picture) if picture else None
        typer.echo(json.dumps(found, indent=2))


def _status(solution: "Solution") -> Status:
    from pinnlab.record import Stop

    stop = solution.result.attributes.get("stop")
    if stop == Stop.INTERRUPTED.value:
        return Status.INTERRUPTED
    if stop == Stop.DIVERGED.value:
        return Status.FAILED
    passed = solution.report.verdict.startswith("pass")
    return Status.PASS if passed else Status.NOT_PASSED
