"""Where the runs of a sweep are done: on this computer, or where Dask says."""

import math
import os
import queue
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pinnlab.errors import ProblemError, nearest
from pinnlab.memory import free_memory
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.resources import SCHEDULERS, Resources
from pinnlab.sweep.sharing import Batch
from pinnlab.sweep.supervise import Job, Outcome, supervise


PLACES = ("local", "runner", *SCHEDULERS)
FILE = "file:"
ADDRESSES = ("tcp://", "tls://", FILE)


@dataclass(frozen=True)
class Pool:
    """Something that does runs, `size` at one time."""

    size: int
    submit: Callable[[Job], Future[Outcome]]


def check_place(on: str) -> None:
    """Raise `ProblemError` where `on` is no place for a sweep."""
    path = Path(on.removeprefix(FILE))
    if on.startswith(FILE) and not path.is_file():
        message = f"--on {on}: there is no such file of a Dask scheduler"
        raise ProblemError(message)
    if on in PLACES or on.startswith(ADDRESSES):
        return
    places = ", ".join(PLACES)
    message = f"--on {on}: expected {places}, tcp://HOST:PORT or file:PATH"
    raise ProblemError(message, hint=nearest(on, PLACES))


def settled(on: str, plan: Plan) -> tuple[Plan, float]:
    """The plan as it is done there, and the seconds that a process has.

    Where other drivers may take their share of the runs (`runner`), nobody knows how
    large batches should be, and there are none unless they are asked for.

    Raises `ProblemError` where the jobs of a cluster are too short for a run.
    """
    if on in SCHEDULERS:
        from pinnlab.sweep.walltime import lifetime

        return plan, lifetime(on, plan)
    if on == "runner" and plan.batch is Batch.AUTO:
        return replace(plan, batch=Batch.NEVER), math.inf
    return plan, math.inf


def pool_size(on: str, plan: Plan, workers: int | None) -> int:
    """The number of runs at one time that a pool would have."""
    if workers:
        return workers
    if on in SCHEDULERS:
        return plan.jobs[on].workers
    return 1 if on == "runner" else local_size(plan.resources)


@contextmanager
def open_pool(on: str, plan: Plan, folder: Path, workers: int | None) -> Iterator[Pool]:
    """The pool that `--on` means, closed at the end."""
    size = pool_size(on, plan, workers)
    if on in ("local", "runner"):
        with local_pool(plan.resources, size) as pool:
            yield pool
    else:
        from pinnlab.sweep.cluster import dask_pool, job_pool

        jobs = on in SCHEDULERS
        opened = job_pool(on, plan, folder, size) if jobs else dask_pool(on, size)
        with opened as pool:
            yield pool


@contextmanager
def local_pool(resources: Resources, size: int) -> Iterator[Pool]:
    """Processes on this computer; with GPUs no more than those allow."""
    groups = _device_groups(resources.gpus)
    if resources.gpus:
        size = min(size, len(groups))
    free: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    for i in range(size):
        free.put(groups[i] if resources.gpus else None)

    def work(job: Job) -> Outcome:
        devices = free.get()
        try:
            return supervise(job, devices)
        finally:
            free.put(devices)

    with ThreadPoolExecutor(size) as threads:
        yield Pool(size, lambda job: threads.submit(work, job))


def local_size(resources: Resources) -> int:
    """The number of runs that fit the cores, memory and GPUs of this computer."""
    fitting = [
        _cores() // resources.cpus,
        (free_memory() or resources.memory) // resources.memory,
    ]
    if resources.gpus:
        fitting.append(len(_device_groups(resources.gpus)))
    return max(1, min(fitting))


def _cores() -> int:
    """The cores that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _device_groups(gpus: int) -> list[str]:
    """The GPUs of this computer in groups of `gpus`, as CUDA_VISIBLE_DEVICES wants."""
    if not gpus:
        return []
    devices = _devices()
    count = len(devices) // gpus
    if not count:
        message = f"a run needs {gpus} GPUs, this computer shows {len(devices)}"
        raise ProblemError(message, key="resources.gpus")
    return [",".join(devices[i * gpus : (i + 1) * gpus]) for i in range(count)]


def _devices() -> list[str]:
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [d for d in given.split(",") if d]
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return found.stdout.split()
