"""Runs that differ only in numbers are one ensemble, each with a result of its own."""

import dataclasses
import json
import math
from contextlib import nullcontext
from pathlib import Path

import pytest
from test_sweep_engine import driven, saved, standing_in
from test_sweep_experiment import planned
from typer.testing import CliRunner

from pinnlab.cli.main import app
from pinnlab.cli.sweep_table import SweepProgress
from pinnlab.errors import Preempted, ProblemError
from pinnlab.record import Observation
from pinnlab.signals import Listener
from pinnlab.solution import Solution
from pinnlab.sweep import batch, child
from pinnlab.sweep.alike import batched, in_words, kind
from pinnlab.sweep.batches import waits
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.checks import check_plan
from pinnlab.sweep.child import solve_spec
from pinnlab.sweep.drive import Ending, Tally
from pinnlab.sweep.folder import (
    State,
    batches,
    drivers,
    files,
    load_plan,
    read_error,
    record_error,
    save_plan,
    state,
    write_json,
)
from pinnlab.sweep.going import Going, going
from pinnlab.sweep.plan import Plan, plan_table, read_plan
from pinnlab.sweep.pools import settled
from pinnlab.sweep.sharing import Batch
from pinnlab.sweep.supervise import Job, Outcome, supervise


AXES = """batch = true
[axes]
"parameters.r" = [1, 2.5]
solver.network.width = [4, 6]
seed = [0, 1]
[solver]
strategy = "nonlinear"
iterations = 10
"""
IN_TURN = "batch = true\nreference = false\n[axes]\nseed = [0, 1, 2]\n"


def in_folder(folder: Path, text: str) -> Plan:
    save_plan(folder, planned(folder, text))
    return load_plan(folder)


def test_a_process_takes_along_the_runs_that_nobody_works_on(tmp_path, monkeypatch):
    plan = in_folder(tmp_path, AXES)
    assert plan.batch is Batch.ALWAYS
    first, *_ = plan.runs
    like = [r for r in plan.runs if r.settings["solver.network.width"] == 4]
    assert len(like) == 4
    assert all((kind(r) == kind(first)) == (r in like) for r in plan.runs)
    _, leased, done, free = like
    files(tmp_path, done.id).result.touch()
    asked = []

    def lost(members, *, target, budget, reference, keeper, watch, keepers, done):
        assert not keeper.resume and keeper.path == files(tmp_path, first.id).checkpoint
        held = [state(tmp_path, r.id) for r in like]
        watch(1, Observation("adam", 3, 15.0, 1.0, 4e-3, None))
        found = going(tmp_path, free.id)
        assert found == Going("adam", 3, 15.0, 60.0, 4e-3)
        assert going(tmp_path, first.id) is None
        asked.append(([m.seed for m in members], budget, held))
        return [FloatingPointError(f"seed {m.seed} is lost") for m in members]

    monkeypatch.setattr(batch, "solve_members", lost)
    with claimed(files(tmp_path, leased.id).lease):
        solve_spec(tmp_path, first.id, Listener(), tuple(r.id for r in like[1:]))
    held = [State.MISSING, State.RUNNING, State.DONE, State.RUNNING]
    assert asked == [([first.seed, free.seed], 120.0, held)]
    assert [state(tmp_path, r.id) for r in like] == [
        State.FAILED, State.MISSING, State.DONE, State.FAILED,
    ]  # fmt: skip
    assert read_error(tmp_path, free.id) == f"seed {free.seed} is lost"
    assert not batches(tmp_path)


def test_the_runs_of_a_batch_with_a_checkpoint_wait_for_it(tmp_path):
    plan = in_folder(tmp_path, AXES)
    first, second, third, *_ = (r.id for r in plan.runs)
    own = files(tmp_path, first)
    write_json(own.batch, {"runs": [first, second]})
    assert not waits(tmp_path, second)
    own.checkpoint.touch()
    found = [waits(tmp_path, r) for r in (first, second, third)]
    assert found == [False, True, False]
    job = Job(str(tmp_path), second, "nobody", 1, 0.0)
    assert supervise(job) is Outcome.BUSY
    record_error(tmp_path, first, "time", "took too long")
    assert not waits(tmp_path, second)
    own.error.unlink()
    save_plan(tmp_path, plan)
    assert waits(tmp_path, second)
    save_plan(tmp_path, dataclasses.replace(plan, batch=Batch.NEVER))
    assert not own.checkpoint.exists() and not batches(tmp_path)


