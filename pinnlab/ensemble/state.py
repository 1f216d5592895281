"""Where the members of an ensemble are, and how far they go next."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from math import nan

import numpy as np
from jaxtyping import Bool, Int

from pinnlab.best import Best
from pinnlab.programs import Stage
from pinnlab.record import Observation, Record, Stop
from pinnlab.snapshot import Arrays, Position, Snapshot
from pinnlab.train import SECONDS_A_CALL, row_steps


@dataclass
class MemberState:
    """One member's own history. `stop`: why it has ended its stage, None before."""

    best: Best
    at: Position = field(default_factory=Position)
    record: Record = field(default_factory=Record)
    stop: Stop | None = None


def next_steps(
    members: Sequence[MemberState], stage: Stage, left: float, pace: float
) -> Int[np.ndarray, " members"]:
    """How many steps each member makes next; none when it is time to stop.

    **Arguments:**

    - `left`: seconds; `pace`: those of a step of all, infinite before one is known.
    """
    done = np.array([m.at.done for m in members])
    active = np.array([m.stop is None for m in members])
    row, last = row_steps(stage), stage.iterations or np.inf
    inside = done % stage.look
    ends = done + np.minimum(stage.look - inside, row - inside % row)
    goal = min(ends[active].min(), last)
    if left <= 0 or (np.isfinite(pace) and left < pace / 2):
        goal = 0
    most = 1
    if np.isfinite(pace):
        most = max(1, int(min(SECONDS_A_CALL, left) / pace))
    behind = np.maximum(0, goal - done)
    return np.where(active, np.minimum(behind, most), 0).astype(int)


def count(members: Sequence[MemberState], steps: Int[np.ndarray, " members"]) -> None:
    """Add the steps that were made."""
    for m, made in zip(members, steps.tolist(), strict=True):
        m.at = replace(m.at, done=m.at.done + made)
        m.record.iterations += made


def at_look(
    members: Sequence[MemberState], stage: Stage
) -> Bool[np.ndarray, " members"]:
    """Which members have made all steps between two looks."""
    return np.array([m.at.done % stage.look == 0 for m in members])


def end(members: Sequence[MemberState], stage: Stage) -> None:
    """Stop those members that still train: no step is left, or no time."""
    for m in members:
        if m.stop is None:
            reached = stage.iterations and m.at.done >= stage.iterations
            m.stop = Stop.ITERATIONS if reached else Stop.BUDGET


def snapshot_of(
    members: Sequence[MemberState], arrays: Arrays, record: Record
) -> Snapshot:
    """All members at a moment between two steps.

    **Arguments:**

    - `arrays`: what they have stacked: parameters, keys, objectives, states.
    - `record`: of all together; its times are theirs.
    """
    found = dict(arrays)
    for i, m in enumerate(members):
        found |= {f"{i}/{name}": a for name, a in m.best.arrays().items()}
        found |= {f"{i}/{name}": a for name, a in _history(m).items()}
    stage = max(m.at.stage for m in members)
    done = max(m.at.done for m in members if m.at.stage == stage)
    iterations = max(m.record.iterations for m in members)
    return Snapshot(
        Position(stage, done), found, replace(record, iterations=iterations)
    )


def restore(members: Sequence[MemberState], arrays: Arrays) -> None:
    """Put the members where they were; the inverse of `snapshot_of`."""
    for i, m in enumerate(members):
        own = _below(arrays, f"{i}/")
        m.best.restore(own)
        m.at = Position(*(int(n) for n in np.asarray(own["at"])))
        stop = _text(own["stop"])
        m.stop = Stop(stop) if stop else None
        m.record.iterations = int(np.asarray(own["iterations"]))
        m.record.train_seconds = float(np.asarray(own.get("seconds", 0.0)))
        m.record.events = _lines(own["events"])
        stages = _lines(own["stages"])
        rows = np.asarray(own["rows"]).tolist()
        m.record.rows = [_row(s, r) for s, r in zip(stages, rows, strict=True)]


def _history(m: MemberState) -> dict[str, np.ndarray]:
    rows = [
        (r.iteration, r.elapsed, r.loss, r.heldout, nan if r.error is None else r.error)
        for r in m.record.rows
    ]
    return {
        "at": np.array(astuple(m.at)),
        "stop": _bytes([m.stop.value] if m.stop else []),
        "iterations": np.array(m.record.iterations),
        "seconds": np.array(m.record.train_seconds),
        "events": _bytes(m.record.events),
        "stages": _bytes([r.stage for r in m.record.rows]),
        "rows": np.array(rows, float).reshape(-1, 5),
    }


def _row(stage: str, row: list[float]) -> Observation:
    iteration, elapsed, loss, heldout, error = row
    known = None if np.isnan(error) else error
    return Observation(stage, int(iteration), elapsed, loss, heldout, known)


def _below(arrays: Arrays, prefix: str) -> Arrays:
    return {
        name.removeprefix(prefix): a
        for name, a in arrays.items()
        if name.startswith(prefix)
    }


def _bytes(lines: Sequence[str]) -> np.ndarray:
    """Texts without line breaks as an array, since a snapshot has nothing else."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def _text(array: object) -> str:
    return np.asarray(array, np.uint8).tobytes().decode()


def _lines(array: object) -> list[str]:
    return _text(array).splitlines()
