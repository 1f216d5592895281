"""A search: trials that Optuna asks for, each a run of the sweep's folder.

Only the driver talks to Optuna. Its journal in the folder and the runs themselves are
all there is: a driver that starts again takes up what the last one left.
"""

import dataclasses
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pinnlab.errors import ProblemError
from pinnlab.sweep.axes import Axis
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.design import Factor
from pinnlab.sweep.experiment import Experiment
from pinnlab.sweep.folder import (
    PLAN,
    State,
    drivers,
    files,
    load_plan,
    save_plan,
    state,
    write_json,
)
from pinnlab.sweep.going import going
from pinnlab.sweep.plan import Lookup, Plan, Run, make_run
from pinnlab.sweep.ranges import Range
from pinnlab.sweep.search import JOURNAL, TRIAL, Search
from pinnlab.sweep.supervise import Outcome
from pinnlab.sweep.table import Row, read_row
from pinnlab.sweep.values import Settings


if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

INSTALL = "pip install 'pinnlab-jax[search]'"
PARTS = 10
"""A run is compared with others at each tenth of its budget."""
STARTING = 2
"""The first of these parts at which one is stopped."""
COMPARED = 5
"""Runs that must have ended before one is stopped."""


def probing(experiment: Experiment, lookup: Lookup) -> Plan:
    """A plan with every end of a range and every choice of a search, to be checked.

    Raises `ProblemError` for one that makes no problem, and without Optuna.
    """
    require_optuna()
    base: Settings = {}
    for factor in experiment.factors:
        base |= _ends(factor)[0]
    found = [base | end for f in experiment.factors for end in _ends(f)]
    runs = [make_run(experiment, settings, lookup) for settings in found]
    return _plan(experiment, tuple({run.id: run for run in runs}.values()))


def require_optuna() -> None:
    """Raise `ProblemError` where Optuna is not installed."""
    if find_spec("optuna") is None:
        raise ProblemError(f"[search] needs Optuna: {INSTALL}")


@contextmanager
def searching(
    experiment: Experiment, lookup: Lookup, folder: Path
) -> Iterator["Trials"]:
    """The search in a folder, which is made; no other driver may work on it.

    Raises `ProblemError` where another driver searches there, or for something else.
    """
    require_optuna()
    runs = load_plan(folder).runs if (folder / PLAN).is_file() else ()
    save_plan(folder, _plan(experiment, runs))
    with claimed(drivers(folder) / "search") as lease:
        if lease is None:
            raise ProblemError(f"{folder}: another driver is searching here")
        yield Trials(experiment, lookup, folder)


class Trials:
    """The trials of a search, as work for a driver."""

    def __init__(self, experiment: Experiment, lookup: Lookup, folder: Path):
        assert experiment.search is not None
        self._experiment = experiment
        self._search: Search = experiment.search
        self.again = f"the same command (pinnlab sweep EXPERIMENT.toml -o {folder})"
        self._lookup = lookup
        self._folder = folder
        self._runs = {r.id: r for r in load_plan(folder).runs}
        self._open: dict[str, list[Trial]] = {}
        self._space = {_name(f): _distribution(f) for f in experiment.factors}
        self._study = _study(experiment, self._search, folder)
        self._left_open = _running(self._study)
        trials = self._study.get_trials(deepcopy=False)
        self._told = {t.number: max(t.intermediate_values, default=0) for t in trials}
        self.total = max(self._search.trials, len(trials))

    @property
    def waiting(self) -> int:
        """Trials that were not asked for yet, and those that an earlier driver left."""
        asked = len(self._study.get_trials(deepcopy=False))
        return self.total - asked + len(self._left_open)

    def more(self, busy: int, size: int) -> list[Run]:
        """The next trials, as many as there is place for."""
        found: list[Run] = []
        while self.waiting and busy + len(found) < size:
            trial = self._left_open.pop() if self._left_open else self._asked()
            run = self._run(trial)
            first = run.id not in self._open
            self._open.setdefault(run.id, []).append(trial)
            outcome = OUTCOMES.get(state(self._folder, run.id))
            if outcome is not None:
                self.ended(run, outcome)  # These settings were tried before.
            elif first:
                found.append(run)
        return found

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Tell what came out of the trials of a run."""
        from optuna.trial import TrialState

        row = read_row(self._folder, run)
        value = objective(row, self._search)
        for trial in self._open.pop(run.id, []):
            if outcome is Outcome.PRUNED:
                self._study.tell(trial, state=TrialState.PRUNED)
            elif outcome is Outcome.DONE and value < math.inf:
                # A run that met its target early is known at all later parts too.
                self._report(trial, PARTS, row.residual)
                self._study.tell(trial, value)
            else:
                self._study.tell(trial, state=TrialState.FAIL)

    def look(self) -> None:
        """Stop those runs that are hopeless."""
        for run, trials in self._open.items():
            found = going(self._folder, run)
            if found is None or math.isnan(found.heldout):
                continue
            for trial in trials:
                self._report(trial, int(PARTS * found.share), found.heldout)
                if self._search.prune and trial.should_prune():
                    reason = (
                        f"after {found.elapsed:.0f} s its held-out residual of "
                        f"{found.heldout:.1e} was above the median of the others"
                    )
                    write_json(files(self._folder, run).pruned, {"message": reason})
                    break

    @property
    def objective(self) -> str:
        """What is made small."""
        return self._search.objective

    def best(self) -> tuple[Run, float] | None:
        """The run with the smallest objective; None before one is known."""
        found = [
            (value, run.id)
            for run in self._runs.values()
            if (value := objective(read_row(self._folder, run), self._search))
            < math.inf
        ]
        return (self._runs[min(found)[1]], min(found)[0]) if found else None

    def _asked(self) -> "Trial":
        return self._study.ask(self._space)

    def _run(self, trial: "Trial") -> Run:
        """The run of a trial, which is in the folder's plan then."""
        settings: Settings = {}
        for factor in self._experiment.factors:
            settings |= _settings(factor, trial.params[_name(factor)])
        run = make_run(self._experiment, settings, self._lookup)
        if run.id not in self._runs:
            self._runs[run.id] = run
            save_plan(self._folder, _plan(self._experiment, tuple(self._runs.values())))
        return self._runs[run.id]

    def _report(self, trial: "Trial", part: int, heldout: float) -> None:
        """Tell the held-out residual at all parts of the budget up to this one."""
        for i in range(self._told.get(trial.number, 0) + 1, part + 1):
            self._told[trial.number] = i
            trial.report(heldout, i)


