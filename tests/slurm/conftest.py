"""A cluster for the tests of this folder, or the reason why there is none."""

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from simulator import Slurm, why_not


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    reason = why_not()
    if importlib.util.find_spec("dask_jobqueue") is None:
        reason = "not installed: dask-jobqueue (pip install 'pinnlab-jax[cluster]')"
    if reason:
        # Where the tests must run, skipping them would hide that they did not.
        if os.environ.get("PINNLAB_NO_SKIPS"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Its sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        cluster = Slurm(Path(folder) / "sim")
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def idle(slurm: Slurm) -> Slurm:
    """The cluster with nothing left from the last test."""
    slurm.call("scancel", "-u", "root", "-Q")
    assert slurm.wait_idle()
    return slurm
