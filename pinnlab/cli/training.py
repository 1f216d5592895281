"""The command `solve`."""

import dataclasses
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pinnlab.cli.asked import (
    Asked,
    Budget,
    Coordinator,
    Debug,
    Devices,
    Force,
    NoReference,
    Output,
    Plot,
    Process,
    Processes,
    Profile,
    Resume,
    Seed,
    Seeds,
    Target,
)
from pinnlab.cli.check import preflight
from pinnlab.cli.options import (
    Json,
    ProblemName,
    Settings,
    load,
    positive,
    seconds,
)
from pinnlab.cli.outcome import draw, report, save, status
from pinnlab.cli.terminal import Status, friendly, leave
from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from pinnlab.diagnosis.profiler import Profiler
    from pinnlab.diagnosis.watch import Watch
    from pinnlab.keeper import Keeper
    from pinnlab.problem.problem import Problem
    from pinnlab.programs import Programs, Stage
    from pinnlab.solution import Solution
    from pinnlab.team import Team
    from pinnlab.verify.preflight import Preflight


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

    began = time.perf_counter()
    positive("--target", target)
    asked = Asked(
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
        asked.check_seeds(together=launch is not None)
    with joined(launch, asked.checkpoint) as team:
        if team.leads:
            _lead(asked, team, began, as_json=as_json)
        else:
            _assist(asked, team)


@friendly
def _lead(asked: Asked, team: "Team", began: float, *, as_json: bool) -> None:
    """What the first process does, or the only one; `began`: when the command did."""
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
    checked = preflight(loaded, asked.target)
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
            save(solution, path, asked.force, as_json)
            if status(solution) is not Status.INTERRUPTED:
                keeper.finish()
            if asked.plot:
                draw(solution, picture)
            drawn = picture if asked.plot else None
            spent = time.perf_counter() - began
            report(solution, path, drawn, spent, as_json)
    raise typer.Exit(int(status(solution)))


def _assist(asked: Asked, team: "Team") -> None:
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


def _solved(
    problem: "Problem", asked: Asked, checked: "Preflight", keeper: "Keeper"
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


def _watch(asked: Asked, team: "Team") -> "Watch | None":
    from pinnlab.diagnosis.watch import Watch

    return Watch(team) if asked.debug else None


def _best_of(
    problem: "Problem", asked: Asked, checked: "Preflight", keeper: "Keeper"
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
