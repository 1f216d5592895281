"""Disks that fail, as context managers."""

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

import pinnlab.atomic


@contextmanager
def full_disk():
    """No file grows beyond 4 kB: the same refusals by the system as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_space():
    """Everything is accepted, and lost when it should reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _raising(errno.ENOSPC))
        yield


@contextmanager
def read_only():
    """The file system does not let anything be created."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pinnlab.atomic.os, "open", _raising(errno.EROFS))
        yield


def _raising(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@contextmanager
def folder_gone():
    """The folder of the output has another name for a while."""
    folder = Path.cwd()
    hidden = folder.rename(folder.with_name("hidden"))
    try:
        yield
    finally:
        hidden.rename(folder)
