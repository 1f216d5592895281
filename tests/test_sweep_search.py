"""A search: finds what is good, stops what is hopeless, goes on after its driver."""

import dataclasses
import io
import json
import math
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from synthetic import make_result
from test_sweep_engine import Silent, eventually, saved, standing_in
from test_sweep_experiment import PROBLEM, no_gallery
from test_sweep_resume import PATIENT
from typer.testing import CliRunner

from pinnlab.cli.main import app
from pinnlab.cli.sweep_table import live_table
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import write_result
from pinnlab.record import Observation
from pinnlab.result import FieldError
from pinnlab.sweep import supervise
from pinnlab.sweep.candidates import probing
from pinnlab.sweep.dataset import read_dataset
from pinnlab.sweep.drive import Ending, drive_work
from pinnlab.sweep.experiment import Experiment, load_experiment
from pinnlab.sweep.folder import (
    State,
    drivers,
    files,
    load_plan,
    read_json,
    record_error,
    state,
    write_json,
)
from pinnlab.sweep.going import Going, Reporter, going
from pinnlab.sweep.pools import Pool
from pinnlab.sweep.supervise import Job, Outcome
from pinnlab.sweep.table import collect
from pinnlab.sweep.trials import Trials, searching


optuna = pytest.importorskip("optuna")

SEARCH = """
problem = "logistic.toml"
reference = false
[axes]
parameters.r = { log = [0.01, 100] }
solver.network.width = { lin = [4, 8] }
solver.network.activation = ["tanh", "sin"]
[search]
trials = 20
"""


def written(folder: Path, text: str = SEARCH) -> Experiment:
    (folder / "logistic.toml").write_text(PROBLEM)
    path = folder / "growth.toml"
    path.write_text(text)
    return load_experiment(path)


def error_of(folder: Path, run: str) -> float:
    """Smallest at r = 1: what the runs of these tests come to."""
    problem = read_json(files(folder, run).spec)["problem"]
    found = re.search(r"^r = (\S+)", problem, re.M)
    assert found is not None
    return 1e-4 + math.log10(float(found[1])) ** 2


def solved(job: Job) -> Outcome:
    folder = Path(job.folder)
    error = error_of(folder, job.run)
    if error > 3.5:
        record_error(folder, job.run, "ArithmeticError", "diverged")
        return Outcome.FAILED
    leave(folder, job.run, error)
    return Outcome.DONE


def leave(folder: Path, run: str, error: float) -> None:
    result = make_result({"t": np.linspace(0, 1, 9)})
    report = dataclasses.replace(
        result.report, fields=(FieldError("u", error, error, "exact"),), verdict="fail"
    )
    result = dataclasses.replace(result, report=report)
    write_result(files(folder, run).result, result, force=True)


def at_once(work: Callable[[Job], Outcome], size: int = 2) -> Pool:
    def submit(job: Job) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(work(job))
        return future

    return Pool(size, submit)


def refused(job: Job) -> Outcome:
    pytest.fail(f"{job.run} was done already")


def driven(experiment: Experiment, folder: Path, pool: Pool) -> tuple[Ending, Trials]:
    with searching(experiment, no_gallery, folder) as trials:
        ending = drive_work(folder, experiment.resources, trials, pool, Silent())
        return ending, trials


def test_a_search_finds_the_best_settings(tmp_path: Path):
    experiment, folder = written(tmp_path), tmp_path / "out"
    ending, trials = driven(experiment, folder, at_once(solved))
    assert ending.done + ending.failed == 20 and not ending.stopped
    best = trials.best()
    assert best is not None
    errors = [error_of(folder, r.id) for r in load_plan(folder).runs]
    assert best.value == pytest.approx(min(errors)) and len(best.runs) == 1
    assert 0.3 < float(str(best.settings["parameters.r"])) < 3
    # It looks where it is good: the second half is better than the first, at random.
    assert np.median(errors[10:]) < np.median(errors[:10])
    widths = [r.settings["solver.network.width"] for r in load_plan(folder).runs]
    assert all(w in (4, 5, 6, 7, 8) for w in widths)
    collect(folder, load_plan(folder))
    assert read_dataset(folder / "sweep.h5").dims == {"trial": len(errors)}

    # The same again has nothing to do; more trials go on.
    again, _ = driven(experiment, folder, at_once(refused))
    assert again == Ending(20, 0, False)
    more = written(tmp_path, SEARCH.replace("trials = 20", "trials = 22"))
    driven(more, folder, at_once(solved))
    found = [r.id for r in load_plan(folder).runs]
    assert len(found) == 22 and len(set(found)) == 22


