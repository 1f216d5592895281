"""What a run needs, and the jobs of a cluster that give it."""

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pinnlab.errors import ProblemError, located
from pinnlab.sweep.reading import (
    integer,
    known_keys,
    read_table,
    scaled,
    span,
    text,
    texts,
)


SCHEDULERS = ("slurm", "pbs", "lsf", "sge")
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True)
class Resources:
    """What one run needs. `memory` in bytes, `time` in seconds; 0: not limited."""

    cpus: int = 1
    gpus: int = 0
    memory: int = 2 * 10**9
    time: float = 0.0


@dataclass(frozen=True)
class Jobs:
    """`[slurm]`, `[pbs]`, `[lsf]` or `[sge]`: the jobs of a sweep on a cluster.

    - `queue`: called `partition` by Slurm; `account`: who pays, or the project.
    - `workers`: the most jobs at one time.
    - `walltime`: of one job, in seconds.
    - `setup`: lines of shell before Python starts (modules, environments).
    - `extra`: more options of the command that submits, as in `--constraint=a100`.
    - `interface`: the network interface that jobs and this computer share.
    """

    queue: str = ""
    account: str = ""
    workers: int = 8
    walltime: float = 3600.0
    setup: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    interface: str = ""


def read_resources(table: Mapping[str, object]) -> Resources:
    """The table `[resources]`."""
    known_keys(table, [f.name for f in dataclasses.fields(Resources)], "resources")
    plain = Resources()
    where = "resources."
    memory = table.get("memory", plain.memory)
    size = scaled(memory, BYTES, where + "memory", "a size such as 500MB, 2GB")
    return Resources(
        cpus=integer(table.get("cpus", plain.cpus), where + "cpus", 1, 4096),
        gpus=integer(table.get("gpus", plain.gpus), where + "gpus", 0, 64),
        memory=int(size),
        time=span(table["time"], where + "time") if "time" in table else plain.time,
    )


def read_jobs(table: Mapping[str, object]) -> dict[str, Jobs]:
    """The jobs of each scheduler: the user's profile, and over it what `table` has.

    Raises `ProblemError` naming the profile, if that is wrong, and the key.
    """
    path = profile_path()
    with located(file=str(path)):
        profile = _profile(path)
        known_keys(profile, SCHEDULERS, "")
        mine = {name: _jobs(profile, name, Jobs()) for name in SCHEDULERS}
    return {name: _jobs(table, name, plain) for name, plain in mine.items()}


def profile_path() -> Path:
    """Where a user keeps what all sweeps on a cluster share."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "pinnlab" / "cluster.toml"


def _profile(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ProblemError(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ProblemError(f"not valid TOML: {error}") from None


def _jobs(tables: Mapping[str, object], name: str, plain: Jobs) -> Jobs:
    """One scheduler's table over what is known already."""
    table = read_table(tables, name)
    queue = "partition" if name == "slurm" else "queue"
    names = [queue, *(f.name for f in dataclasses.fields(Jobs) if f.name != "queue")]
    known_keys(table, names, name)
    found: dict[str, object] = {}
    for key, value in table.items():
        where = f"{name}.{key}"
        field = "queue" if key == queue else key
        if key == "workers":
            found[field] = integer(value, where, 1, 10_000)
        elif key == "walltime":
            found[field] = span(value, where)
        elif key in ("setup", "extra"):
            found[field] = texts(value, where)
        else:
            found[field] = text(value, where)
    return dataclasses.replace(plain, **found)
