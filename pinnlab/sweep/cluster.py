"""Runs on a cluster: Dask workers, started by a scheduler or by somebody else.

The workers only call `supervise`, and what is done stands in the sweep's folder, which
all computers share: Dask hands out work and may lose all it knows.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pinnlab.errors import ProblemError
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.pools import FILE, Pool
from pinnlab.sweep.schedulers import INSTALL, job_cluster
from pinnlab.sweep.supervise import Job, Outcome, supervise


if TYPE_CHECKING:
    from dask.distributed import Client

ANSWER = "10s"
"""Time that a scheduler of Dask has to answer."""


@contextmanager
def job_pool(on: str, plan: Plan, folder: Path, size: int) -> Iterator[Pool]:
    """Jobs of a cluster, one run each at a time, as many as there is work for."""
    with job_cluster(on, plan, folder / "jobs") as cluster:
        from dask.distributed import Client

        with Client(cluster) as client:
            cluster.adapt(minimum=0, maximum=size, interval="2s", wait_count=5)
            yield Pool(size, _submitter(client))


@contextmanager
def dask_pool(on: str, size: int) -> Iterator[Pool]:
    """The workers of a Dask scheduler that runs already, at an address or in a file."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ProblemError(f"--on {on} needs Dask: {INSTALL}") from error
    try:
        if on.startswith(FILE):
            client = Client(scheduler_file=on.removeprefix(FILE), timeout=ANSWER)
        else:
            client = Client(on, timeout=ANSWER)
    except (OSError, ValueError) as error:
        message = f"--on {on}: no Dask scheduler answers there: {error}"
        raise ProblemError(message) from error
    with client:
        yield Pool(size, _submitter(client))


def work(job: Job) -> Outcome:
    """Do a run on a worker of Dask; where that ends, the run leaves a checkpoint."""
    from distributed import Status, get_worker

    worker = get_worker()
    ending = Status.closing_gracefully, Status.closing
    return supervise(job, leaving=lambda: worker.status in ending)


def _submitter(client: "Client") -> Callable[[Job], Future[Outcome]]:
    executor = client.get_executor()

    def submit(job: Job) -> Future[Outcome]:
        return executor.submit(work, job)

    return submit
