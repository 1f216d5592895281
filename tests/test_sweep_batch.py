"""Runs that differ only in numbers are one ensemble, each with a result of its own."""

from pathlib import Path

import pytest
from test_sweep_experiment import planned

from pinnlab.signals import Listener
from pinnlab.solution import Solution
from pinnlab.sweep import batch
from pinnlab.sweep.beacon import claimed
from pinnlab.sweep.child import solve_spec
from pinnlab.sweep.folder import State, files, load_plan, read_error, save_plan, state
from pinnlab.sweep.plan import Plan


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
    assert all(batch.alike(first, r) == (r in like) for r in plan.runs)
    _, leased, done, free = like
    files(tmp_path, done.id).result.touch()
    asked = []

    def lost(members, *, target, budget, reference):
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