@pytest.mark.parametrize("held", [False, True])
def test_a_batch_goes_on_with_the_same_runs_or_starts_anew(held, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "PATIENCE", 0.1)
    monkeypatch.setattr(batch, "BEAT", 0.1)
    plan = in_folder(tmp_path, AXES)
    like = [r for r in plan.runs if r.settings["solver.network.width"] == 4]
    first, second, third, _ = like
    own = files(tmp_path, first.id)
    write_json(own.batch, {"runs": [first.id, third.id, second.id]})
    own.checkpoint.touch()
    files(tmp_path, second.id).result.touch()
    asked = []

    def lost(members, *, budget, keeper, **rest):
        asked.append((keeper.resume, budget, len(members), own.checkpoint.exists()))
        return [FloatingPointError("lost")] * len(members)

    monkeypatch.setattr(batch, "solve_members", lost)
    others = tuple(r.id for r in like[1:]) if held else ()
    with claimed(files(tmp_path, third.id).lease) if held else nullcontext():
        solve_spec(tmp_path, first.id, Listener(), others)
    assert asked == [(False, 120.0, 2, False) if held else (True, 180.0, 3, True)]


def test_the_time_left_is_told_after_whole_batches(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pinnlab.cli.sweep_table.PERIOD", 0.0)
    runs = in_folder(tmp_path, AXES).runs
    progress = SweepProgress(tmp_path)
    said = []
    for done in (0, 1, 3, 4, 5):
        left = len(runs) - done
        batches = [b for b in (runs[done:4], runs[max(4, done) :]) if b]
        progress.update(Tally(left, done, 0, 0, 1.0), batches)
        said.append(" left" in capsys.readouterr().err)
    assert said == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("old", "read"),
    [
        ({}, Batch.NEVER),
        ({"batch": False}, Batch.NEVER),
        ({"batch": True}, Batch.ALWAYS),
    ],
)
def test_an_old_plan_says_what_it_said(old, read, tmp_path):
    plan = in_folder(tmp_path, AXES.replace("batch = true\n", ""))
    assert plan.batch is Batch.AUTO
    table = {k: v for k, v in plan_table(plan).items() if k != "batch"}
    assert read_plan(table | old).batch is read


TRAINS = """
[solver]
strategy = "nonlinear"
iterations = 10
points = 32
network.width = 4
"""
SEEDS = "[axes]\nseed = { lin = [0, 19], n = 20 }\n"


def sizes(folder: Path, text: str, workers: int, seconds: float = math.inf):
    plan = planned(folder, f"reference = false\n{text}")
    found = batched(plan.runs, plan, workers, seconds)
    assert sorted(r.id for b in found for r in b) == sorted(r.id for r in plan.runs)
    assert all(kind(r) == kind(b[0]) for b in found for r in b)
    return [len(b) for b in found]


def test_runs_share_processes_unasked_and_leave_no_worker_idle(tmp_path):
    text = SEEDS + TRAINS
    assert sizes(tmp_path, text, 1) == [7, 7, 6]
    assert sizes(tmp_path, text, 4) == [5] * 4
    assert sizes(tmp_path, text, 20) == [1] * 20
    assert sizes(tmp_path, "batch = true\n" + text, 4) == [20]
    assert sizes(tmp_path, "batch = false\n" + text, 4) == [1] * 20
    # Runs of two kinds, each of which has a worker.
    kinds = AXES.replace("batch = true\n", "")
    assert sizes(tmp_path, kinds, 2) == [4, 4]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("iterations = 10", 'iterations = 10\nsecond_stage = "on"'), 1),
        (("iterations = 10", ""), 1),  # A second stage may follow.
        (("iterations = 10", 'second_stage = "off"'), 7),
        (('strategy = "nonlinear"', 'strategy = "separable"'), 1),
        ((TRAINS, f"{TRAINS}[resources]\ntime = '5m'\n"), 4),
        ((TRAINS, f"{TRAINS}[resources]\nmemory = '300MB'\n"), 7),
        ((TRAINS, f"{TRAINS}[resources]\nmemory = '250MB'\n"), 1),
        (("[axes]", "budget = '2m'\n[axes]"), 1),
        ((TRAINS, f"{TRAINS}[resources]\ngpus = 1\n"), 20),
    ],
)
def test_runs_share_a_process_only_where_that_pays(change, found, tmp_path):
    text = (SEEDS + TRAINS).replace(*change)
    assert max(sizes(tmp_path, text, 1)) == found


