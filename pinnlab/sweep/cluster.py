"""Runs on a cluster: Dask workers, started by Slurm or by somebody else.

The workers only call `supervise`, and what is done stands in the sweep's folder, which
all computers share: Dask hands out work and may lose all it knows.
"""

import math
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pinnlab.errors import ProblemError
from pinnlab.sweep.checks import longest_span
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.pools import Pool
from pinnlab.sweep.supervise import Job, Outcome, supervise


if TYPE_CHECKING:
    from dask.distributed import Client
    from dask_jobqueue.slurm import SLURMCluster

INSTALL = "pip install 'pinnlab-jax[cluster]'"
ANSWER = "10s"
"""Time that a scheduler has to answer."""

ENDING = 120.0
"""Seconds before its walltime at which a worker takes no more work."""

LOSSES = 20
"""Workers that a run may lose before it counts as failed: nodes die, jobs end."""

WORKER_MEMORY = 3 * 10**8
"""Bytes of a job beside the run itself: the worker and its nanny, without JAX."""


@contextmanager
def slurm_pool(plan: Plan, folder: Path, size: int) -> Iterator[Pool]:
    """Jobs of Slurm, one run each at a time, as many as there is work for."""
    with slurm_cluster(plan, folder) as cluster:
        from dask.distributed import Client

        with Client(cluster) as client:
            cluster.adapt(minimum=0, maximum=size, interval="2s", wait_count=5)
            yield Pool(size, _submitter(client))


@contextmanager
def dask_pool(address: str, size: int) -> Iterator[Pool]:
    """The workers of a Dask scheduler that runs already."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ProblemError(f"--on {address} needs Dask: {INSTALL}") from error
    try:
        client = Client(address, timeout=ANSWER)
    except (OSError, ValueError) as error:
        message = f"--on {address}: no Dask scheduler answers there: {error}"
        raise ProblemError(message) from error
    with client:
        yield Pool(size, _submitter(client))


@contextmanager
def slurm_cluster(plan: Plan, folder: Path) -> Iterator["SLURMCluster"]:
    """A cluster of no jobs yet.

    One job is one worker with one thread, which ends by itself before its walltime.
    Connections are encrypted with credentials that live as long as the sweep: an open
    port of Dask lets everybody on the cluster run code.
    """
    try:
        from dask import config
        from dask.distributed import Security

        # Importing dask_jobqueue replaces what Ctrl-C does.
        handler = signal.getsignal(signal.SIGINT)
        try:
            from dask_jobqueue.slurm import SLURMCluster
        finally:
            signal.signal(signal.SIGINT, handler)
    except ImportError as error:
        raise ProblemError(f"--on slurm needs Dask: {INSTALL}") from error
    resources, slurm = plan.resources, plan.slurm
    lifetime = _lifetime(plan)
    jobs = folder / "jobs"
    # The credentials are in it for as long as the sweep runs.
    jobs.mkdir(mode=0o700, exist_ok=True)
    gpus = [f"--gres=gpu:{resources.gpus}"] if resources.gpus else []
    with config.set({"distributed.scheduler.allowed-failures": LOSSES}):
        cluster = SLURMCluster(
            cores=1,
            processes=1,
            job_cpu=resources.cpus,
            memory=f"{resources.memory + WORKER_MEMORY}B",
            walltime=_walltime(slurm.walltime),
            queue=slurm.partition or None,
            account=slurm.account or None,
            interface=slurm.interface or None,
            job_name="pinnlab",
            job_extra_directives=["--no-requeue", *gpus, *slurm.extra],
            job_script_prologue=list(slurm.setup),
            worker_extra_args=[
                f"--lifetime={lifetime:.0f}s",
                "--lifetime-stagger=10s",
                "--no-dashboard",
            ],
            log_directory=str(jobs.resolve()),
            shared_temp_directory=str(jobs.resolve()),
            python=sys.executable,
            security=Security.temporary(),
            scheduler_options={"dashboard": False},
        )
        with cluster:
            yield cluster


def _lifetime(plan: Plan) -> float:
    """Seconds after which a worker ends; long enough for any run of the plan."""
    walltime = plan.slurm.walltime
    longest = max(map(longest_span, plan.runs))
    if walltime - ENDING < longest:
        message = (
            f"{walltime:g} s are too short for a run of about {longest:g} s and the "
            f"{ENDING:g} s at the end in which none is started"
        )
        raise ProblemError(message, key="slurm.walltime")
    return walltime - ENDING


def _submitter(client: "Client") -> Callable[[Job], Future[Outcome]]:
    executor = client.get_executor()

    def submit(job: Job) -> Future[Outcome]:
        return executor.submit(supervise, job)

    return submit


def _walltime(seconds: float) -> str:
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 60:02}:{minutes % 60:02}:00"
