"""Checkpoints under faults of disks and under signals."""

import os
import signal
from pathlib import Path

import pytest
from disk import folder_gone, full_disk, no_space, read_only
from test_resume import RUN, small_snapshot

from pinnlab.checkpoint import read_checkpoint
from pinnlab.errors import Preempted
from pinnlab.keeper import Keeper
from pinnlab.signals import listening
from pinnlab.snapshot import Position


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pinnlab.keeper.PERIOD", 0.0)
    monkeypatch.setattr("pinnlab.keeper.SHARE", 0.0)


DISK = [full_disk, no_space, read_only]


def keeper(**options):
    said = []
    found = Keeper(Path.cwd() / "run.ckpt", say=said.append, **options)
    found.start(RUN)
    return found, said


def position(path):
    return read_checkpoint(path, RUN).snapshot.position


def at(done):
    return small_snapshot(position=Position(1, done))


@pytest.mark.parametrize("fault", [*DISK, folder_gone])
def test_a_checkpoint_that_cannot_be_written_is_a_warning(fault, tmp_path):
    found, said = keeper()
    assert not found.pause(lambda: at(1))
    lost = at(2)
    with fault():
        assert not found.pause(lambda: lost)
        assert not found.pause(lambda: lost)
    assert len(said) == 1 and "no checkpoint could be written" in said[0]
    assert lost.record.events[-1] == said[0].removeprefix("warning: ")
    assert position(tmp_path / "run.ckpt") == Position(1, 1)
    assert not list(tmp_path.glob(".pinnlab-*"))
    assert not found.pause(lambda: at(3))
    assert position(tmp_path / "run.ckpt") == Position(1, 3)


def test_the_last_two_checkpoints_are_kept(tmp_path):
    found, _ = keeper()
    for done in range(4):
        found.pause(lambda done=done: at(done))
    assert {p.name for p in tmp_path.glob("run*")} == {"run.ckpt", "run.ckpt.1"}
    assert position(tmp_path / "run.ckpt.1").done == 2
    found.finish()
    assert not list(tmp_path.glob("run*"))


def test_a_run_that_wrote_no_checkpoint_removes_none(tmp_path):
    keeper()[0].pause(lambda: at(1))
    keeper()[0].finish()
    assert (tmp_path / "run.ckpt").exists()


def test_a_checkpoint_of_other_versions_is_used_with_a_warning(monkeypatch):
    keeper()[0].pause(lambda: at(1))
    monkeypatch.setattr("pinnlab.keeper.made_with", lambda: "jax 99")
    _, said = keeper(resume=True)
    assert "this is jax 99: the last bits may differ" in said[-1]


def test_a_damaged_checkpoint_gives_way_to_the_previous_one(tmp_path):
    found, _ = keeper()
    for done in range(2):
        found.pause(lambda done=done: at(done))
    newest = tmp_path / "run.ckpt"
    newest.write_bytes(newest.read_bytes()[:-100])
    again, said = keeper(resume=True)
    start = again.start(RUN)
    assert start is not None and start.position.done == 0
    assert any("is not used: its checksum is wrong" in s for s in said)
    assert said[-1].endswith("run.ckpt.1, iteration 30")


def test_without_a_checkpoint_resume_says_so(tmp_path):
    _, said = keeper(resume=True)
    assert len(said) == 1 and "starting anew" in said[0]


def test_a_new_run_says_what_it_will_replace(tmp_path):
    keeper()[0].pause(lambda: at(1))
    _, said = keeper()
    assert len(said) == 1 and "--resume would go on from it" in said[0]


def test_a_deleted_checkpoint_is_written_again(tmp_path):
    found, said = keeper()
    found.pause(lambda: at(1))
    (tmp_path / "run.ckpt").unlink()
    found.pause(lambda: at(2))
    assert position(tmp_path / "run.ckpt").done == 2
    assert not said


@pytest.mark.parametrize(
    ("sent", "ending"), [(signal.SIGTERM, Preempted), (signal.SIGUSR1, Preempted)]
)
def test_a_warning_of_the_system_leaves_a_checkpoint(sent, ending, tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring():
            os.kill(os.getpid(), sent)
            with pytest.raises(ending, match=f"{sent.name}: --resume goes on"):
                found.pause(lambda: at(5))
        with pytest.raises(ending, match=sent.name):
            os.kill(os.getpid(), sent)
    assert position(tmp_path / "run.ckpt").done == 5


def test_ctrl_c_leaves_a_checkpoint_and_a_second_one_does_not_wait(tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            assert found.pause(lambda: at(5))
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    assert position(tmp_path / "run.ckpt").done == 5


def test_stopped_with_nowhere_to_write_is_a_failure(tmp_path):
    with listening() as signals:
        found, _ = keeper(signals=signals)
        with found.deferring(), read_only():
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(OSError, match="SIGTERM, and no checkpoint could be"):
                found.pause(lambda: at(5))
