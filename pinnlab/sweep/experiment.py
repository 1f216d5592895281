"""The experiment file: what is swept, over what, and with which resources."""

import dataclasses
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pinnlab.errors import ProblemError, located, nearest, quoted
from pinnlab.sweep.axes import (
    Axis,
    Exclusion,
    Value,
    read_axis,
    read_exclusion,
    read_group,
)


OF_A_RUN = ("problem", "seed", "target", "budget")
"""Axes that are no settings of the problem file."""
TABLES = ("axes", "zip", "exclude", "solver", "resources", "slurm")
TOP = ("title", *OF_A_RUN, "reference", "batch", *TABLES)
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30}


@dataclass(frozen=True)
class Resources:
    """What one run needs. `memory` in bytes, `time` in seconds; 0: not limited."""

    cpus: int = 1
    gpus: int = 0
    memory: int = 2 * 10**9
    time: float = 0.0


@dataclass(frozen=True)
class Slurm:
    """`[slurm]`: the jobs of a sweep on a cluster.

    - `workers`: the most jobs at one time.
    - `walltime`: of one job, in seconds.
    - `setup`: lines of shell before Python starts (modules, environments).
    - `extra`: more options of sbatch, as in `--constraint=a100`.
    - `interface`: the network interface that jobs and this computer share.
    """

    partition: str = ""
    account: str = ""
    workers: int = 8
    walltime: float = 3600.0
    setup: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    interface: str = ""


@dataclass(frozen=True)
class Experiment:
    """A sweep as it is written.

    `fixed` are the settings that all runs share; with `reference` each is also solved
    classically. `folder` is that of the file: paths in it are relative to this. With
    `batch`, runs that differ only in numbers are solved as one ensemble.
    """

    title: str
    fixed: dict[str, Value]
    axes: tuple[Axis, ...]
    exclusions: tuple[Exclusion, ...]
    resources: Resources
    slurm: Slurm
    folder: Path
    reference: bool
    batch: bool


