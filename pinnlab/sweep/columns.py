"""The columns of a sweep's table: what was found out about a run, and the settings."""

from pinnlab.sweep.axes import Axis
from pinnlab.sweep.design import DRAW
from pinnlab.sweep.search import TRIAL


NUMBERS = (
    "rel_l2",
    "estimate",
    "residual",
    "train_seconds",
    "compile_seconds",
    "verify_seconds",
    "iterations",
    "parameters",
    "peak_memory_mb",
)
TEXTS = ("state", "verdict", "error", "id")
TAKEN = frozenset((*NUMBERS, *TEXTS, DRAW, TRIAL))


def short_names(axes: tuple[Axis, ...]) -> dict[str, str]:
    """Each axis key with the last part of its path, where that is no other's name."""
    keys = [k for a in axes for k in a.keys]
    last = [k.rpartition(".")[2] for k in keys]
    return {
        k: n if last.count(n) == 1 and n not in TAKEN else k
        for k, n in zip(keys, last, strict=True)
    }
