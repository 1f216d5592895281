"""What a cluster is told, and a sweep on the workers of a Dask scheduler."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sweep_engine import QUICK, Silent, saved, standing_in

from pinnlab.errors import ProblemError
from pinnlab.sweep.cluster import slurm_cluster
from pinnlab.sweep.drive import Ending, drive
from pinnlab.sweep.folder import files
from pinnlab.sweep.pools import check_place, open_pool


distributed = pytest.importorskip("distributed")
if importlib.util.find_spec("dask_jobqueue") is None:
    pytest.skip("dask-jobqueue is not installed", allow_module_level=True)

SLURM = """
[resources]
cpus = 3
gpus = 1
memory = "1.7GB"
[slurm]
partition = "fast"
account = "math"
walltime = "90m"
setup = ["module load cuda"]
extra = ["--constraint=a100"]
interface = "lo"
"""


@pytest.fixture
def scheduler() -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
        protocol="tcp",
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


def test_the_job_script_asks_for_what_the_experiment_says(tmp_path: Path):
    plan = saved(tmp_path, "seed = [0]", SLURM)
    with slurm_cluster(plan, tmp_path / "out") as cluster:
        script = cluster.job_script()
        assert cluster.security.require_encryption
    for line in (
        "#SBATCH -p fast",
        "#SBATCH -A math",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --mem=2G",
        "#SBATCH -t 01:30:00",
        "#SBATCH --gres=gpu:1",
        "#SBATCH --constraint=a100",
        "#SBATCH --no-requeue",
        "module load cuda",
    ):
        assert f"{line}\n" in script
    assert "--lifetime=5280s" in script and "--nthreads 1" in script
    assert (tmp_path / "out" / "jobs").stat().st_mode & 0o077 == 0


def test_a_walltime_too_short_for_a_run_is_refused(tmp_path: Path):
    text = "[slurm]\nwalltime = '3m'"
    plan = saved(tmp_path, "budget = ['10s', '2m']", text)
    with (
        pytest.raises(
            ProblemError,
            match=r"slurm\.walltime: 180 s are too short for a run of about 135 s",
        ),
        slurm_cluster(plan, tmp_path / "out"),
    ):
        pass


def test_a_sweep_on_a_dask_scheduler_that_runs_already(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, QUICK)  # The worker of this scheduler is a thread of ours.
    plan, folder = saved(tmp_path, "seed = [0, 1]"), tmp_path / "out"
    with open_pool(scheduler, plan, folder, None) as pool:
        assert drive(folder, plan, pool, Silent()) == Ending(2, 0, False)
    logs = [files(folder, r.id).log.read_text() for r in plan.runs]
    assert logs == ["ran\n"] * 2


@pytest.mark.parametrize("on", ["slrum", "http://a:1", ""])
def test_an_unknown_place_is_refused(on: str):
    with pytest.raises(ProblemError, match="local, slurm, runner or tcp"):
        check_place(on)


def test_no_scheduler_at_an_address_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pinnlab.sweep.cluster.ANSWER", "0.5s")
    plan = saved(tmp_path, "seed = [0]")
    with (
        pytest.raises(ProblemError, match="no Dask scheduler answers"),
        open_pool("tcp://127.0.0.1:9", plan, tmp_path / "out", None),
    ):
        pass