def load_experiment(path: str | Path) -> Experiment:
    """The experiment in a file.

    Raises `ProblemError` naming the file, the key and what would be accepted.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ProblemError(message, file=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"not valid TOML: {error}", file=str(path)) from None
    with located(file=path.name):
        return _experiment(table, path)


def span(value: object, where: str) -> float:
    """Seconds from a number or a text such as `90s`, `2m`, `1.5h`."""
    return _scaled(value, SECONDS, where, "a time such as 90, 60s, 2m, 1h")


def _experiment(table: Mapping[str, object], path: Path) -> Experiment:
    _known(table, TOP, "")
    fixed: dict[str, Value] = {}
    for key in OF_A_RUN:
        if key in table:
            fixed[key] = _of_a_run(key, table[key], key)
    fixed |= _flat(_table(table, "solver"), "solver")
    axes = _axes(table)
    keys = tuple(k for a in axes for k in a.keys)
    for key in keys:
        if keys.count(key) > 1:
            raise ProblemError(f"{quoted(key)} is an axis twice", key="axes")
        if key in fixed:
            raise ProblemError(f"{quoted(key)} is an axis and fixed", key=key)
    if "problem" not in (*fixed, *keys):
        message = "missing: a gallery name or a file, as in problem = 'burgers'"
        raise ProblemError(message, key="problem")
    excluded = _list(table, "exclude")
    return Experiment(
        title=_text(table.get("title", path.stem), "title"),
        fixed=fixed,
        axes=axes,
        exclusions=tuple(
            read_exclusion(dict(_entries(e)), keys, f"exclude[{i}]")
            for i, e in enumerate(excluded)
        ),
        resources=_resources(_table(table, "resources")),
        slurm=_slurm(_table(table, "slurm")),
        folder=path.parent,
        reference=_boolean(table.get("reference", True), "reference"),
        batch=_boolean(table.get("batch", False), "batch"),
    )


def _axes(table: Mapping[str, object]) -> tuple[Axis, ...]:
    axes = [read_axis(k, v) for k, v in _entries(_table(table, "axes"))]
    axes += [
        read_group(dict(_entries(g)), f"zip[{i}]")
        for i, g in enumerate(_list(table, "zip"))
    ]
    if not axes:
        message = 'missing: what varies, as in "parameters.nu" = [0.1, 0.01]'
        raise ProblemError(message, key="axes")
    for axis in axes:
        for i, key in enumerate(axis.keys):
            where = f"axes.{key}"
            if key in OF_A_RUN:
                for values in axis.values:
                    _of_a_run(key, values[i], where)
            elif not re.fullmatch(r"[^.]+(\.[^.]+)+", key):
                message = (
                    f"{quoted(key)} is no setting: expected {', '.join(OF_A_RUN)}, or "
                    'a quoted path such as "parameters.nu", "solver.network.width"'
                )
                raise ProblemError(message, key="axes", hint=nearest(key, OF_A_RUN))
    return tuple(axes)


def _entries(
    table: Mapping[str, object], path: str = ""
) -> Iterator[tuple[str, object]]:
    """Dotted keys and values: in TOML `parameters.nu = ...` is a table in a table."""
    for key, value in table.items():
        if (
            isinstance(value, Mapping)
            and value
            and not {"lin", "log", "n"} & set(value)
        ):
            yield from _entries(value, f"{path}{key}.")
        else:
            yield path + key, value


def _of_a_run(key: str, value: object, where: str) -> Value:
    if key == "problem":
        return _text(value, where)
    if key == "seed":
        return _integer(value, where, 0, 2**31 - 1)
    if key == "budget":
        span(value, where)
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ProblemError(f"expected a positive number, found {value!r}", key=where)
    return value


def _resources(table: Mapping[str, object]) -> Resources:
    _known(table, [f.name for f in dataclasses.fields(Resources)], "resources")
    plain = Resources()
    where = "resources."
    return Resources(
        cpus=_integer(table.get("cpus", plain.cpus), where + "cpus", 1, 4096),
        gpus=_integer(table.get("gpus", plain.gpus), where + "gpus", 0, 64),
        memory=int(
            _scaled(
                table.get("memory", plain.memory),
                BYTES,
                where + "memory",
                "a size such as 500MB, 2GB",
            )
        ),
        time=span(table["time"], where + "time") if "time" in table else plain.time,
    )


def _slurm(table: Mapping[str, object]) -> Slurm:
    names = [f.name for f in dataclasses.fields(Slurm)]
    _known(table, names, "slurm")
    found: dict[str, object] = {}
    for key, value in table.items():
        where = f"slurm.{key}"
        if key == "workers":
            found[key] = _integer(value, where, 1, 10_000)
        elif key == "walltime":
            found[key] = span(value, where)
        elif key in ("setup", "extra"):
            if not isinstance(value, list):
                raise ProblemError(f"expected a list, found {value!r}", key=where)
            found[key] = tuple(_text(v, where) for v in value)
        else:
            found[key] = _text(value, where)
    return dataclasses.replace(Slurm(), **found)


def _flat(table: Mapping[str, object], path: str) -> dict[str, Value]:
    """A table of tables as dotted keys."""
    found: dict[str, Value] = {}
    for key, value in table.items():
        where = f"{path}.{key}"
        if isinstance(value, Mapping):
            found |= _flat(value, where)
        elif isinstance(value, str | int | float):
            found[where] = value
        else:
            raise ProblemError(f"expected a value, found {value!r}", key=where)
    return found


def _known(table: Mapping[str, object], names: tuple | list, where: str) -> None:
    for key in table:
        if key not in names:
            raise ProblemError(
                f"unknown key {quoted(key)} (known: {', '.join(names)})",
                key=where or None,
                hint=nearest(key, names),
            )


def _table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise ProblemError(f"expected a table, found {value!r}", key=key)
    return value


def _list(table: Mapping[str, object], key: str) -> list:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        raise ProblemError(f"expected a list of tables ([[{key}]])", key=key)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ProblemError(f"expected a text, found {value!r}", key=where)
    return value


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ProblemError(f"expected true or false, found {value!r}", key=where)
    return value


def _integer(value: object, where: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        message = f"expected an integer from {least} to {most}, found {value!r}"
        raise ProblemError(message, key=where)
    return value


def _scaled(
    value: object, units: Mapping[str, float], where: str, expected: str
) -> float:
    """A number, or a text of a number and a unit, as a positive finite number."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", str(value).lower())
    try:
        if isinstance(value, bool) or match is None:
            raise ValueError
        found = float(match[1]) * units[match[2]]
        if not 0 < found < math.inf:
            raise ValueError
    except (ValueError, KeyError):
        message = f"expected {expected}, found {value!r}"
        raise ProblemError(message, key=where) from None
    return found