def test_a_search_leaves_out_what_is_excluded(tmp_path: Path):
    text = SEARCH + '[[exclude]]\nparameters.r = "< 1"\nsolver.network.width = "< 8"'
    experiment, folder = written(tmp_path, text), tmp_path / "out"
    ends = probing(experiment, no_gallery).runs
    assert [r.settings["parameters.r"] for r in ends] == [100, 0.01]
    ending, _ = driven(experiment, folder, at_once(solved))
    assert ending.done + ending.failed == 20
    settings = [r.settings for r in load_plan(folder).runs]
    assert all(
        float(str(s["parameters.r"])) >= 1 or s["solver.network.width"] == 8
        for s in settings
    )
    again, _ = driven(experiment, folder, at_once(refused))
    assert again == Ending(20, 0, False)


def test_a_search_goes_on_with_what_a_dead_driver_left(tmp_path: Path):
    text = SEARCH.replace("trials = 20", "trials = 6")
    experiment, folder = written(tmp_path, text), tmp_path / "out"
    with searching(experiment, no_gallery, folder) as trials:
        asked = {
            r.id for batch in trials.more(0, 3) for r in batch
        }  # The driver dies here.
    began: list[str] = []

    def work(job: Job) -> Outcome:
        began.append(job.run)
        return solved(job)

    ending, _ = driven(experiment, folder, at_once(work))
    assert ending.done + ending.failed == 6
    assert asked <= set(began) and len(began) == len(set(began)) == 6
    found = journal(folder)
    assert len(found) == 6 and all(t.state.is_finished() for t in found)


def test_a_hopeless_run_is_stopped_and_recorded(tmp_path: Path):
    text = SEARCH.replace("trials = 20", "trials = 8")
    experiment, folder = written(tmp_path, text), tmp_path / "out"
    begun: list[str] = []

    def work(job: Job) -> Outcome:
        """The last run is a hundred times worse than the others, and endless."""
        begun.append(job.run)
        if len(begun) < 8:
            return tested(job)
        own = files(folder, job.run)
        write_json(own.going, dataclasses.asdict(Going("adam", 9, 5.0, 10.0, 1.0)))
        assert eventually(own.pruned.exists)
        return Outcome.PRUNED

    def tested(job: Job) -> Outcome:
        result = make_result({"t": np.linspace(0, 1, 9)})
        write_result(files(folder, job.run).result, result)
        return Outcome.DONE

    with ThreadPoolExecutor(1) as threads:
        pool = Pool(1, lambda job: threads.submit(work, job))
        ending, _ = driven(experiment, folder, pool)
    assert ending == Ending(7, 0, False)
    assert state(folder, begun[-1]) is State.PRUNED
    assert "above the median" in read_json(files(folder, begun[-1]).pruned)["message"]
    rows = collect(folder, load_plan(folder))
    assert [r.state for r in rows].count("pruned") == 1


REPEATED = SEARCH.replace("trials = 20", "trials = 8") + "seeds = 3\n"


def solved_by(seed: int) -> float:
    """How many times the error of seed 1 another seed has."""
    return {0: 1e-3, 1: 1.0, 2: 1e3}[seed]


def repeated(job: Job, lost: tuple[int, ...] = ()) -> Outcome:
    folder = Path(job.folder)
    seed = int(read_json(files(folder, job.run).spec)["seed"])
    if seed in lost:
        record_error(folder, job.run, "ArithmeticError", "diverged")
        return Outcome.FAILED
    error = error_of(folder, job.run) * solved_by(seed)
    leave(folder, job.run, error)
    return Outcome.DONE


def journal(folder: Path) -> list:
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(folder / "search.journal"))
    )
    return optuna.load_study(study_name="search", storage=storage).trials


