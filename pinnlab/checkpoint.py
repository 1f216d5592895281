"""Checkpoints of training: the last two, each whole or not there, with a checksum.

`NAME.ckpt` is the newest and `NAME.ckpt.1` the one before. Each is an HDF5 file behind
a block of 512 bytes, which holds the SHA-256 of all that follows: no damaged byte is
ever read as a number.
"""

import datetime
import hashlib
import io
import os
from dataclasses import asdict, dataclass, fields, replace
from math import isnan
from pathlib import Path

import h5py
import jax
import numpy as np

import pinnlab
from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import DAMAGE
from pinnlab.record import Observation, Record
from pinnlab.report_tables import dataset, number, strings, subgroup
from pinnlab.snapshot import Position, Snapshot


FORMAT = "pinnlab checkpoint"
VERSION = 1
HEADER = 512
LARGEST_STATE = 500_000_000
"""Bytes of an optimizer's state that are still stored."""
COLUMNS = ("iteration", "elapsed", "loss", "heldout", "error")


@dataclass(frozen=True)
class Identity:
    """The run that a checkpoint belongs to: with the same, training is the same."""

    problem: str
    settings: str
    seed: int
    target: float


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds; see `made_with`."""

    snapshot: Snapshot
    made_with: str


def made_with() -> str:
    """What decides how numbers are rounded, as in `pinnlab 0.1.0, jax 0.10.2, cpu`."""
    device = jax.devices()[0].device_kind
    return f"pinnlab {pinnlab.__version__}, jax {jax.__version__}, {device}"


def previous(path: Path) -> Path:
    """The name of the checkpoint before the newest."""
    return path.with_name(f"{path.name}.1")


def kept(path: Path) -> bool:
    """Whether there is a checkpoint of this name to go on from."""
    return path.exists() or previous(path).exists()


def write_checkpoint(path: Path, snapshot: Snapshot, identity: Identity) -> None:
    """Write a checkpoint; the one that is there becomes the previous one.

    An optimizer's state of more than `LARGEST_STATE` bytes is left out.

    Raises `OSError` or `ProblemError` where it cannot be written: what was there stays.
    """
    content = _encoded(_affordable(snapshot), identity)
    digest = hashlib.sha256(content[HEADER:]).hexdigest()
    content[:HEADER] = f"{FORMAT}\nsha256 {digest}\n".encode().ljust(HEADER, b"\0")
    with replacing(path, force=True) as draft:
        with draft.open("r+b") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.replace(path, previous(path))


def read_checkpoint(path: Path, identity: Identity) -> Checkpoint:
    """Read a checkpoint back.

    Raises `ValueError` for a damaged file, and `ProblemError` for one of another run or
    of a newer pinnlab.
    """
    content = path.read_bytes()
    head = content[:HEADER].rstrip(b"\0").split()
    found = hashlib.sha256(memoryview(content)[HEADER:]).hexdigest().encode()
    if head != [*FORMAT.encode().split(), b"sha256", found]:
        raise ValueError("its checksum is wrong")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            version = number(file, "version")
            if version > VERSION:
                raise ProblemError(
                    f"{path}: has version {version:g} of the format: use a newer one"
                )
            _check_same(path, identity, _identity(file))
            return Checkpoint(_decoded(file), str(file.attrs["made_with"]))
    except ProblemError:
        raise
    except DAMAGE as error:
        raise ValueError(f"it does not hold what it should ({error})") from error


def _affordable(snapshot: Snapshot) -> Snapshot:
    state = {k: v for k, v in snapshot.arrays.items() if k.startswith("state/")}
    if sum(a.nbytes for a in state.values()) <= LARGEST_STATE:
        return snapshot
    rest = {k: v for k, v in snapshot.arrays.items() if k not in state}
    return replace(snapshot, arrays=rest, complete=False)


def _check_same(path: Path, asked: Identity, found: Identity) -> None:
    """Raise `ProblemError` with what differs between two runs."""
    for name in ("problem", "settings", "seed", "target"):
        a, b = getattr(asked, name), getattr(found, name)
        if a != b:
            detail = "" if isinstance(a, str) else f" ({b}, this one has {a})"
            raise ProblemError(
                f"{path}: is the checkpoint of a run with another {name}{detail}",
                hint="leave --resume away, or choose another name with -o",
            )


# ----------------------------------------------------------------------- the layout


def _encoded(snapshot: Snapshot, identity: Identity) -> memoryview:
    """The file, with an empty header."""
    memory = io.BytesIO()
    with h5py.File(memory, "w", userblock_size=HEADER) as file:
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        now = datetime.datetime.now(datetime.UTC).isoformat("T", "seconds")
        file.attrs["created"] = now
        file.attrs["made_with"] = made_with()
        file.attrs["complete"] = snapshot.complete
        run = file.create_group("run")
        texts = [identity.problem, identity.settings]
        run.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
        run.attrs["seed"], run.attrs["target"] = identity.seed, identity.target
        position = file.create_group("position")
        position.attrs.update(asdict(snapshot.position))
        arrays = file.create_group("arrays")
        for name, array in snapshot.arrays.items():
            arrays[name] = np.asarray(array)
        _write_record(file.create_group("record"), snapshot.record)
    return memory.getbuffer()


def _write_record(group: h5py.Group, record: Record) -> None:
    text = h5py.string_dtype()
    group.create_dataset("events", data=record.events, dtype=text)
    group.create_dataset("stage", data=[r.stage for r in record.rows], dtype=text)
    for name in COLUMNS:
        values = [getattr(r, name) for r in record.rows]
        group[name] = np.array([np.nan if v is None else v for v in values], float)
    group.attrs["compile_seconds"] = record.compile_seconds
    group.attrs["train_seconds"] = record.train_seconds
    group.attrs["iterations"] = record.iterations


def _identity(file: h5py.File) -> Identity:
    run = subgroup(file, "run")
    problem, settings = strings(dataset(run, "texts"))
    return Identity(problem, settings, int(number(run, "seed")), number(run, "target"))


def _decoded(file: h5py.File) -> Snapshot:
    arrays: dict[str, np.ndarray] = {}

    def collect(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset):
            arrays[name] = np.asarray(node[()])

    subgroup(file, "arrays").visititems(collect)
    group = subgroup(file, "position")
    position = Position(*(int(number(group, f.name)) for f in fields(Position)))
    record = _read_record(subgroup(file, "record"))
    return Snapshot(position, arrays, record, bool(number(file, "complete")))


def _read_record(group: h5py.Group) -> Record:
    columns = [np.asarray(dataset(group, name)[()]).tolist() for name in COLUMNS]
    rows = [
        Observation(
            stage, int(at), seconds, loss, held, None if isnan(error) else error
        )
        for stage, at, seconds, loss, held, error in zip(
            strings(dataset(group, "stage")), *columns, strict=True
        )
    ]
    return Record(
        rows,
        list(strings(dataset(group, "events"))),
        number(group, "compile_seconds"),
        number(group, "train_seconds"),
        int(number(group, "iterations")),
    )