OUTCOMES = {
    State.DONE: Outcome.DONE,
    State.FAILED: Outcome.FAILED,
    State.PRUNED: Outcome.PRUNED,
}


def objective(row: Row, search: Search) -> float:
    """What a search makes small; infinity where it is not known."""
    name, _, seconds = search.objective.partition("*")
    errors = (row.rel_l2, row.estimate) if name == "error" else (row.residual,)
    value = next((e for e in errors if e >= 0), math.inf)
    found = value * row.train_seconds if seconds else value
    return math.inf if math.isnan(found) else found


def _plan(experiment: Experiment, runs: tuple[Run, ...]) -> Plan:
    keys = tuple(k for f in experiment.factors for k in f.keys)
    rows = (tuple(r.settings[k] for k in keys) for r in runs)
    axis = Axis(keys, tuple(dict.fromkeys(rows)), TRIAL)
    return Plan(experiment.title, (axis,), runs, experiment.resources, experiment.jobs)


def _study(experiment: Experiment, search: Search, folder: Path) -> "Study":
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
    study = optuna.create_study(
        storage=storage, study_name="search", direction="minimize", load_if_exists=True
    )
    _check_same(study, experiment, search, folder)
    # With the seed alone a driver that starts again would repeat the first trials.
    seed = np.random.SeedSequence([search.seed, len(study.trials)])
    study.sampler = optuna.samplers.TPESampler(seed=int(seed.generate_state(1)[0]))
    study.pruner = optuna.pruners.MedianPruner(COMPARED, STARTING)
    return study


def _check_same(
    study: "Study", experiment: Experiment, search: Search, folder: Path
) -> None:
    """Raise `ProblemError` where the folder has a search for something else."""
    asked = {
        "objective": search.objective,
        "axes": json.dumps([dataclasses.astuple(f) for f in experiment.factors]),
        "fixed settings": json.dumps([experiment.fixed, experiment.reference]),
    }
    found = study.user_attrs.get("search")
    if found is None:
        study.set_user_attr("search", asked)
        return
    for name, value in asked.items():
        if found[name] != value:
            raise ProblemError(
                f"{folder}: holds a search with other {name}",
                hint="choose another folder with -o",
            )


def _running(study: "Study") -> list["Trial"]:
    """What an earlier driver asked for and did not live to tell."""
    from optuna.trial import Trial, TrialState

    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [Trial(study, t._trial_id) for t in reversed(found)]


def _ends(factor: Factor) -> list[Settings]:
    if isinstance(factor.choices, Range):
        return [factor.at(0.0), factor.at(1.0)]
    return [dict(zip(factor.keys, row, strict=True)) for row in factor.choices]


def _distribution(factor: Factor) -> "BaseDistribution":
    from optuna import distributions as d

    found = factor.choices
    if not isinstance(found, Range):
        # Rows of several settings are known to Optuna by their number alone.
        return d.CategoricalDistribution(list(range(len(found))))
    low, high = sorted((found.low, found.high))
    if found.whole:
        return d.IntDistribution(round(low), round(high), log=found.log)
    return d.FloatDistribution(low, high, log=found.log)


def _name(factor: Factor) -> str:
    return ", ".join(factor.keys)


def _settings(factor: Factor, value: float) -> Settings:
    if isinstance(factor.choices, Range):
        return {factor.keys[0]: value}
    return dict(zip(factor.keys, factor.choices[int(value)], strict=True))
