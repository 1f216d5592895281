"""Runs that differ only in numbers are one ensemble, each with a result of its own."""

import dataclasses
from contextlib import nullcontext
from pathlib import Path

import pytest
from test_sweep_experiment import planned

from pinnlab.cli.sweep_table import SweepProgress
from pinnlab.signals import Listener
from pinnlab.solution import Solution
from pinnlab.sweep import batch
from pinnlab.sweep.batches import waits
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.child import solve_spec
from pinnlab.sweep.drive import Tally
from pinnlab.sweep.folder import (
    State,
    batches,
    files,
    load_plan,
    read_error,
    record_error,
    save_plan,
    state,
    write_json,
)
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.supervise import Job, Outcome, supervise


AXES = """batch = true
[axes]
"parameters.r" = [1, 2.5]
solver.network.width = [4, 6]
seed = [0, 1]
"""


def in_folder(folder: Path, text: str) -> Plan:
    save_plan(folder, planned(folder, text))
    return load_plan(folder)


def test_a_process_takes_along_the_runs_that_nobody_works_on(tmp_path, monkeypatch):
    plan = in_folder(tmp_path, AXES)
    assert plan.batch
    first, *_ = plan.runs
    like = [r for r in plan.runs if r.settings["solver.network.width"] == 4]
    assert len(like) == 4
    assert all((batch.kind(r) == batch.kind(first)) == (r in like) for r in plan.runs)
    _, leased, done, free = like
    files(tmp_path, done.id).result.touch()
    asked = []

    def lost(members, *, target, budget, reference, progress, keeper):
        assert not keeper.resume and keeper.path == files(tmp_path, first.id).checkpoint
        held = [state(tmp_path, r.id) for r in like]
        asked.append(([m.seed for m in members], budget, held))
        return [FloatingPointError(f"seed {m.seed} is lost") for m in members]

    monkeypatch.setattr(batch, "solve_members", lost)
    with claimed(files(tmp_path, leased.id).lease):
        solve_spec(tmp_path, first.id, Listener())
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
    save_plan(tmp_path, dataclasses.replace(plan, batch=False))
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
    with claimed(files(tmp_path, third.id).lease) if held else nullcontext():
        solve_spec(tmp_path, first.id, Listener())
    assert asked == [(False, 120.0, 2, False) if held else (True, 180.0, 3, True)]


def test_the_time_left_is_told_after_whole_batches(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("pinnlab.cli.sweep_table.PERIOD", 0.0)
    runs = in_folder(tmp_path, AXES).runs
    progress = SweepProgress(tmp_path, {r.id: batch.kind(r) for r in runs})
    ended = sorted(runs, key=batch.kind)
    said = []
    for done in (0, 1, 3, 4, 5):
        left = len(runs) - done
        progress.update(Tally(left, done, 0, 0, 1.0), ended[done:])
        said.append(" left" in capsys.readouterr().err)
    assert said == [False, False, False, True, True]


def test_a_plan_says_nothing_of_batches_where_it_is_old(tmp_path):
    assert not in_folder(tmp_path, AXES.replace("batch = true\n", "")).batch


@pytest.mark.slow
def test_a_batch_leaves_a_result_for_each_run(tmp_path):
    text = 'batch = true\nbudget = "4s"\nreference = false\n[axes]\nseed = [3, 4]\n'
    text += "[solver]\niterations = 10\npoints = 32\nstrategy = 'nonlinear'\n"
    plan = in_folder(tmp_path, text + "[solver.network]\nwidth = 5\n")
    solve_spec(tmp_path, plan.runs[0].id, Listener())
    for run in plan.runs:
        solution = Solution.load(files(tmp_path, run.id).result)
        assert solution.seed == run.seed
        assert solution.report.rel_l2 is not None
        assert not solution.report.members