def test_a_trial_is_judged_by_the_median_over_its_seeds(tmp_path: Path):
    experiment, folder = written(tmp_path, REPEATED), tmp_path / "out"
    ending, trials = driven(experiment, folder, at_once(repeated))
    assert ending == Ending(24, 0, False)
    runs = load_plan(folder).runs
    assert [r.seed for r in runs] == [0, 1, 2] * 8
    best = trials.best()
    assert best is not None and [r.seed for r in best.runs] == [0, 1, 2]
    assert best.value == pytest.approx(min(error_of(folder, r.id) for r in runs))
    assert "seed" not in best.settings and "median of 3 seeds" in trials.objective
    found = [t.value for t in journal(folder)]
    assert found == pytest.approx([error_of(folder, r.id) for r in runs[::3]])
    collect(folder, load_plan(folder))
    table = read_dataset(folder / "sweep.h5")
    assert table.dims == {"trial": 8, "seed": 3}
    assert np.isfinite(table.variables["rel_l2"]).all()

    # An axis of seeds says the same.
    text = REPEATED.replace("seeds = 3\n", "").replace(
        "[search]", "seed = [0, 1, 2]\n[search]"
    )
    again, _ = driven(written(tmp_path, text), folder, at_once(refused))
    assert again == Ending(24, 0, False)


@pytest.mark.parametrize(("lost", "state_"), [((1,), "COMPLETE"), ((0, 1), "FAIL")])
def test_a_seed_that_is_lost_counts_as_the_worst(
    lost: tuple[int, ...], state_: str, tmp_path: Path
):
    experiment, folder = written(tmp_path, REPEATED), tmp_path / "out"
    begun: list[str] = []

    def work(job: Job) -> Outcome:
        if files(Path(job.folder), job.run).pruned.exists():
            return Outcome.PRUNED
        begun.append(job.run)
        return repeated(job, lost)

    ending, trials = driven(experiment, folder, at_once(work, 1))
    found = journal(folder)
    if len(lost) == 1:
        assert ending == Ending(16, 8, False) and trials.best() is not None
        runs = load_plan(folder).runs
        expected = [1e3 * error_of(folder, r.id) for r in runs[::3]]
        assert [t.value for t in found] == pytest.approx(expected)
        return
    # The third run of each trial cannot change its median any more.
    assert ending == Ending(0, 16, False) and len(begun) == 16
    assert trials.best() is None
    assert {state(folder, r.id) for r in load_plan(folder).runs[2::3]} == {State.PRUNED}
    assert len(found) == 8 and all(t.state.is_finished() for t in found)


def test_a_repeated_search_goes_on_in_the_middle_of_a_trial(tmp_path: Path):
    experiment, folder = written(tmp_path, REPEATED), tmp_path / "out"
    with searching(experiment, no_gallery, folder) as trials:
        (first,), (second,), *_ = trials.more(0, 4)
        repeated(Job(str(folder), first.id, "", 1, 0.0))
        trials.ended(first, Outcome.DONE)  # The driver dies here.
    began: list[str] = []

    def work(job: Job) -> Outcome:
        began.append(job.run)
        return repeated(job)

    ending, _ = driven(experiment, folder, at_once(work))
    assert ending == Ending(24, 0, False)
    assert first.id not in began and second.id in began and len(began) == 23
    assert all(t.state.is_finished() for t in journal(folder))


def test_one_hopeless_seed_is_stopped_and_its_trial_goes_on(tmp_path: Path):
    experiment, folder = written(tmp_path, REPEATED), tmp_path / "out"
    begun: list[str] = []

    def work(job: Job) -> Outcome:
        """The first seed of the last trial is a hundred times worse, and endless."""
        begun.append(job.run)
        if len(begun) != 22:
            leave(folder, job.run, 1e-3)
            return Outcome.DONE
        own = files(folder, job.run)
        write_json(own.going, dataclasses.asdict(Going("adam", 9, 5.0, 10.0, 1.0)))
        assert eventually(own.pruned.exists)
        return Outcome.PRUNED

    with ThreadPoolExecutor(1) as threads:
        pool = Pool(1, lambda job: threads.submit(work, job))
        ending, _ = driven(experiment, folder, pool)
    assert ending == Ending(23, 0, False) and len(begun) == 24
    assert state(folder, begun[21]) is State.PRUNED
    assert [t.value for t in journal(folder)] == [1e-3] * 8


