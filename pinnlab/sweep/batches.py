"""Which runs a batch has taken along, while its checkpoints are there.

They hold all of its runs, so that whoever goes on must take the same ones, and others
must leave these alone.
"""

import contextlib
from pathlib import Path

from pinnlab.checkpoint import kept
from pinnlab.errors import ProblemError
from pinnlab.sweep.folder import State, batches, files, read_json, state


def members(folder: Path, run: str) -> list[str]:
    """The runs, itself first, that a run goes on with from its checkpoint, if any."""
    return taken(folder, run) if kept(files(folder, run).checkpoint) else []


def taken(folder: Path, run: str) -> list[str]:
    """The runs, itself first, of the batch that a run has begun, if any."""
    with contextlib.suppress(ProblemError, KeyError):
        return [str(name) for name in read_json(files(folder, run).batch)["runs"]]
    return []


def unwanted(folder: Path, run: str) -> bool:
    """Whether a search wants to see the end of no run of a process."""
    runs = taken(folder, run) or [run]
    return all(files(folder, name).pruned.exists() for name in runs)


def waits(folder: Path, run: str) -> bool:
    """Whether another run will go on with this one, so that nobody else should."""
    goes_on = State.MISSING, State.RUNNING
    return any(
        first != run
        and run in members(folder, first)
        and state(folder, first) in goes_on
        for first in batches(folder)
    )
