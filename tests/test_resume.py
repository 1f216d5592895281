"""A run that was stopped goes on to the same bits, whatever stopped it."""

import atexit
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import h5py
import jax
import numpy as np
import pytest
from test_train import DECAY, setup

import pinnlab.train
from pinnlab.checkpoint import Identity, kept, read_checkpoint, write_checkpoint
from pinnlab.hdf5 import read_result
from pinnlab.optimizer import (
    ENGDW,
    LBFGS,
    SPRING,
    Adam,
    LevenbergMarquardt,
    Muon,
    SketchedGaussNewton,
    SSBroyden,
)
from pinnlab.programs import Stage
from pinnlab.record import Observation, Record, Stop
from pinnlab.settings import OPTIMIZERS
from pinnlab.snapshot import Position, Snapshot
from pinnlab.train import Hooks, Limits, train


RUN = Identity('fields = ["u"]', "seed = 1", 3, 1e-4)
ROOT = Path(__file__).parents[1]
DRIVER = ROOT / "tests" / "faults" / "run.py"
CASE = """
coordinates = { t = [0, 2] }
fields = ["u"]
[equations]
growth = "dt(u) = 2*u*(1 - u)"
[conditions]
start = { on = "t = 0", equation = "u = 0.1" }
[solver]
redraw = 20"""


def stages(optimizer):
    return (
        Stage("adam", Adam(), 10, 10, False, 1),
        Stage("main", optimizer, 47, 20, True, 3),
    )


def trained(optimizer, start=None, pause=None):
    objective, theta = setup(points=32, width=4, text=DECAY, depth=1)
    return train(
        objective,
        theta,
        stages(optimizer),
        Limits(1e6, 0.0, 0.0),
        key=jax.random.key(5),
        hooks=Hooks(lambda row: None, pause=pause),
        start=start,
    )


def history(rows):
    """All columns but the time, as bytes: NaN is NaN."""
    columns = [
        [r.iteration for r in rows],
        [r.loss for r in rows],
        [r.heldout for r in rows],
    ]
    return [r.stage for r in rows], np.array(columns, float).tobytes()


