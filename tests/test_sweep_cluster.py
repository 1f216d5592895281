"""What a cluster is told, and a sweep on the workers of a Dask scheduler."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sweep_engine import QUICK, Silent, eventually, saved, standing_in
from test_sweep_experiment import planned
from test_sweep_resume import PATIENT
from typer.testing import CliRunner

from pinnlab.cli.main import app
from pinnlab.errors import ProblemError
from pinnlab.sweep.beacon import lit
from pinnlab.sweep.cluster import work
from pinnlab.sweep.drive import Ending, drive
from pinnlab.sweep.folder import drivers, files, load_plan
from pinnlab.sweep.pools import check_place, open_pool
from pinnlab.sweep.schedulers import job_cluster, job_script
from pinnlab.sweep.supervise import Job
from pinnlab.sweep.walltime import longer_than_a_job


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
    with job_cluster("slurm", plan, tmp_path / "out" / "jobs") as cluster:
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


SCRIPTS = {
    "pbs": ["#PBS -q fast", "#PBS -A math", "#PBS -l walltime=01:30:00",
            "#PBS -l select=1:ncpus=3:ngpus=1:mem=1908mb", "#PBS -r n"],
    "lsf": ["#BSUB -q fast", '#BSUB -P "math"', "#BSUB -n 3", "#BSUB -W 01:30",
            '#BSUB -gpu "num=1"', "#BSUB -rn"],
    "sge": ["#$ -q fast", "#$ -P math", "#$ -l h_rt=01:30:00", "#$ -pe smp 3",
            "#$ -l h_vmem=636M", "#$ -l gpu=1", "#$ -r n"],
}  # fmt: skip


@pytest.mark.parametrize("on", SCRIPTS)
def test_other_schedulers_are_asked_for_the_same(on: str, tmp_path: Path):
    text = SLURM.replace("[slurm]", f"[{on}]").replace("partition", "queue")
    plan, jobs = saved(tmp_path, "seed = [0]", text), tmp_path / "new" / "jobs"
    script = job_script(on, plan, jobs)
    for line in (*SCRIPTS[on], "module load cuda"):
        assert f"{line}\n" in script
    assert "--constraint=a100\n" in script and "--lifetime=5280s" in script
    assert str(jobs) in script and not jobs.parent.exists()


def test_the_profile_of_a_user_is_below_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    profile = tmp_path / "config" / "pinnlab" / "cluster.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('[slurm]\npartition = "slow"\naccount = "me"\nworkers = 3')
    text = '[slurm]\npartition = "fast"'
    jobs = saved(tmp_path, "seed = [0]", text).jobs["slurm"]
    assert (jobs.queue, jobs.account, jobs.workers) == ("fast", "me", 3)
    profile.write_text('[slurm]\nacount = "me"')
    with pytest.raises(ProblemError, match=r"cluster\.toml: slurm: .*'acount'"):
        saved(tmp_path, "seed = [0]")


def test_a_dry_run_prints_the_job_script(tmp_path: Path):
    saved(tmp_path, "seed = [0]", SLURM)
    words = ["sweep", str(tmp_path / "growth.toml"), "-o", str(tmp_path / "new")]
    found = CliRunner().invoke(app, [*words, "--on", "slurm", "--dry-run"])
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("#!") and "#SBATCH -p fast\n" in found.stdout
    assert not (tmp_path / "new").exists()


def test_an_interface_that_is_not_there_is_named(tmp_path: Path):
    text = SLURM.replace('"lo"', '"ib7"')
    plan = saved(tmp_path, "seed = [0]", text)
    with pytest.raises(ProblemError, match=r"slurm\.interface: .*ib7"):
        job_script("slurm", plan, tmp_path / "jobs")


SEEDS = "[axes]\nseed = [0, 1]\n"
TRAINS = """
[solver]
strategy = "nonlinear"
optimizer = "adam"
[slurm]
walltime = "3m"
"""


def test_runs_longer_than_a_job_go_on_in_the_next_one(tmp_path: Path):
    plan = saved(tmp_path, "budget = ['10s', '1h']", TRAINS)
    said = longer_than_a_job("slurm", plan)
    assert "1 of 2 runs may take up to 3615 s, and a job works for 60 s" in said
    with job_cluster("slurm", plan, tmp_path / "out" / "jobs") as cluster:
        assert "--lifetime=60s" in cluster.job_script()
    short = saved(tmp_path, "budget = ['10s', '20s']", TRAINS)
    assert longer_than_a_job("slurm", short) == ""
    batch = planned(tmp_path, f"batch = true\nreference = false\n{SEEDS}{TRAINS}")
    said = longer_than_a_job("slurm", batch)
    assert "1 of 1 batches may take up to 135 s" in said


@pytest.mark.parametrize(
    ("solver", "top", "least"),
    [
        # Start, and the first checkpoint.
        (TRAINS.replace("3m", "2m"), "budget = '1h'", 45),
        # ... and the verification, which has none.
        (TRAINS.replace("3m", "20m"), "budget = '1h'\nreference = true", 1845),
        # This route has no checkpoints.
        ("[slurm]\nwalltime = '3m'", "budget = '100s'", 115),
        # Nor has it in a batch, whose runs are solved one after another.
        ("[slurm]\nwalltime = '2m'", "budget = '30s'\nbatch = true", 45),
        # Those that train have; they are verified in the time of two.
        (TRAINS.replace("3m", "2m"), "budget = '1h'\nbatch = true", 45),
        (TRAINS, "budget = '30s'\nbatch = true\nreference = true", 105),
    ],
)
def test_a_walltime_in_which_no_run_gets_on_is_refused(
    solver: str, top: str, least: int, tmp_path: Path
):
    top = top if "reference" in top else f"{top}\nreference = false"
    plan = planned(tmp_path, f"{top}\n[axes]\nseed = [0, 1]\n{solver}")
    with (
        pytest.raises(ProblemError, match=f"needs about {least} s to get on"),
        job_cluster("slurm", plan, tmp_path / "out" / "jobs"),
    ):
        pass


def test_a_run_leaves_a_checkpoint_when_its_worker_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, PATIENT)
    saved(tmp_path, "seed = [0]")
    folder = tmp_path / "out"
    plan = load_plan(folder)
    job = Job(str(folder), plan.runs[0].id, "driver-a", 1, 0.0)
    with (
        lit(drivers(folder) / job.driver),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        outcome = client.submit(work, job)
        assert eventually((folder / "started").exists)
        (worker,) = cluster.workers.values()
        client.sync(worker.close_gracefully, reason="the end of its life")
        assert eventually((folder / "asked").exists)
        outcome.cancel()


@pytest.mark.parametrize("how", ["address", "file"])
def test_a_sweep_on_a_dask_scheduler_that_runs_already(
    how: str, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    standing_in(monkeypatch, QUICK)  # The worker of this scheduler is a thread of ours.
    plan, folder = saved(tmp_path, "seed = [0, 1]"), tmp_path / "out"
    if how == "file":
        path = tmp_path / "scheduler.json"
        path.write_text(json.dumps({"address": scheduler}))
        scheduler = f"file:{path}"
    check_place(scheduler)
    with open_pool(scheduler, plan, folder, None) as pool:
        assert drive(folder, plan, pool, Silent()) == Ending(2, 0, False)
    logs = [files(folder, r.id).log.read_text() for r in plan.runs]
    assert logs == ["ran\n"] * 2


@pytest.mark.parametrize("on", ["slrum", "http://a:1", ""])
def test_an_unknown_place_is_refused(on: str):
    with pytest.raises(ProblemError, match="local, runner, slurm, pbs"):
        check_place(on)


def test_a_scheduler_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(ProblemError, match="no such file of a Dask scheduler"):
        check_place(f"file:{tmp_path / 'scheduler.json'}")


def test_no_scheduler_at_an_address_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pinnlab.sweep.cluster.ANSWER", "0.5s")
    plan = saved(tmp_path, "seed = [0]")
    with (
        pytest.raises(ProblemError, match="no Dask scheduler answers"),
        open_pool("tcp://127.0.0.1:9", plan, tmp_path / "out", None),
    ):
        pass
