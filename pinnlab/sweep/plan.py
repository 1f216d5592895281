"""What an experiment asks for: one run for each combination, known by its content."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pinnlab.errors import ProblemError
from pinnlab.problem.file import load_problem
from pinnlab.sweep.axes import Axis, combinations
from pinnlab.sweep.experiment import OF_A_RUN, Experiment
from pinnlab.sweep.reading import span
from pinnlab.sweep.resources import Jobs, Resources
from pinnlab.sweep.sharing import Batch, read_batch
from pinnlab.sweep.values import Settings, Value, label


DEFAULT_TARGET = 1e-3
DEFAULT_BUDGET = "60s"

Lookup = Callable[[str], Path]
"""From a name of the gallery, or a path, to a file; raises `ProblemError`."""


@dataclass(frozen=True)
class Run:
    """One run: all that its result depends on.

    - `settings`: its place on the axes of the sweep.
    - `problem`: the whole problem file, settings applied.
    - `name`: of the problem.
    - `budget`: in seconds; `reference`: also solve classically.
    """

    settings: Settings
    problem: str
    name: str
    seed: int
    target: float
    budget: float
    reference: bool

    @property
    def id(self) -> str:
        """A name made of the content: equal runs of any sweep have the same."""
        content = [
            self.problem,
            self.seed,
            self.target,
            self.budget,
            self.reference,
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """All the runs of a sweep, and how they are to be run.

    - `jobs`: of each scheduler.
    - `batch`: whether a process takes runs that differ only in seeds and parameters.
    """

    title: str
    axes: tuple[Axis, ...]
    runs: tuple[Run, ...]
    resources: Resources
    jobs: dict[str, Jobs]
    batch: Batch = Batch.NEVER

    def run(self, name: str) -> Run:
        """The run whose id begins with `name`.

        Raises `ProblemError` where none or several do.
        """
        found = [r for r in self.runs if r.id.startswith(name)]
        if len(found) != 1:
            what = "no run" if not found else f"{len(found)} runs"
            raise ProblemError(f"{what} of this sweep begin with {name!r}")
        return found[0]


def make_plan(experiment: Experiment, lookup: Lookup) -> Plan:
    """The runs of an experiment, in the order of its axes.

    Raises `ProblemError` for a combination that makes no problem, and for an
    experiment that leaves no combination.
    """
    runs: dict[str, Run] = {}
    for settings in combinations(experiment.axes, experiment.exclusions):
        run = make_run(experiment, settings, lookup)
        if run.id in runs:
            message = (
                f"two combinations are the same run: {described(settings)} and "
                f"{described(runs[run.id].settings)}"
            )
            raise ProblemError(message, key="axes")
        runs[run.id] = run
    if not runs:
        raise ProblemError("the exclusions leave no combination", key="exclude")
    return Plan(
        experiment.title,
        experiment.axes,
        tuple(runs.values()),
        experiment.resources,
        experiment.jobs,
        experiment.batch,
    )


def described(settings: Mapping[str, Value]) -> str:
    """Settings as people read them: `parameters.nu = 0.01, seed = 1`."""
    return ", ".join(f"{k} = {label(v)}" for k, v in settings.items())


def plan_table(plan: Plan) -> dict[str, object]:
    """The plan as an object that `json.dumps` takes."""
    return dataclasses.asdict(plan)


def read_plan(table: Mapping) -> Plan:
    """The plan back from `plan_table`.

    Raises `ProblemError` where the object is none.
    """
    try:
        axes = (
            Axis(tuple(a["keys"]), tuple(tuple(v) for v in a["values"]), a["name"])
            for a in table["axes"]
        )
        jobs = {name: _read_jobs(own) for name, own in table["jobs"].items()}
        return Plan(
            table["title"],
            tuple(axes),
            tuple(Run(**r) for r in table["runs"]),
            Resources(**table["resources"]),
            jobs,
            _read_batch(table.get("batch", False)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProblemError(f"the plan of this sweep is damaged: {error}") from error


def _read_batch(value: object) -> Batch:
    """Also from a plan of an older version, which has a boolean."""
    return read_batch(value) if isinstance(value, bool) else Batch(str(value))


def _read_jobs(table: Mapping) -> Jobs:
    setup, extra = (tuple(table[key]) for key in ("setup", "extra"))
    return dataclasses.replace(Jobs(**table), setup=setup, extra=extra)


def make_run(experiment: Experiment, settings: Settings, lookup: Lookup) -> Run:
    """The run of one combination.

    Raises `ProblemError` where it makes no problem.
    """
    every = experiment.fixed | settings
    path = _problem_path(str(every["problem"]), experiment.folder, lookup)
    changes = {k: v for k, v in every.items() if k not in OF_A_RUN}
    try:
        problem = load_problem(path, changes)
    except ProblemError as error:
        raise ProblemError(f"with {described(settings)}:\n{error}") from error
    return Run(
        settings=settings,
        problem=problem.source,
        name=problem.name,
        seed=int(str(every.get("seed", 0))),
        target=float(str(every.get("target", DEFAULT_TARGET))),
        budget=span(every.get("budget", DEFAULT_BUDGET), "budget"),
        reference=experiment.reference,
    )


def _problem_path(name: str, folder: Path, lookup: Lookup) -> Path:
    beside = folder / name
    return beside if beside.is_file() else lookup(name)