TOGETHER = f"""{REPEATED}
[solver]
strategy = "nonlinear"
iterations = 10
"""


def test_the_seeds_of_a_trial_are_one_batch(tmp_path: Path):
    experiment, folder = written(tmp_path, TOGETHER), tmp_path / "out"
    began: list[int] = []

    def work(job: Job) -> Outcome:
        names = (job.run, *job.along)
        began.append(len(names))
        found = [repeated(dataclasses.replace(job, run=n), (0,)) for n in names]
        return found[0]

    ending, trials = driven(experiment, folder, at_once(work))
    assert began == [3] * 8 and ending == Ending(16, 8, False)
    best = trials.best()
    assert best is not None and len(best.runs) == 3
    assert [t.state.name for t in journal(folder)] == ["COMPLETE"] * 8

    # Asked for it is done too, forbidden it is not.
    for batch, size in (("true", 3), ("false", 1)):
        own = written(tmp_path, f"batch = {batch}\n{TOGETHER}")
        with searching(own, no_gallery, tmp_path / batch) as trials:
            assert {len(b) for b in trials.more(0, 4)} == {size}
    with pytest.raises(ProblemError, match=r"add search\.seeds = 3"):
        written(tmp_path, "batch = true\n" + TOGETHER.replace("seeds = 3", ""))


def test_a_batch_is_ended_when_all_its_seeds_are_hopeless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, PATIENT)
    monkeypatch.setattr("pinnlab.sweep.supervise.LOOK", 0.1)
    monkeypatch.setattr("pinnlab.sweep.supervise.POLL", 0.05)
    plan, folder = saved(tmp_path, "seed = [0, 1]"), tmp_path / "out"
    first, second = (r.id for r in plan.runs)
    write_json(files(folder, first).batch, {"runs": [first, second]})
    (drivers(folder) / "driver-a").write_text(json.dumps({"machine": ""}))
    job = Job(str(folder), first, "driver-a", 1, 0.0, (second,))
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(supervise.supervise, job)
        assert eventually((folder / "started").exists)
        files(folder, first).checkpoint.touch()
        write_json(files(folder, first).pruned, {})
        with pytest.raises(TimeoutError):
            outcome.result(0.5)
        write_json(files(folder, second).pruned, {})
        assert outcome.result(30) is Outcome.PRUNED
    assert not files(folder, first).checkpoint.exists()
    assert not files(folder, first).batch.exists()
    assert not (folder / "asked").exists()


def test_the_process_of_a_pruned_run_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, PATIENT)
    plan, folder = saved(tmp_path, "seed = [0]"), tmp_path / "out"
    run = plan.runs[0].id
    (drivers(folder) / "driver-a").write_text(json.dumps({"machine": ""}))
    job = Job(str(folder), run, "driver-a", 1, 0.0)
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(supervise.supervise, job)
        assert eventually((folder / "started").exists)
        write_json(files(folder, run).pruned, {})
        assert outcome.result(30) is Outcome.PRUNED
    assert supervise.supervise(job) is Outcome.PRUNED
    assert not (folder / "asked").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[0.01, 100]", "[0.1, 100]"), "other axes"),
        (("reference =", "budget = 5\nreference ="), "other fixed settings"),
        (("trials = 20", 'trials = 3\nobjective = "residual"'), "other objective"),
        (("trials = 20", "trials = 3\nseeds = 5"), "other seeds"),
    ],
)  # fmt: skip
def test_another_search_in_the_same_folder_is_refused(
    change: tuple[str, str], words: str, tmp_path: Path
):
    folder = tmp_path / "out"
    with searching(written(tmp_path), no_gallery, folder):
        pass
    other = written(tmp_path, SEARCH.replace(*change))
    with (
        pytest.raises(ProblemError, match=f"holds a search with {words}"),
        searching(other, no_gallery, folder),
    ):
        pass


