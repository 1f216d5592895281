"""Several processes for one `solve`: who they are, how they meet, how they end."""

import hmac
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from pinnlab.cli.terminal import Status
from pinnlab.errors import Preempted, ProblemError
from pinnlab.team import ALONE, GRACE, Line, Team, watched


MEETING = 120
"""Seconds in which all processes must have started."""
SETTLING = 2.0
"""Seconds after an error in which it turns out whether another process has died."""
BYTES = 512


@dataclass(frozen=True)
class Launch:
    """How this process was started as one of many.

    - `method`: how JAX finds the others: "slurm", "ompi" or "deactivate".
    - `address`: HOST:PORT of process 0, where it is known.
    """

    method: str
    count: int
    index: int
    address: str | None = None
    devices: tuple[int, ...] | None = None


def launched(
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    environment: Mapping[str, str],
) -> Launch | None:
    """How this process was started; None for one that is alone.

    Raises `ProblemError` for options that do not belong together.
    """
    given = (coordinator, processes, process)
    if any(g is not None for g in given):
        return _explicit(*given)
    for method, count, index, local in (
        ("slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE"),
        (
            "ompi",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
        ),
    ):
        many = int(environment.get(count, "1"))
        if many > 1:
            own = _own_devices(environment, environment.get(local, ""))
            return Launch(method, many, int(environment[index]), devices=own)
    return None


def _explicit(
    coordinator: str | None, processes: int | None, process: int | None
) -> Launch | None:
    if coordinator is None or processes is None or process is None:
        raise ProblemError(
            "--coordinator HOST:PORT, --processes N and --process I belong together",
            hint="under srun or mpirun none of them is needed",
        )
    host, colon, port = coordinator.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise ProblemError(
            f"--coordinator {coordinator}: expected HOST:PORT of the computer of "
            "process 0, as in node1:29500"
        )
    if not 0 <= process < processes:
        raise ProblemError(
            f"--process {process}: expected a number from 0 to {processes - 1}, since "
            f"--processes is {processes}"
        )
    if processes == 1:
        return None
    return Launch("deactivate", processes, process, coordinator)


def _own_devices(
    environment: Mapping[str, str], tasks_a_node: str
) -> tuple[int, ...] | None:
    """The GPUs of this process among those that it sees; None: one for each process.

    JAX gives the process with local number i the GPU i. Where the scheduler lets each
    process see its own GPUs only, or has one process on each computer, it must have all
    that it sees.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    count = len([d for d in visible.split(",") if d.strip()])
    alone = tasks_a_node.partition("(")[0] == "1"
    return tuple(range(count)) if count and (alone or count == 1) else None


@contextmanager
def joined(launch: Launch | None, checkpoint: Path) -> Iterator[Team]:
    """Inside, the processes work together; all leave with the status of process 0.

    Where one dies, the others end with a message and status 75, or 3 without a
    checkpoint to go on from.
    """
    if launch is None:
        yield ALONE
        return
    end = _Ending(launch.index, checkpoint)
    team = _met(launch, end)
    end.team = team
    if team.leads:
        try:
            yield team
        except typer.Exit as left:
            team.tell({"status": left.exit_code})
            team.close(GRACE)
            raise
    else:
        try:
            yield team
        except SystemExit:
            raise
        except (Preempted, KeyboardInterrupt):
            pass
        except BaseException as error:
            team.settle()
            team.tell({"failed": f"{type(error).__name__}: {error}"})
        team.told("status")


class _Ending:
    """What happens where another process has ended."""

    def __init__(self, index: int, checkpoint: Path):
        self.index = index
        self.checkpoint = checkpoint
        self.team = ALONE
        self.losing = threading.Event()

    def settle(self) -> None:
        """Waits: a process that died shows as an error of the others first."""
        if self.losing.wait(SETTLING):
            threading.Event().wait()  # `lost` ends this process.

    def ended(self, status: int) -> None:
        """Process 0 has ended, and so does this one, whatever it waits for."""
        timer = threading.Timer(GRACE, os._exit, (status,))
        timer.daemon = True
        timer.start()

    def lost(self, what: str) -> None:
        """Ends this process: it cannot compute without the one that is lost."""
        self.losing.set()
        there = self.checkpoint.exists()
        status = Status.CHECKPOINTED if there else Status.FAILED
        more = f"--resume goes on from {self.checkpoint}" if there else "no checkpoint"
        print(f"stopped: {what}; {more}", file=sys.stderr, flush=True)
        if self.index == 0:
            # JAX aborts processes that outlive process 0.
            self.team.tell({"status": int(status)})
            self.team.close(GRACE)
        os._exit(int(status))


def _met(launch: Launch, end: _Ending) -> Team:
    """Start JAX on all processes, and connect each with process 0."""
    import jax

    # What JAX's libraries print must not mix with what scripts read.
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(own, "w")
    # The end of a process is noticed here; JAX would abort, and it hears SIGTERM.
    jax.config.update("jax_enable_recoverability", True)
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            launch.address,
            *((launch.count, launch.index) if launch.address else ()),
            local_device_ids=launch.devices,
            cluster_detection_method=launch.method,
            initialization_timeout=MEETING,
        )
    except (RuntimeError, ValueError) as error:
        raise ProblemError(
            f"the {launch.count} processes could not meet: {error}",
            hint="all must be started within two minutes with the same coordinator",
        ) from error
    return Team(launch.index, _lines(launch, end), end.settle)


def _lines(launch: Launch, end: _Ending) -> list[Line]:
    if launch.index:
        where = _published("")
        connection = socket.create_connection((where["host"], where["port"]), MEETING)
        connection.settimeout(None)
        hello = {"token": where["token"], "index": launch.index}
        connection.sendall(json.dumps(hello).encode() + b"\n")
        watched(connection)
        return [Line(connection, 0, end.lost, end.ended)]
    token = secrets.token_hex(16)
    with socket.create_server(("", 0)) as server:
        server.settimeout(MEETING)
        host = launch.address.rpartition(":")[0] if launch.address else _own_name()
        port = server.getsockname()[1]
        _published(json.dumps({"host": host, "port": port, "token": token}))
        found: dict[int, Line] = {}
        while len(found) < launch.count - 1:
            connection, _ = server.accept()
            index = _greeting(connection, token)
            if index is None:
                connection.close()
            else:
                watched(connection)
                found[index] = Line(connection, index, end.lost, end.ended)
    return [found[i] for i in sorted(found)]


def _greeting(connection: socket.socket, token: str) -> int | None:
    """The number of the process that calls; None for a stranger."""
    connection.settimeout(MEETING)
    # Without a buffer, so that nothing that follows is lost.
    with connection.makefile("rb", buffering=0) as lines:
        line = lines.readline(BYTES)
    connection.settimeout(None)
    try:
        hello = json.loads(line)
        known = hmac.compare_digest(str(hello["token"]), token)
        return int(hello["index"]) if known else None
    except (ValueError, KeyError, TypeError):
        return None


def _published(text: str) -> dict:
    """The JSON text of process 0, read by all."""
    import numpy as np
    from jax.experimental import multihost_utils

    own = np.frombuffer(text.encode().ljust(BYTES), np.uint8)
    return json.loads(bytes(multihost_utils.process_allgather(own)[0]))


def _own_name() -> str:
    # Slurm's own name of the computer is the one that other nodes can resolve.
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
