"""How much memory there is: of the computer, a job in it, or a GPU."""

import os
import resource
import sys
from pathlib import Path


GROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where a container or a job under Linux finds its limit (control groups 2 and 1)."""

INFO = Path("/proc/meminfo")
STATUS = Path("/proc/self/status")


def total_memory() -> int | None:
    """Bytes of memory, or the limit below it; None where the system does not tell."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([size, *_limits()])


def free_memory() -> int | None:
    """Bytes that are free for something new, what is only kept for speed among them."""
    total = total_memory()
    try:
        table = dict(line.split(":", 1) for line in INFO.read_text().splitlines())
        free = int(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return total
    return free if total is None else min(free, total)


def device_memory() -> int | None:
    """Bytes of the first device that JAX has: its own, or those of the computer."""
    stats = _device()
    return stats["bytes_limit"] if stats else total_memory()


def free_device_memory() -> int | None:
    """Bytes that are free on the first device that JAX has."""
    stats = _device()
    if stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    return free_memory()


def peak_memory() -> int:
    """The most bytes of memory that this process has had."""
    try:
        table = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(table["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        # Under Linux this one would also count the process that started this one.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _device() -> dict[str, int] | None:
    import jax  # Sweeps ask for the memory of a computer without it.

    stats = jax.local_devices()[0].memory_stats()
    return stats if stats and "bytes_limit" in stats else None


def _limits() -> list[int]:
    found = []
    for path in GROUPS:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # No group, or "max".
            continue
    return found
