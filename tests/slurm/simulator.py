"""A real Slurm on one computer, for tests: a controller and two nodes on loopback.

Debian's packages (slurm-wlm, munge) allow several `slurmd` on one computer. All state
is in one folder, all processes end with `stop`. It needs root, and leaves one line per
node in /etc/hosts.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


NODES = ("n1", "n2")
CPUS, MEMORY = 2, 4000
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")

CONFIGURATION = """
ClusterName=sim
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
SlurmdTimeout=10
KillWait=5
Waittime=0
MinJobAge=3600
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=1:00:00 State=UP
"""


def why_not() -> str:
    """Why Slurm cannot be started here; "" where it can."""
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "a private Slurm needs root"


@dataclass(frozen=True)
class Slurm:
    """A running cluster; `environment` is what its commands need."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process, for commands of this cluster."""
        return dict(os.environ) | {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def call(self, *command: str) -> str:
        """The standard output of one of Slurm's commands."""
        found = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert found.returncode == 0, f"{command}: {found.stderr}"
        return found.stdout

    def jobs(self, state: str = "running") -> dict[str, str]:
        """The node of each job in a state."""
        text = self.call("squeue", "-h", "-t", state, "-o", "%A %N")
        return dict(line.split() for line in text.splitlines() if " " in line.strip())

    def start_node(self, name: str) -> None:
        """Start a node, again perhaps."""
        (self.folder / f"spool.{name}").mkdir(exist_ok=True)
        self.call("slurmd", "-N", name)

    def kill_node(self, name: str) -> None:
        """A node fails: everything on it dies at once."""
        pids = [int((self.folder / f"slurmd.{name}.pid").read_text())]
        pids += _pids(lambda p: f"SLURMD_NODENAME={name}" in _environment(p))
        pids += _pids(lambda p: _holds(p, f"slurmd.{name}.log"))
        for pid in set(pids):
            _kill(pid, signal.SIGKILL)
        (self.folder / f"slurmd.{name}.pid").unlink()
        self.call("scontrol", "update", f"nodename={name}", "state=down", "reason=test")

    def start(self) -> None:
        """Start everything; returns when all nodes are idle."""
        self._configure()
        munge = self.folder / "munge"
        command = f"munged --force --num-threads=2 --socket={munge}/socket"
        command += f" --key-file={munge}/key --pid-file={munge}/pid"
        command += f" --log-file={munge}/log --seed-file={munge}/seed"
        subprocess.run(command.split(), check=True, capture_output=True)
        self.call("slurmctld", "-i")
        for name in NODES:
            self.start_node(name)
        assert self.wait_idle(), self.call("sinfo", "-N", "-l")

    def wait_idle(self) -> bool:
        """Whether all nodes become idle."""
        wanted = {f"{n} idle" for n in NODES}
        command = "sinfo", "-h", "-N", "-o", "%N %T"
        return within(30, lambda: set(self.call(*command).splitlines()) == wanted)

    def stop(self) -> None:
        """End all jobs and all processes of the cluster."""
        self.call("scancel", "-u", "root", "-Q")
        within(15, lambda: not self.jobs("running,completing,pending"))
        names = [f"slurmd.{n}.pid" for n in NODES] + ["slurmctld.pid", "munge/pid"]
        for path in (self.folder / name for name in names):
            if path.exists():
                pid = int(path.read_text())
                _kill(pid, signal.SIGTERM)
                if not within(10, lambda pid=pid: not _lives(pid)):
                    _kill(pid, signal.SIGKILL)

    def _configure(self) -> None:
        folder, host = self.folder, socket.gethostname().split(".")[0]
        (folder / "state").mkdir(parents=True)
        (folder / "munge").mkdir(mode=0o700)
        folder.chmod(0o755)
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        port = _free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} "
            f"CPUs={CPUS} RealMemory={MEMORY} State=UNKNOWN"
            for n, p in zip(NODES, port[1:], strict=True)
        )
        text = CONFIGURATION.format(host=host, folder=folder, port=port[0], nodes=nodes)
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        hosts = Path("/etc/hosts")
        for name in NODES:
            if name not in hosts.read_text().split():
                with hosts.open("a") as file:
                    file.write(f"127.0.0.1 {name}\n")


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold in this time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _pids(wanted: Callable[[int], bool]) -> list[int]:
    every = (int(p.name) for p in Path("/proc").glob("[0-9]*"))
    return [pid for pid in every if wanted(pid)]


def _environment(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode("latin1").split("\0")
    except OSError:
        return []


def _holds(pid: int, name: str) -> bool:
    try:
        links = [os.readlink(p) for p in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(link.endswith(f"/{name}") for link in links)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _kill(pid: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
