"""An ensemble that was stopped goes on to the same bits, each member where it was."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from test_ensemble import prepared
from test_resume import RUN, Case, check_stops, history

import pinnlab.ensemble.state
import pinnlab.ensemble.train
from pinnlab.assembly import scaled_network_of
from pinnlab.checkpoint import read_checkpoint, write_checkpoint
from pinnlab.ensemble.programs import Layout
from pinnlab.ensemble.stack import stacked
from pinnlab.ensemble.train import train_members
from pinnlab.errors import ProblemError
from pinnlab.keeper import Keeper
from pinnlab.optimizer import LevenbergMarquardt
from pinnlab.programs import Stage
from pinnlab.record import Stop
from pinnlab.train import Limits


MAIN = Stage("main", LevenbergMarquardt(), 60, 2, True, 4)


@pytest.fixture
def compiled_once(monkeypatch):
    """The second run of a test uses the first one's programs."""
    known, compile_members = {}, pinnlab.ensemble.train.compile_members

    def remembered(stage, *others):
        if stage not in known:
            known[stage] = compile_members(stage, *others)
        return known[stage]

    monkeypatch.setattr(pinnlab.ensemble.train, "compile_members", remembered)


def trained(members, limits, start=None, pause=None):
    return train_members(
        stacked([m.objective for m in members]),
        jnp.stack([m.theta for m in members]),
        (MAIN,),
        limits,
        keys=jnp.stack([m.key for m in members]),
        layout=Layout(0),
        observe=lambda row: None,
        pause=pause,
        start=start,
    )


@pytest.mark.usefixtures("compiled_once")
def test_members_from_a_checkpoint_end_where_the_whole_run_ends(tmp_path, monkeypatch):
    members = [prepared(s, k, scaled_network_of) for s, k in ((3, 1.0), (4, 8.0))]
    limits, path = Limits(1e9, 1e-3, 0.0), tmp_path / "run.ckpt"
    taken = []

    def pause(take):
        """A checkpoint when one member has met its target and the other has not."""
        taken.append(take())
        stops = [np.asarray(taken[-1].arrays[f"{i}/stop"]).size for i in (0, 1)]
        if any(stops) and not path.exists():
            write_checkpoint(path, taken[-1], RUN)
        return False

    whole = trained(members, limits, pause=pause)
    assert path.exists()
    monkeypatch.setattr(pinnlab.ensemble.state, "SECONDS_A_CALL", 0.0)
    rest = trained(members, limits, start=read_checkpoint(path, RUN).snapshot)
    for a, b in zip(whole, rest, strict=True):
        assert a.stop is b.stop is Stop.TARGET
        assert a.record.iterations == b.record.iterations
        assert a.theta.tobytes() == b.theta.tobytes()
        assert a.heldout.tobytes() == b.heldout.tobytes()
        assert history(a.record.rows) == history(b.record.rows)
    assert len({t.record.iterations for t in whole}) == 2

    three = [*members, members[0]]
    with pytest.raises(ProblemError, match="the checkpoint does not fit"):
        trained(three, limits, start=read_checkpoint(path, RUN).snapshot)


def test_each_of_several_trainings_has_a_checkpoint_of_its_own(tmp_path: Path):
    keeper = Keeper(tmp_path / "run.ckpt")
    assert keeper.part(0) is keeper
    part = keeper.part(2)
    assert part.path == tmp_path / "run.2.ckpt"
    part.path.touch()
    part.owned = True
    keeper.finish()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_seeds_that_were_stopped_are_resumed_to_the_same_bits(tmp_path):
    faults = {"term=21": 75, "kill=40": -9, "int=60": 130}
    check_stops(tmp_path, Case("ssbroyden"), faults, "--seeds", "3")