def test_batches_that_nobody_asked_for_fit_into_the_jobs_of_a_cluster(tmp_path):
    text = SEEDS + TRAINS
    assert max(sizes(tmp_path, text, 1, 160.0)) == 2
    jobs = '[slurm]\nwalltime = "280s"'
    plan = planned(tmp_path, f"reference = false\n{text}{jobs}")
    assert settled("slurm", plan) == (plan, 160.0)
    assert settled("local", plan) == (plan, math.inf)
    # Who does not know the other drivers of a folder takes one run after another.
    assert settled("runner", plan)[0].batch is Batch.NEVER
    asked = dataclasses.replace(plan, batch=Batch.ALWAYS)
    assert settled("runner", asked)[0] is asked


def test_what_cannot_be_a_batch_is_refused_where_one_is_asked_for(tmp_path):
    text = TRAINS + 'second_stage = "on"'
    plan = planned(tmp_path, f"batch = true\n[axes]\nseed = [0, 1]\n{text}")
    with pytest.raises(ProblemError, match=r"batch: .*no second stage"):
        check_plan(plan, tmp_path / "out")
    with pytest.raises(ProblemError, match='true, false or "auto"'):
        planned(tmp_path, "batch = 2\n[axes]\nseed = [0, 1]")


@pytest.mark.parametrize(("batch", "said"), [("'auto'", "4 of 4"), ("false", "each")])
def test_a_dry_run_says_which_runs_share_a_process(batch, said, tmp_path):
    planned(tmp_path, f"batch = {batch}\n[axes]\nseed = [0, 1, 2, 3]\n{TRAINS}")
    words = [str(tmp_path / "growth.toml"), "-o", str(tmp_path / "new")]
    found = CliRunner().invoke(app, ["sweep", *words, "--dry-run", "--workers", "2"])
    assert found.exit_code == 0, found.output
    assert f"{said} run" in found.stderr
    assert ("2 in one compiled program; 2 processes" in found.stderr) == (
        said != "each"
    )
    assert in_words([]).startswith("each run")


# Leaves the results of all its runs, or dies after the first, and says how many it had.
SEVERAL = """
import sys
for run in sys.argv[2:][:MOST]:
    open(sys.argv[1] + "/runs/" + run + ".h5", "w").close()
with open(sys.argv[1] + "/started", "a") as file:
    file.write(str(len(sys.argv) - 2))
"""


@pytest.mark.parametrize(("most", "started"), [("99", "22"), ("1", "2121")])
def test_what_a_process_takes_along_is_not_started_again(
    most, started, tmp_path, monkeypatch
):
    standing_in(monkeypatch, SEVERAL.replace("MOST", most))
    axes = "seed = [0, 1, 2, 3]"
    plan, folder = saved(tmp_path, axes, TRAINS), tmp_path / "out"
    assert driven(folder, plan) == Ending(4, 0, False)
    found = (folder / "started").read_text()
    assert sorted(found) == sorted(started)


def test_runs_that_fail_together_are_solved_alone(tmp_path, monkeypatch):
    plan = in_folder(tmp_path, AXES)
    first, second, *_ = (r.id for r in plan.runs)
    asked = []

    def too_large(members, **rest):
        raise MemoryError("all together")

    def alone(problem, *, seed, **rest):
        asked.append(seed)
        raise FloatingPointError("alone")

    monkeypatch.setattr(batch, "solve_members", too_large)
    monkeypatch.setattr("pinnlab.solver.solve", alone)
    monkeypatch.setattr(child, "_end_with_the_input", lambda: None)
    child.main(tmp_path, first, (second,))
    assert asked == [plan.runs[0].seed] and read_error(tmp_path, first) == "alone"
    assert state(tmp_path, second) is State.MISSING and not batches(tmp_path)


