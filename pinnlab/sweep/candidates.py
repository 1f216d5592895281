"""What a search may choose: the runs of settings, and the plan of all of them."""

from importlib.util import find_spec

from pinnlab.errors import ProblemError
from pinnlab.sweep.axes import Axis, left_out
from pinnlab.sweep.dataset import SEED
from pinnlab.sweep.design import Factor
from pinnlab.sweep.experiment import Experiment
from pinnlab.sweep.plan import Lookup, Plan, Run, make_run
from pinnlab.sweep.ranges import Range
from pinnlab.sweep.search import TRIAL
from pinnlab.sweep.values import Settings, label


INSTALL = "pip install 'pinnlab-jax[search]'"


def probing(experiment: Experiment, lookup: Lookup) -> Plan:
    """A plan with every end of a range and every choice of a search, to be checked.

    Raises `ProblemError` for one that makes no problem, and without Optuna.
    """
    require_optuna()
    base: Settings = {}
    for factor in experiment.factors:
        base |= _ends(factor)[0]
    every = [base | end for f in experiment.factors for end in _ends(f)]
    found = [s for s in every if not left_out(s, experiment.exclusions)]
    if not found:
        raise ProblemError("the exclusions leave none of the ends", key="exclude")
    runs = [runs_of(experiment, settings, lookup)[0] for settings in found]
    return plan_of(experiment, tuple({run.id: run for run in runs}.values()))


def require_optuna() -> None:
    """Raise `ProblemError` where Optuna is not installed."""
    if find_spec("optuna") is None:
        raise ProblemError(f"[search] needs Optuna: {INSTALL}")


def plan_of(experiment: Experiment, runs: tuple[Run, ...]) -> Plan:
    """The trials as one axis, and the seeds as another where trials are repeated."""
    keys = tuple(k for f in experiment.factors for k in f.keys)
    rows = {place_of(r): tuple(r.settings[k] for k in keys) for r in runs}
    seeds = experiment.search.seeds if experiment.search else ()
    repeated = (Axis((SEED,), tuple((s,) for s in seeds)),) if seeds else ()
    axes = Axis(keys, tuple(rows.values()), TRIAL), *repeated
    own = experiment
    return Plan(own.title, axes, runs, own.resources, own.jobs, own.batch)


def runs_of(
    experiment: Experiment, settings: Settings, lookup: Lookup
) -> tuple[Run, ...]:
    """A run for each seed of the search, or with that of the experiment."""
    seeds = experiment.search.seeds if experiment.search else ()
    every = [settings | {SEED: seed} for seed in seeds] or [settings]
    return tuple(make_run(experiment, own, lookup) for own in every)


def place_of(run: Run) -> str:
    """What the runs of the same settings share."""
    return label(without_seed(run.settings))


def without_seed(settings: Settings) -> Settings:
    """The settings of a trial from those of one of its runs."""
    return {k: v for k, v in settings.items() if k != SEED}


def _ends(factor: Factor) -> list[Settings]:
    if isinstance(factor.choices, Range):
        return [factor.at(0.0), factor.at(1.0)]
    return [dict(zip(factor.keys, row, strict=True)) for row in factor.choices]
