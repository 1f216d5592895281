"""How many compiled programs a process can hold.

Linux lets a process have `vm.max_map_count` pieces of memory, 65530 unless changed. A
compiled program takes several, the solution of a problem one to two thousand; where
none is left, the compiler ends the process. So some forty problems solved one after
another in a notebook would be the last.
"""

import gc
from pathlib import Path


USED = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")
FULL = 0.5
"""A solution that begins below this part of the limit ends below the limit."""


def make_room() -> bool:
    """Forget all compiled programs where the process holds too many for another
    solution; what is needed again is compiled again.

    **Returns:** whether they were forgotten; never where the system has no such limit.
    """
    if _used() < FULL * _limit():
        return False
    import equinox as eqx
    import jax

    eqx.clear_caches()
    jax.clear_caches()
    gc.collect()
    return True


def _used() -> int:
    try:
        return USED.read_bytes().count(b"\n")
    except OSError:
        return 0


def _limit() -> float:
    try:
        return float(LIMIT.read_text())
    except (OSError, ValueError):
        return float("inf")
