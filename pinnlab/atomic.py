"""Files that are whole or not there: written beside their final name, then renamed."""

import glob
import itertools
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pinnlab.errors import ProblemError


DRAFT, END = ".pinnlab-", ".tmp"
STRAY = 86400.0
"""Seconds after which a draft belongs to no living process: a write takes a few."""


@contextmanager
def replacing(path: Path, *, force: bool) -> Iterator[Path]:
    """A draft that becomes `path` when the block ends well, and vanishes otherwise.

    The draft is flushed to the disk and renamed. A file that is there already is
    first moved aside to `NAME.1.h5`, `NAME.2.h5`, ..., unless `force`.
    """
    check_writable(path)
    with _temporary(path) as draft:
        yield draft
        _flush(draft)
        if path.exists() and not force:
            _set_aside(path)
        os.replace(draft, path)
        _flush(path.parent)


def set_aside(path: Path) -> set[Path]:
    """The files of this name that were moved aside so far."""
    return set(path.parent.glob(f"{glob.escape(path.stem)}.*{path.suffix}"))


def check_writable(path: str | Path) -> None:
    """Raise `ProblemError` where `path` could not be written. Leaves no trace."""
    path = Path(path)
    folder = path.parent
    try:
        there, is_folder, is_file = path.exists(), path.is_dir(), path.is_file()
    except OSError as error:
        raise ProblemError(f"cannot write to this name: {error.strerror}") from error
    if is_folder or not path.name:
        raise ProblemError(f"cannot write {path}: it is a folder")
    if there and not is_file:
        # A device or a pipe must not be replaced by a file.
        raise ProblemError(f"cannot write {path}: it is not a regular file")
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ProblemError(f"cannot write {path}: {folder} {what}")
    try:
        with _temporary(path):
            pass
    except OSError as error:
        raise ProblemError(f"cannot write {path}: {error.strerror}") from error


def remove_strays(folder: Path) -> None:
    """Remove what processes that were killed left of files that they were writing.

    What is younger than `STRAY` may still be written.
    """
    for draft in folder.glob(f"{DRAFT}*{END}"):
        with suppress(OSError):
            with _temporary(draft) as now:
                age = now.stat().st_mtime - draft.stat().st_mtime
            if age > STRAY:
                draft.unlink()


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new empty file beside `path`, removed at the end if it is still there."""
    # Short, so that a name at the file system's limit still works.
    draft = path.with_name(f"{DRAFT}{secrets.token_hex(6)}{END}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file's or folder's content is on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open a folder.
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _set_aside(path: Path) -> Path:
    """Give an existing file the first free name of `NAME.1.h5`, `NAME.2.h5`, ..."""
    for count in itertools.count(1):
        aside = path.with_name(f"{path.stem}.{count}{path.suffix}")
        try:
            # A second name, not a rename: `path` is there at every moment, and a
            # taken name is refused by the file system itself.
            os.link(path, aside)
            return aside
        except FileExistsError:
            continue
        except OSError:  # A file system without hard links.
            if not aside.exists():
                os.rename(path, aside)
                return aside
    raise AssertionError("unreachable")
