"""What Optuna knows of a search: its study in a journal, its parameters, its pruner."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pinnlab.errors import ProblemError
from pinnlab.sweep.design import Factor
from pinnlab.sweep.experiment import Experiment
from pinnlab.sweep.ranges import Range
from pinnlab.sweep.search import JOURNAL, Search
from pinnlab.sweep.values import Settings


if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

STARTING = 2
"""The first part of the budget at which a run is stopped."""
COMPARED = 5
"""Trials that must have ended before one is stopped."""


def open_study(experiment: Experiment, search: Search, folder: Path) -> "Study":
    """The study in a folder, made where there is none.

    Raises `ProblemError` where the folder has a search for something else.
    """
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
        "seeds": json.dumps(search.seeds),
        "exclusions": json.dumps([e.tests for e in experiment.exclusions]),
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


def hopeless(study: "Study", curve: list[float]) -> bool:
    """Whether a run should be stopped: it is worse than the median of the trials.

    **Arguments:**

    - `curve`: its held-out residual at each tenth of its budget up to now.
    """
    from optuna.trial import TrialState, create_trial

    if not curve:
        return False
    values = dict(enumerate(curve, start=1))
    own = create_trial(state=TrialState.RUNNING, intermediate_values=values)
    return study.pruner.prune(study, own)


def left_running(study: "Study") -> list["Trial"]:
    """What an earlier driver asked for and did not live to tell, the newest first."""
    from optuna.trial import Trial, TrialState

    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [Trial(study, t._trial_id) for t in reversed(found)]


def space(experiment: Experiment) -> dict[str, "BaseDistribution"]:
    """What may be chosen, by the name of each factor."""
    return {_name(f): _distribution(f) for f in experiment.factors}


def chosen(experiment: Experiment, trial: "Trial") -> Settings:
    """The settings of a trial."""
    found: Settings = {}
    for factor in experiment.factors:
        found |= _settings(factor, trial.params[_name(factor)])
    return found


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