def test_one_driver_searches_at_a_time(tmp_path: Path):
    experiment, folder = written(tmp_path), tmp_path / "out"
    with (
        searching(experiment, no_gallery, folder),
        pytest.raises(ProblemError, match="another driver is searching"),
        searching(experiment, no_gallery, folder),
    ):
        pass


def test_every_end_and_choice_is_checked_before_a_search(tmp_path: Path):
    runs = probing(written(tmp_path), no_gallery).runs
    settings = [tuple(r.settings.values()) for r in runs]
    assert settings == [(0.01, 4, "tanh"), (100, 4, "tanh"), (0.01, 8, "tanh"),
                        (0.01, 4, "sin")]  # fmt: skip


def test_without_optuna_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pinnlab.sweep.candidates.find_spec", lambda name: None)
    with pytest.raises(ProblemError, match=r"pinnlab-jax\[search\]"):
        probing(written(tmp_path), no_gallery)


def test_a_run_says_how_it_goes_on_and_a_table_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pinnlab.sweep.going.PERIOD", 0.0)
    plan, folder = saved(tmp_path, "parameters.r = [1, 2]"), tmp_path / "out"
    reporter = Reporter(files(folder, plan.runs[1].id).going)
    reporter.update(Observation("adam", 1, 2.0, 1.0, 3e-3, None), 60.0)
    reporter.update(Observation("adam", 2, 15.0, 1.0, 4e-3, None), 60.0)
    found = going(folder, plan.runs[1].id)
    assert found is not None and found.share == 0.25
    assert found == Going("adam", 2, 15.0, 60.0, 3e-3)
    terminal = Console(file=io.StringIO(), width=100)
    terminal.print(live_table(folder, "1 to go", plan.runs))
    assert isinstance(terminal.file, io.StringIO)
    lines = terminal.file.getvalue().splitlines()
    assert lines[0].strip() == "1 training, 1 to go" and len(lines) == 2
    for word in (plan.runs[1].id[:8], "r 2", "45 s left", "held-out 3.0e-03"):
        assert word in lines[1]


@pytest.mark.slow
def test_a_search_from_the_command_line(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = SEARCH.replace("trials = 20", 'trials = 3\nobjective = "error*seconds"')
    written(tmp_path, text.replace("reference", "target = 1e-6\nreference"))
    found = CliRunner().invoke(app, ["sweep", "growth.toml", "--workers", "2"])
    assert found.exit_code == 0, found.output
    assert "3 trials; 2 at one time" in found.output
    assert "smallest error*seconds" in found.output
    again = CliRunner().invoke(app, ["sweep", "resume", "growth"])
    assert again.exit_code == 2 and "holds a search" in again.output


REAL = """
problem = "logistic.toml"
target = 1e-14
budget = "6s"
reference = false
[axes]
parameters.r = { lin = [1.0, 2.0] }
solver.optimizer = ["adam", "levenberg_marquardt"]
[solver]
strategy = "nonlinear"
points = 64
[search]
trials = 9
objective = "residual"
"""


@pytest.mark.slow
def test_hopeless_runs_of_the_solver_are_stopped_early(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, REAL)
    found = CliRunner().invoke(app, ["sweep", "growth.toml", "--workers", "2"])
    assert found.exit_code == 1, found.output  # No run reaches this target.
    folder = tmp_path / "growth"
    rows = collect(folder, load_plan(folder))
    states = [r.state for r in rows]
    assert len(rows) == 9 and set(states) == {"done", "pruned"}
    assert states.count("done") >= 5  # Before that none is compared.
    assert f"{states.count('pruned')} pruned, 0 to go" in found.output
    done = np.array([r.residual for r in rows if r.state == "done"])
    for row in (r for r in rows if r.state == "pruned"):
        own = files(folder, row.id)
        said = read_json(own.pruned)["message"]
        seconds, residual = re.findall(r"(\d\S*) s .* of (\S+) was", said)[0]
        assert 1 <= float(seconds) < 6 and float(residual) > done.min()
        assert not own.result.exists() and not own.going.exists()
        assert not list(own.lease.parent.iterdir())
    best = min(rows, key=lambda r: r.residual if r.state == "done" else math.inf)
    assert f"(run {best.id})" in found.output
