"""Leases: one owner at a time, and none for longer than it lives."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from pinnlab.sweep.beacon import SILENCE, alive, claimed, gone, holder, lost, owner


HOLD = """
import sys, time
from pathlib import Path
from pinnlab.sweep.beacon import claimed
with claimed(Path(sys.argv[1])) as lease:
    print(lease is not None, flush=True)
    time.sleep(60)
"""


def holding(name: Path) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(name)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout and process.stdout.readline().strip() == "True"
    return process


def set_clock(beacon: Path, seconds: float) -> None:
    """Let a beacon look as if the clock had been set forward after its last beat."""
    then = time.time() - seconds
    os.utime(beacon, (then, then))


def test_a_lease_has_one_owner_and_leaves_nothing(tmp_path: Path):
    name = tmp_path / "run.lease"
    with claimed(name) as first, claimed(name) as second:
        assert first is not None and second is None
        assert holder(name) == first and str(os.getpid()) in owner(first)
    assert holder(name) is None and not list(tmp_path.iterdir())


def test_of_many_that_claim_at_once_one_wins(tmp_path: Path):
    name = tmp_path / "run.lease"
    with ExitStack() as stack, ThreadPoolExecutor(16) as threads:
        for round_ in range(20):
            claims = [claimed(name.with_suffix(f".{round_}x")) for _ in range(16)]
            found = list(threads.map(stack.enter_context, claims))
            assert sum(f is not None for f in found) == 1


def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path):
    name = tmp_path / "run.lease"
    process = holding(name)
    with claimed(name) as mine:
        assert mine is None
    process.kill()
    process.wait()
    with claimed(name) as mine:
        assert mine is not None and mine.name == "run.lease.2"
    assert not list(tmp_path.iterdir())


def test_an_owner_far_away_counts_as_dead_after_a_silence(tmp_path: Path):
    beacon = tmp_path / "run.lease.1"
    beacon.write_text('{"host": "n1", "pid": 1, "machine": "other", "started": "1"}')
    assert alive(beacon)
    set_clock(beacon, SILENCE + 1)
    assert not alive(beacon) and holder(tmp_path / "run.lease") is None


def test_who_was_silent_too_long_learns_that_the_lease_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # An owner that hangs: its process is there, its signs of life are not.
    monkeypatch.setattr("pinnlab.sweep.beacon._beat", lambda *_: None)
    monkeypatch.setattr("pinnlab.sweep.beacon.BEAT", 0.01)
    name = tmp_path / "run.lease"
    with claimed(name) as first:
        assert first is not None and not lost(first)
        set_clock(first, SILENCE + 1)
        with claimed(name) as second:
            assert second is not None and lost(first) and not lost(second)
        assert lost(first)


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_ends_no_lease(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pinnlab.sweep.beacon.BEAT", 0.2)
    name = tmp_path / "run.lease"
    with claimed(name) as first:
        assert first is not None
        set_clock(first, seconds)
        assert not alive(first)
        set_clock(first, seconds)
        assert not gone(first)
        set_clock(first, seconds)
        with claimed(name) as second:
            assert second is None
        assert not lost(first)


def test_a_dead_owner_is_found_although_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pinnlab.sweep.beacon.BEAT", 0.01)
    beacon = tmp_path / "run.lease.1"
    beacon.write_text('{"host": "n1", "pid": 1, "machine": "other", "started": "1"}')
    set_clock(beacon, -3600)
    with claimed(tmp_path / "run.lease") as mine:
        assert mine is not None


def test_a_beacon_that_is_removed_stays_removed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pinnlab.sweep.beacon.BEAT", 0.01)
    with claimed(tmp_path / "run.lease") as lease:
        assert lease is not None
        lease.unlink()
        time.sleep(0.1)
        assert not lease.exists() and lost(lease)
