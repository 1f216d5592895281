"""A search: trials that Optuna asks for, each a run of the sweep's folder, or several.

Only the driver talks to Optuna. Its journal in the folder and the runs themselves are
all there is: a driver that starts again takes up what the last one left.
"""

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pinnlab.errors import ProblemError
from pinnlab.sweep.alike import Runs, batched
from pinnlab.sweep.axes import left_out
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.candidates import (
    place_of,
    plan_of,
    require_optuna,
    runs_of,
    without_seed,
)
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
from pinnlab.sweep.plan import Lookup, Run
from pinnlab.sweep.search import Search
from pinnlab.sweep.study import chosen, hopeless, left_running, open_study, space
from pinnlab.sweep.supervise import OUTCOMES, Outcome
from pinnlab.sweep.table import Row, read_row
from pinnlab.sweep.values import Settings


if TYPE_CHECKING:
    from optuna.trial import Trial

PARTS = 10
"""A run is compared with others at each tenth of its budget."""
EXCLUDED = "excluded"
MOST_EXCLUDED = 1000


@contextmanager
def searching(
    experiment: Experiment, lookup: Lookup, folder: Path, seconds: float = math.inf
) -> Iterator["Trials"]:
    """The search in a folder, which is made; no other driver may work on it.

    **Arguments:**

    - `seconds`: that a process should take at most.

    Raises `ProblemError` where another driver searches there, or for something else.
    """
    require_optuna()
    runs = load_plan(folder).runs if (folder / PLAN).is_file() else ()
    save_plan(folder, plan_of(experiment, runs))
    with claimed(drivers(folder) / "search") as lease:
        if lease is None:
            raise ProblemError(f"{folder}: another driver is searching here")
        yield Trials(experiment, lookup, folder, seconds)


@dataclass
class _Open:
    """A trial that has not ended: its runs, one for each seed, and how they ended."""

    trial: "Trial"
    runs: tuple[Run, ...]
    ended: dict[str, Outcome] = field(default_factory=dict)

    @property
    def working(self) -> list[Run]:
        return [r for r in self.runs if r.id not in self.ended]


@dataclass(frozen=True)
class Best:
    """The settings with the smallest objective, and their runs, one for each seed."""

    settings: Settings
    value: float
    runs: tuple[Run, ...]