def test_what_a_search_does_not_want_any_more_is_not_written(tmp_path, monkeypatch):
    plan = in_folder(tmp_path, AXES)
    first, second, *_ = (r.id for r in plan.runs)

    def lost(members, **rest):
        write_json(files(tmp_path, second).pruned, {})
        return [FloatingPointError("lost")] * len(members)

    monkeypatch.setattr(batch, "solve_members", lost)
    solve_spec(tmp_path, first, Listener(), (second,))
    assert state(tmp_path, first) is State.FAILED
    assert state(tmp_path, second) is State.PRUNED
    assert not files(tmp_path, second).error.exists()


def test_what_is_done_in_a_batch_is_not_done_again(tmp_path, monkeypatch):
    runs = in_folder(tmp_path, IN_TURN).runs
    first, second, third = (r.id for r in runs)
    asked = []

    def stopped(members, *, keepers, done, **rest):
        resumed = [k.resume for k in keepers]
        held = [state(tmp_path, r.id) is State.RUNNING for r in runs]
        asked.append(([m.seed for m in members], resumed, held))
        done(0, FloatingPointError("lost"))
        keepers[1].path.touch()
        raise Preempted("stopped")

    monkeypatch.setattr(batch, "solve_members", stopped)
    for name, along in ((first, (second, third)), (second, (third,))):
        with pytest.raises(Preempted):
            solve_spec(tmp_path, name, Listener(), along)
    assert asked == [
        ([0, 1, 2], [False, False, False], [False, True, True]),
        ([1, 2], [True, False], [False, False, True]),
    ]
    found = [state(tmp_path, r.id) for r in runs]
    assert found == [State.FAILED, State.FAILED, State.MISSING]
    assert not batches(tmp_path) and not waits(tmp_path, third)


# The solver, ended as soon as the first run of a batch has its result.
ENDED = """
import os, sys
from pathlib import Path
from pinnlab.sweep import batch, child
save = batch._save
def last(folder, run, solved):
    save(folder, run, solved)
    os.kill(os.getpid(), 9)
batch._save = last
child.main(Path(sys.argv[1]), sys.argv[2], tuple(sys.argv[3:]))
"""


def test_a_batch_that_was_ended_leaves_what_was_done(tmp_path, monkeypatch):
    standing_in(monkeypatch, ENDED)
    plan, folder = planned(tmp_path, IN_TURN.replace(", 2", "")), tmp_path / "out"
    save_plan(folder, plan)
    first, second = (r.id for r in plan.runs)
    (drivers(folder) / "driver-a").write_text(json.dumps({"machine": ""}))
    job = Job(str(folder), first, "driver-a", 1, 0.0, (second,))
    assert supervise(job) is Outcome.DONE
    assert [state(folder, r.id) for r in plan.runs] == [State.DONE, State.MISSING]
    kept = files(folder, first).result
    before = kept.stat().st_mtime_ns
    assert driven(folder, plan, 1) == Ending(2, 0, False)
    assert kept.stat().st_mtime_ns == before
    seeds = [Solution.load(files(folder, r.id).result).seed for r in plan.runs]
    assert seeds == [0, 1]


def test_seeds_are_solved_by_one_process_unasked(tmp_path):
    axes = "seed = [3, 4]"
    plan, folder = saved(tmp_path, axes, TRAINS), tmp_path / "out"
    assert driven(folder, plan, 1) == Ending(2, 0, False)
    first, second = (files(folder, r.id) for r in plan.runs)
    assert first.log.exists() and not second.log.exists()
    for run in plan.runs:
        solution = Solution.load(files(folder, run.id).result)
        assert solution.seed == run.seed and solution.report.cost.iterations == 10
        assert not solution.report.members
