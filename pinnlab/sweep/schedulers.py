"""What each scheduler of a cluster is told: jobs that are workers of Dask."""

import gc
import math
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pinnlab.errors import ProblemError
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.resources import Jobs, Resources
from pinnlab.sweep.walltime import lifetime


if TYPE_CHECKING:
    from dask_jobqueue.core import JobQueueCluster

INSTALL = "pip install 'pinnlab-jax[cluster]'"

LOSSES = 20
"""Workers that a run may lose before it counts as failed: nodes die, jobs end."""

WORKER_MEMORY = 3 * 10**8
"""Bytes of a job beside the run itself: the worker and its nanny, without JAX."""


@contextmanager
def job_cluster(on: str, plan: Plan, folder: Path) -> Iterator["JobQueueCluster"]:
    """A cluster of no jobs yet.

    One job is one worker with one thread, which ends by itself before its walltime.
    Connections are encrypted with credentials that live as long as the sweep: an open
    port of Dask lets everybody on the cluster run code.

    Raises `ProblemError` where Dask is missing, the walltime is too short,
    or this computer has no such interface.
    """
    try:
        from dask import config
        from dask.distributed import Security
        from distributed.utils import get_ip_interface

        # Importing dask_jobqueue replaces what Ctrl-C does.
        handler = signal.getsignal(signal.SIGINT)
        try:
            kinds = import_module("dask_jobqueue")
        finally:
            signal.signal(signal.SIGINT, handler)
    except ImportError as error:
        raise ProblemError(f"--on {on} needs Dask: {INSTALL}") from error
    jobs = plan.jobs[on]
    works = lifetime(on, plan)
    if jobs.interface:
        try:
            get_ip_interface(jobs.interface)
        except ValueError as error:
            raise ProblemError(str(error), key=f"{on}.interface") from error
    # The credentials are in it for as long as the sweep runs.
    folder.mkdir(mode=0o700, exist_ok=True)
    with config.set({"distributed.scheduler.allowed-failures": LOSSES}):
        cluster = getattr(kinds, f"{on.upper()}Cluster")(
            cores=1,
            processes=1,
            memory=f"{plan.resources.memory + WORKER_MEMORY}B",
            queue=jobs.queue or None,
            interface=jobs.interface or None,
            job_name="pinnlab",
            job_script_prologue=list(jobs.setup),
            worker_extra_args=[
                f"--lifetime={works:.0f}s",
                "--lifetime-stagger=10s",
                "--no-dashboard",
            ],
            log_directory=str(folder.resolve()),
            shared_temp_directory=str(folder.resolve()),
            python=sys.executable,
            security=Security.temporary(),
            scheduler_options={"dashboard": False},
            **OPTIONS[on](plan.resources, jobs),
        )
        with cluster:
            yield cluster


def job_script(on: str, plan: Plan, folder: Path) -> str:
    """What a job of a sweep in this folder would be; nothing is left behind."""
    with tempfile.TemporaryDirectory(prefix="pinnlab-") as place:
        passing = Path(place).resolve() / "jobs"
        with job_cluster(on, plan, passing) as cluster:
            script = cluster.job_script()
        # Its files of credentials want to be removed before their folder is.
        del cluster
        gc.collect()
    return script.replace(str(passing), str(folder.resolve()))


def _slurm(resources: Resources, jobs: Jobs) -> dict[str, object]:
    gpus = [f"--gres=gpu:{resources.gpus}"] if resources.gpus else []
    return {
        "account": jobs.account or None,
        "job_cpu": resources.cpus,
        "walltime": f"{_hours(jobs.walltime)}:00",
        "job_extra_directives": ["--no-requeue", *gpus, *jobs.extra],
    }


def _pbs(resources: Resources, jobs: Jobs) -> dict[str, object]:
    gpus = f":ngpus={resources.gpus}" if resources.gpus else ""
    memory = math.ceil((resources.memory + WORKER_MEMORY) / 2**20)
    return {
        "account": jobs.account or None,
        "resource_spec": f"select=1:ncpus={resources.cpus}{gpus}:mem={memory}mb",
        "walltime": f"{_hours(jobs.walltime)}:00",
        "job_extra_directives": ["-r n", *jobs.extra],
    }


def _lsf(resources: Resources, jobs: Jobs) -> dict[str, object]:
    gpus = [f'-gpu "num={resources.gpus}"'] if resources.gpus else []
    return {
        "project": jobs.account or None,
        "ncpus": resources.cpus,
        "mem": resources.memory + WORKER_MEMORY,
        "walltime": _hours(jobs.walltime),
        "job_extra_directives": ["-rn", *gpus, *jobs.extra],
    }


def _sge(resources: Resources, jobs: Jobs) -> dict[str, object]:
    """Memory is that of one slot, a slot is a core of the environment `smp`."""
    slots = [f"-pe smp {resources.cpus}"] if resources.cpus > 1 else []
    gpus = [f"-l gpu={resources.gpus}"] if resources.gpus else []
    memory = math.ceil((resources.memory + WORKER_MEMORY) / 2**20 / resources.cpus)
    return {
        "project": jobs.account or None,
        "resource_spec": f"h_vmem={memory}M",
        "walltime": f"{_hours(jobs.walltime)}:00",
        "job_extra_directives": ["-r n", *slots, *gpus, *jobs.extra],
    }


OPTIONS = {"slurm": _slurm, "pbs": _pbs, "lsf": _lsf, "sge": _sge}


def _hours(seconds: float) -> str:
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes // 60:02}:{minutes % 60:02}"