class Trials:
    """The trials of a search, as work for a driver."""

    def __init__(
        self, experiment: Experiment, lookup: Lookup, folder: Path, seconds: float
    ):
        assert experiment.search is not None
        self._experiment = experiment
        self._search: Search = experiment.search
        self.again = f"the same command (pinnlab sweep EXPERIMENT.toml -o {folder})"
        self._lookup = lookup
        self._folder = folder
        self._runs = {r.id: r for r in load_plan(folder).runs}
        self._study = open_study(experiment, self._search, folder)
        self._left_open = left_running(self._study)
        self._open: list[_Open] = []
        self._queue: list[Runs] = []
        self._seconds = seconds
        self._curves: dict[str, list[float]] = {}
        self._trials = max(self._search.trials, self._asked)

    @property
    def total(self) -> int:
        """The number of runs, one for each trial and seed."""
        return self._trials * self._search.repetitions

    @property
    def waiting(self) -> int:
        """Runs that were not given out: also those that an earlier driver left."""
        return self._unasked * self._search.repetitions + sum(map(len, self._queue))

    def more(self, busy: int, size: int) -> list[Runs]:
        """The runs of the next trials, as many as there is place for.

        The seeds of a trial are a batch where they can be one.
        """
        found: list[Runs] = []
        while self.waiting and busy + len(found) < size:
            if self._queue:
                found.append(self._queue.pop(0))
            else:
                self._begin(self._next())
        return found

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Tell what came out of the trials of a run."""
        for one in [o for o in self._open if run.id in [r.id for r in o.working]]:
            one.ended[run.id] = outcome
            if outcome is Outcome.DONE:
                # A run that met its target early is known at all later parts too.
                self._follow(one, run, PARTS, read_row(self._folder, run).residual)
            self._judge(one)

    def look(self) -> None:
        """Stop those runs that are hopeless."""
        for one in self._open:
            for run in one.working:
                found = going(self._folder, run.id)
                if found is None or math.isnan(found.heldout):
                    continue
                self._follow(one, run, int(PARTS * found.share), found.heldout)
                if self._search.prune and hopeless(self._study, self._curves[run.id]):
                    reason = (
                        f"after {found.elapsed:.0f} s its held-out residual of "
                        f"{found.heldout:.1e} was above the median of the others"
                    )
                    self._stop(run, reason)

    @property
    def objective(self) -> str:
        """What is made small."""
        over = self._search.repetitions
        median = f" (median of {over} seeds)" if over > 1 else ""
        return self._search.objective + median

    def best(self) -> Best | None:
        """The settings with the smallest objective; None before one is known."""
        groups: dict[str, list[Run]] = {}
        for run in self._runs.values():
            groups.setdefault(place_of(run), []).append(run)
        found = []
        for place, runs in groups.items():
            values = [self._value(r, state(self._folder, r.id)) for r in runs]
            if len(runs) == self._search.repetitions:
                found.append((statistics.median(values), place))
        value, place = min(found, default=(math.inf, ""))
        if value == math.inf:
            return None
        runs = tuple(groups[place])
        return Best(without_seed(runs[0].settings), value, runs)

    @property
    def _unasked(self) -> int:
        return self._trials - self._asked + len(self._left_open)

    @property
    def _asked(self) -> int:
        """Trials of which there are runs."""
        found = self._study.get_trials(deepcopy=False)
        return sum(EXCLUDED not in t.user_attrs for t in found)

    def _next(self) -> "Trial":
        """One that an earlier driver left, or a new one.

        Raises `ProblemError` where the exclusions leave out one after another.
        """
        from optuna.trial import TrialState

        for _ in range(MOST_EXCLUDED):
            known = self._left_open.pop() if self._left_open else None
            trial = known or self._study.ask(space(self._experiment))
            settings = chosen(self._experiment, trial)
            if not left_out(settings, self._experiment.exclusions):
                return trial
            trial.set_user_attr(EXCLUDED, True)
            # As a bad one: Optuna should look elsewhere.
            self._study.tell(trial, state=TrialState.PRUNED)
        message = f"{MOST_EXCLUDED} trials one after another are left out"
        raise ProblemError(message, key="exclude")

    def _begin(self, trial: "Trial") -> None:
        """Put the runs of a trial into the queue, but what is done or at work."""
        settings = chosen(self._experiment, trial)
        runs = runs_of(self._experiment, settings, self._lookup)
        new = [r for r in runs if r.id not in self._runs]
        if new:
            self._runs |= {r.id: r for r in new}
            save_plan(
                self._folder, plan_of(self._experiment, tuple(self._runs.values()))
            )
        working = {r.id for o in self._open for r in o.working}
        self._open.append(_Open(trial, runs))
        queue: list[Run] = []
        for run in runs:
            self._curves.setdefault(run.id, trial.user_attrs.get(run.id, []))
            outcome = OUTCOMES.get(state(self._folder, run.id))
            if outcome is not None:
                self.ended(run, outcome)  # These settings were tried before.
            elif run.id not in working:
                queue.append(run)
        self._queue += batched(queue, plan_of(self._experiment, ()), 1, self._seconds)

    def _follow(self, one: _Open, run: Run, part: int, heldout: float) -> None:
        """Note the held-out residual at all parts of the budget up to this one."""
        curve = self._curves[run.id]
        if len(curve) < part and math.isfinite(heldout):
            curve += [heldout] * (part - len(curve))
            one.trial.set_user_attr(run.id, curve)

    def _judge(self, one: _Open) -> None:
        """Tell the outcome of a trial whose runs have ended; stop one that is lost."""
        from optuna.trial import TrialState

        values = [self._value(r, one.ended.get(r.id)) for r in one.runs]
        value = statistics.median(values)
        if one.working:
            if value == math.inf and self._search.prune:
                for run in one.working:
                    self._stop(run, "most of the same settings' runs are lost already")
            return
        self._open.remove(one)
        if value < math.inf:
            self._report(one)
            self._study.tell(one.trial, value)
        elif Outcome.PRUNED in one.ended.values():
            self._report(one)
            self._study.tell(one.trial, state=TrialState.PRUNED)
        else:
            self._study.tell(one.trial, state=TrialState.FAIL)

    def _report(self, one: _Open) -> None:
        """Tell the median over the runs at each part, a lost run being the worst."""
        for part in range(PARTS):
            curves = [self._curves[r.id] for r in one.runs]
            values = [c[part] if part < len(c) else math.inf for c in curves]
            if (value := statistics.median(values)) < math.inf:
                one.trial.report(value, part + 1)

    def _value(self, run: Run, ended: Outcome | State | None) -> float:
        """The objective of a run: 0 before its end, infinity where it is lost."""
        if ended in (Outcome.DONE, State.DONE):
            return objective(read_row(self._folder, run), self._search)
        return 0.0 if ended is None else math.inf

    def _stop(self, run: Run, reason: str) -> None:
        write_json(files(self._folder, run.id).pruned, {"message": reason})


def objective(row: Row, search: Search) -> float:
    """What a search makes small; infinity where it is not known."""
    name, _, seconds = search.objective.partition("*")
    errors = (row.rel_l2, row.estimate) if name == "error" else (row.residual,)
    value = next((e for e in errors if e >= 0), math.inf)
    found = value * row.train_seconds if seconds else value
    return math.inf if math.isnan(found) else found
