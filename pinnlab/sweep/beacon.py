"""Signs of life in a shared folder, and leases on work that are made of them.

A beacon is a small file that its owner touches every few seconds. A lease on a piece
of work is a numbered beacon, `NAME.1`, `NAME.2`, ...: who finds the newest one dead
creates the next number. The file system lets only one process do that, so that a lease
has one owner at any time, on any computers that share the folder.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


BEAT = 5.0
"""Seconds between two signs of life."""

SILENCE = 45.0
"""Seconds without one after which the owner counts as dead."""

ANOTHER = 1.5
"""A silent owner is given this many more beats before its work is taken over."""


@contextmanager
def claimed(name: Path) -> Iterator[Path | None]:
    """The lease on `name`, held and beating until the block ends.

    **Returns:** the beacon; None where somebody alive has the lease.
    """
    found = _numbers(name)
    if found and not gone(_numbered(name, found[-1])):
        yield None
        return
    beacon = _numbered(name, found[-1] + 1 if found else 1)
    with lit(beacon) as own:
        yield beacon if own else None
        if own:
            for number in found:
                _numbered(name, number).unlink(missing_ok=True)


def lost(beacon: Path) -> bool:
    """Whether somebody took a lease over, or removed it."""
    number = int(beacon.suffix[1:])
    found = _numbers(beacon.with_suffix(""))
    return number not in found or found[-1] > number


def holder(name: Path) -> Path | None:
    """The beacon of the living owner of the lease on `name`."""
    found = _numbers(name)
    beacon = _numbered(name, found[-1]) if found else None
    return beacon if beacon and alive(beacon) else None


@contextmanager
def lit(beacon: Path) -> Iterator[bool]:
    """A beacon that beats until the block ends; False where it is there already."""
    try:
        handle = os.open(beacon, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        yield False
        return
    with os.fdopen(handle, "w") as file:
        json.dump(_owner(), file)
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(beacon, ended), daemon=True)
    thread.start()
    try:
        yield True
    finally:
        ended.set()
        thread.join()
        beacon.unlink(missing_ok=True)


def gone(beacon: Path) -> bool:
    """Whether the owner of a beacon is dead, said with more care than `alive`.

    A clock that was set, or a computer that slept, looks like silence. So where an
    owner is silent this waits for another sign of life; it takes some seconds.
    """
    if alive(beacon):
        return False
    try:
        before, text = beacon.stat().st_mtime_ns, beacon.read_text()
        if _dead(text):
            return True
        time.sleep(ANOTHER * BEAT)
        return beacon.stat().st_mtime_ns == before
    except FileNotFoundError:
        return True


def alive(beacon: Path) -> bool:
    """Whether the owner of a beacon was heard of lately, by the clock of the files.

    Signs of life from the future are none: the clock was set back after them.
    """
    try:
        age = _now(beacon.parent) - beacon.stat().st_mtime
        text = beacon.read_text()
    except FileNotFoundError:
        return False
    return abs(age) < SILENCE and not _dead(text)


def owner(beacon: Path) -> str:
    """Who lit a beacon: `host, process 123`; "" where that cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        found = json.loads(beacon.read_text())
        return f"{found['host']}, process {found['pid']}"
    return ""


def _numbered(name: Path, number: int) -> Path:
    return name.with_name(f"{name.name}.{number}")


def _numbers(name: Path) -> list[int]:
    ends = (p.name[len(name.name) + 1 :] for p in name.parent.glob(f"{name.name}.*"))
    return sorted(int(e) for e in ends if e.isdecimal())


def _beat(beacon: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        # A file that was removed is not created again: that is how a sweep is stopped.
        with contextlib.suppress(OSError):
            os.utime(beacon)


def _now(folder: Path) -> float:
    """The time by the clock of the file system: computers need not agree on it."""
    probe = folder / f".clock-{secrets.token_hex(6)}"
    try:
        probe.touch()
        found = probe.stat().st_mtime
        probe.unlink()
    except OSError:  # A folder that may only be read.
        return time.time()
    return found


def _owner() -> dict[str, str | int]:
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "pid": pid,
        "machine": _machine(),
        "started": _started(pid) or "",
    }


def _dead(text: str) -> bool:
    """Whether the owner was a process of this computer that is gone: no need to wait.

    Only Linux can tell; elsewhere silence decides.
    """
    try:
        found = json.loads(text)
        if not found["machine"] or found["machine"] != _machine():
            return False
        return _started(int(found["pid"])) != found["started"]
    except (ValueError, KeyError, TypeError):
        return False  # It is being written.


def _machine() -> str:
    """This boot of this computer and this namespace of processes; "" if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