@pytest.mark.parametrize(
    ("optimizer", "at"),
    [
        (SSBroyden(), 33),
        pytest.param(SSBroyden(), 4, marks=pytest.mark.slow),
        (LevenbergMarquardt(), 40),
        (LBFGS(), 21),
        (Adam(), 56),
        (Muon(), 18),
        (ENGDW(), 25),
        # Rows, 33 here, above which their kernel is approximated.
        pytest.param(ENGDW(most=20, rank=12), 37, marks=pytest.mark.slow),
        (SPRING(), 44),
        pytest.param(SPRING(most=20, rank=12), 15, marks=pytest.mark.slow),
        (SketchedGaussNewton(), 29),
        # A sketch of 16 rows, made anew in each step.
        pytest.param(
            SketchedGaussNewton(least=8, oversampling=2), 51, marks=pytest.mark.slow
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
)
@pytest.mark.usefixtures("compiled_once")
def test_a_run_from_a_checkpoint_ends_where_the_whole_run_ends(
    optimizer, at, tmp_path, monkeypatch
):
    path = tmp_path / "run.ckpt"

    def pause(take):
        snapshot = take()
        if snapshot.record.iterations >= at and not path.exists():
            write_checkpoint(path, snapshot, RUN)
        return False

    whole = trained(optimizer, pause=pause)
    # However many steps a call makes, which the clock decides.
    monkeypatch.setattr(pinnlab.train, "SECONDS_A_CALL", 0.0)
    rest = trained(optimizer, start=read_checkpoint(path, RUN).snapshot)
    assert whole.stop is rest.stop is Stop.ITERATIONS
    assert whole.record.iterations == rest.record.iterations == 57
    assert rest.theta.tobytes() == whole.theta.tobytes()
    assert rest.heldout.tobytes() == whole.heldout.tobytes()
    assert history(rest.record.rows) == history(whole.record.rows)


def small_snapshot(**changes):
    rng = np.random.default_rng(0)
    arrays = {
        "theta": rng.normal(size=7),
        "key": np.array([1, 2], np.uint32),
        "state/inverse_hessian": rng.normal(size=(7, 7)),
        "objective/blocks/0/points": rng.normal(size=(4, 2)).astype(np.float32),
    }
    rows = [
        Observation("adam", 10, 0.5, 1e-3, 2e-2, None),
        Observation("main", 20, 1.5, 1e-4, np.inf, 1e-2),
    ]
    record = Record(rows, ["lost once"], 2.5, 1.5, 30)
    found = Snapshot(Position(1, 20, 1, 0), arrays, record)
    return dataclasses.replace(found, **changes)


def same(a, b):
    return (
        a.position == b.position
        and a.record == b.record
        and a.complete == b.complete
        and {k: (v.dtype, v.tobytes()) for k, v in a.arrays.items()}
        == {k: (v.dtype, v.tobytes()) for k, v in b.arrays.items()}
    )


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, small_snapshot(), RUN)
    assert same(read_checkpoint(path, RUN).snapshot, small_snapshot())
    with h5py.File(path) as file:
        assert file.attrs["format"] == "pinnlab checkpoint"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"problem": "other"}, "another problem"),
        ({"settings": "points = 3"}, "another settings"),
        ({"seed": 4}, r"another seed \(3, this one has 4\)"),
        ({"target": 1e-3}, r"another target \(0.0001, this one has 0.001\)"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(other, words, tmp_path):
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, small_snapshot(), RUN)
    with pytest.raises(ValueError, match=words):
        read_checkpoint(path, dataclasses.replace(RUN, **other))


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, small_snapshot(), RUN)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for at in [0, 30, *rng.integers(512, len(whole), 40)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match="checksum"):
            read_checkpoint(path, RUN)
    for length in (0, 100, 512, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="checksum"):
            read_checkpoint(path, RUN)


def test_a_state_that_is_too_large_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("pinnlab.checkpoint.LARGEST_STATE", 300)
    path = tmp_path / "run.ckpt"
    write_checkpoint(path, small_snapshot(), RUN)
    found = read_checkpoint(path, RUN).snapshot
    assert not found.complete
    assert set(found.arrays) == {"theta", "key", "objective/blocks/0/points"}


