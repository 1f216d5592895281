"""The folder of a sweep: where everything about a run is, and how far it is."""

import contextlib
import json
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.sweep.beacon import holder
from pinnlab.sweep.plan import Plan, Run, plan_table, read_plan
from pinnlab.sweep.sharing import Batch


PLAN = "plan.json"
BATCHES = "batches"
ENDS = (".json", ".h5", ".error.json", ".log", ".ckpt", ".going.json", ".pruned.json",
        ".spent.json")  # fmt: skip


class State(Enum):
    """How far a run is. `PRUNED`: a search stopped it, since others were better."""

    MISSING = "missing"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    PRUNED = "pruned"


@dataclass(frozen=True)
class Files:
    """The files of one run.

    - `spec`: what to run; `result`: the HDF5 file; `error`: why the last attempt left
      none; `log`: what it printed; `checkpoint`: what an attempt that was cut off left.
    - `going`: how far it is while it trains; `pruned`: why it was stopped as hopeless.
    - `spent`: the seconds that all attempts have taken, where those are limited.
    - `lease`: begins the names of the files that say who works on it; `batch`: which
      runs it takes along. They are in folders that have no others, so that those are
      quick to list.
    """

    spec: Path
    result: Path
    error: Path
    log: Path
    checkpoint: Path
    going: Path
    pruned: Path
    spent: Path
    lease: Path
    batch: Path


def files(folder: Path, run: str) -> Files:
    """The files of the run of this id."""
    own = (folder / "runs" / f"{run}{end}" for end in ENDS)
    return Files(
        *own, lease=folder / "leases" / run, batch=folder / BATCHES / f"{run}.json"
    )


def forget_checkpoints(folder: Path, run: str) -> None:
    """The next attempt at a run starts anew, with whatever runs it takes along."""
    own = files(folder, run)
    for path in (own.batch, *own.checkpoint.parent.glob(f"{run}*.ckpt*")):
        path.unlink(missing_ok=True)


def batches(folder: Path) -> list[str]:
    """The runs that have taken others along, and were not at their end."""
    return [p.stem for p in (folder / BATCHES).glob("*.json")]


def drivers(folder: Path) -> Path:
    """Where each driver of the sweep keeps a beacon; without it its runs stop."""
    return folder / "drivers"


def state(folder: Path, run: str) -> State:
    """How far a run is, from its files alone."""
    own = files(folder, run)
    if own.result.exists():
        return State.DONE
    if own.pruned.exists():
        return State.PRUNED
    if holder(own.lease) is not None:
        return State.RUNNING
    return State.FAILED if own.error.exists() else State.MISSING


def save_plan(folder: Path, plan: Plan) -> None:
    """Leave the plan in the folder, which is made, and each run's specification.

    Batches that the plan does not have any more are forgotten.
    """
    for path in (folder / "runs", folder / "leases", drivers(folder), folder / BATCHES):
        path.mkdir(parents=True, exist_ok=True)
    wanted = {run.id for run in plan.runs} if plan.batch is not Batch.NEVER else set()
    for run in batches(folder):
        if run not in wanted:
            forget_checkpoints(folder, run)
    for run in plan.runs:
        spec = files(folder, run.id).spec
        if not spec.exists():
            write_json(spec, _spec(run))
    write_json(folder / PLAN, plan_table(plan))


def load_plan(folder: Path) -> Plan:
    """The plan that was saved in a folder."""
    path = folder / PLAN
    if not path.is_file():
        message = "is not the folder of a sweep (there is no plan.json)"
        raise ProblemError(f"{folder}: {message}")
    return read_plan(read_json(path))


def write_json(path: Path, table: object) -> None:
    """Write a file that is whole or not there."""
    with replacing(path, force=True) as draft:
        draft.write_text(json.dumps(table, indent=1), encoding="utf-8")


def read_json(path: Path) -> dict:
    """The object in a file.

    Raises `ProblemError` where it is damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProblemError(f"{path}: cannot be read: {error}") from error


def record_error(folder: Path, run: str, kind: str, message: str) -> None:
    """Leave the reason why a run has no result."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    table = {"kind": kind, "message": message, "time": when}
    write_json(files(folder, run).error, table)


def read_error(folder: Path, run: str) -> str:
    """Why the last attempt of a run left no result; "" where nothing is known."""
    path = files(folder, run).error
    with contextlib.suppress(ProblemError):
        return str(read_json(path).get("message", ""))
    return ""


def _spec(run: Run) -> dict[str, object]:
    return {
        "problem": run.problem,
        "name": run.name,
        "seed": run.seed,
        "target": run.target,
        "budget": run.budget,
        "reference": run.reference,
    }
