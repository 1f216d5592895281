"""One run at a time for an output name: a lock that ends with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pinnlab.atomic import remove_strays
from pinnlab.errors import ProblemError


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Inside, no other run may claim `path`: by a lock on the file `NAME.lock`.

    What runs that were killed left in its folder is removed.

    Raises `ProblemError` where another run has it. Where the file system knows no
    locks, nothing is claimed.
    """
    lock = path.with_name(f"{path.name}.lock")
    handle = _locked(lock, path)
    remove_strays(path.parent)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        os.close(handle)


def _locked(lock: Path, path: Path) -> int:
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(handle, 100).decode(errors="replace").strip()
            os.close(handle)
            raise ProblemError(
                f"{path}: another run ({owner or 'unknown'}) is writing to this name",
                hint="wait for it, or choose another name with -o",
            ) from error
        except OSError:
            return handle
        # The owner before may have removed the file between `open` and `flock`.
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {os.uname().nodename}".encode())
            return handle
        os.close(handle)