@pytest.mark.slow
def test_training_goes_on_without_the_optimizers_state_and_says_so(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("pinnlab.checkpoint.LARGEST_STATE", 0)
    path = tmp_path / "run.ckpt"

    def pause(take):
        write_checkpoint(path, take(), RUN)
        return take().record.iterations > 30

    trained(SSBroyden(), pause=pause)
    rest = trained(SSBroyden(), start=read_checkpoint(path, RUN).snapshot)
    assert rest.stop is Stop.ITERATIONS and rest.record.iterations == 57
    assert "starts anew" in rest.record.events[-1]


def test_a_snapshot_of_another_objective_is_refused():
    objective, theta = setup(points=32, width=4, text=DECAY, depth=1)
    with pytest.raises(ValueError, match="'theta' is missing or of another shape"):
        train(
            objective,
            theta,
            (),
            Limits(1.0, 0.0, 0.0),
            key=jax.random.key(0),
            hooks=Hooks(lambda row: None),
            start=small_snapshot(),
        )


# ------------------------------------------------------------------ the command line


@cache
def programs() -> str:
    """A folder for what one process compiles and others of this file use."""
    folder = tempfile.mkdtemp(prefix="pinnlab-resume-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def command(folder: Path, fault: str, *options: str) -> subprocess.CompletedProcess:
    words = [sys.executable, str(DRIVER), fault, "solve", "case.toml", *options]
    words += ["--budget", "1h", "--target", "1e-13", "--no-plot", "--no-reference"]
    own = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": programs()}
    environment = os.environ | own
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True
    )


@dataclasses.dataclass(frozen=True)
class Case:
    """What a run is made with; a network of 5 units has 16 parameters."""

    optimizer: str
    iterations: int = 90
    points: int = 32
    width: int = 5
    depth: int = 1

    def written(self, folder: Path) -> Path:
        folder.mkdir()
        (folder / "case.toml").write_text(
            CASE
            + f"""
optimizer = "{self.optimizer}"
iterations = {self.iterations}
adam = 0
points = {self.points}
network = {{ width = {self.width}, depth = {self.depth} }}
"""
        )
        return folder


def assert_same_run(a: Path, b: Path) -> None:
    first, second = read_result(a / "case.h5"), read_result(b / "case.h5")
    assert min(r.report.cost.verify_seconds for r in (first, second)) > 0
    assert first.history_stage == second.history_stage
    for tables in ("model", "history", "variables"):
        one, two = getattr(first, tables), getattr(second, tables)
        assert one.keys() == two.keys()
        for name in one.keys() - {"time"}:
            assert one[name].tobytes() == two[name].tobytes(), name


def check_stops(
    tmp_path: Path, made: Case, faults: dict[str, int], *options: str
) -> None:
    """Each fault ends a run with its status; the last --resume ends the whole run."""
    whole = made.written(tmp_path / "whole")
    stopped = made.written(tmp_path / "stopped")
    found = command(whole, "none", *options)
    assert found.returncode == 1, found.stderr
    assert [p.name for p in sorted(whole.iterdir())] == ["case.h5", "case.toml"]
    for fault, status in faults.items():
        found = command(stopped, fault, "--resume", *options)
        assert found.returncode == status, found.stderr
        assert "Traceback" not in found.stderr
        assert kept(stopped / "case.ckpt")
    found = command(stopped, "none", "--resume", *options)
    assert found.returncode == 1, found.stderr
    assert "going on from case.ckpt" in found.stderr
    assert not kept(stopped / "case.ckpt")
    assert_same_run(whole, stopped)


@pytest.mark.slow
def test_a_killed_run_is_resumed_to_the_same_bits(tmp_path):
    check_stops(tmp_path, Case("ssbroyden"), {"kill=37": -9})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize(
    "optimizer", ["ssbroyden", "levenberg_marquardt", "lbfgs", "adam"]
)
def test_runs_stopped_at_random_are_resumed_to_the_same_bits(optimizer, seed, tmp_path):
    a, b, c, d, e = np.sort(np.random.default_rng(seed).integers(1, 90, 5))
    check_stops(
        tmp_path,
        Case(optimizer),
        {
            f"kill={a}": -9,
            f"term={b}": 75,
            f"usr1={c}": 75,
            "torn=2": -9,
            f"int={d}": 130,
            f"kill={e}": -9,
        },
    )


CASES = {
    **{o: Case(o, 40) for o in OPTIMIZERS},
    # 481 parameters: the sketch has 480 rows of 600.
    "sketch of few rows": Case("sketched_gauss_newton", 40, 600, 20, 2),
    # Above 3000 rows their kernel is approximated.
    "engd_w by directions": Case("engd_w", 20, 3100),
    "spring by directions": Case("spring", 20, 3100),
}
for name in ("auto", "least_squares", "gauss_newton"):
    del CASES[name]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("made", CASES.values(), ids=CASES)
def test_each_optimizer_killed_at_random_ends_at_the_same_bits(made, seed, tmp_path):
    rng = np.random.default_rng([seed, *made.optimizer.encode(), made.points])
    first, last = np.sort(rng.integers(1, made.iterations, 2))
    # Whatever it does then: a step, a look, or a checkpoint.
    moment = rng.integers(100)
    check_stops(tmp_path, made, {f"kill={first}": -9, f"later={last}.{moment}": -9})
