"""The experiment file: what is swept, over what, and with which resources."""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pinnlab.errors import ProblemError, located, nearest, quoted
from pinnlab.problem.tables import TABLES as TABLES_OF_PROBLEMS
from pinnlab.sweep.axes import (
    Axis,
    Exclusion,
    left_out,
    read_axis,
    read_exclusion,
    read_group,
)
from pinnlab.sweep.design import DESIGNS, GRID, Design, Factor
from pinnlab.sweep.ranges import LARGEST, Range, read_range
from pinnlab.sweep.reading import (
    boolean,
    choice,
    entries,
    flat,
    integer,
    known_keys,
    read_table,
    read_tables,
    span,
    text,
)
from pinnlab.sweep.resources import (
    SCHEDULERS,
    Jobs,
    Resources,
    read_jobs,
    read_resources,
)
from pinnlab.sweep.search import Search, read_search
from pinnlab.sweep.sharing import Batch, read_batch
from pinnlab.sweep.values import Settings, Value


OF_A_RUN = ("problem", "seed", "target", "budget")
"""Axes that are no settings of the problem file."""
DRAWN = ("design", "runs", "design_seed")
TABLES = ("axes", "zip", "exclude", "solver", "search", "resources", *SCHEDULERS)
TOP = ("title", *OF_A_RUN, "reference", "batch", *DRAWN, *TABLES)


@dataclass(frozen=True)
class Experiment:
    """A sweep as it is written.

    - `fixed`: the settings that all runs share; with `reference` each is also solved
      classically.
    - `axes`: all combinations of them are run; for a search empty, which chooses from
      `factors`.
    - `jobs`: of each scheduler.
    - `folder`: that of the file; paths in it are relative to this.
    - `batch`: whether runs that differ only in numbers are solved as one ensemble.
    """

    title: str
    fixed: Settings
    axes: tuple[Axis, ...]
    exclusions: tuple[Exclusion, ...]
    resources: Resources
    jobs: dict[str, Jobs]
    folder: Path
    reference: bool
    batch: Batch = Batch.AUTO
    search: Search | None = None
    factors: tuple[Factor, ...] = ()


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


def _experiment(table: Mapping[str, object], path: Path) -> Experiment:
    known_keys(table, TOP, "")
    fixed: Settings = {}
    for key in OF_A_RUN:
        if key in table:
            fixed[key] = _of_a_run(key, table[key], key)
    fixed |= flat(read_table(table, "solver"), "solver")
    search = read_search(table)
    design = _design(table, search)
    varied = _varied(table, ranges=bool(search or design))
    keys = tuple(k for v in varied for k in v.keys)
    _check_keys(keys, fixed)
    known = {k: _values(v, i) for v in varied for i, k in enumerate(v.keys)}
    if search:
        known.pop("seed", None)  # Each trial is run with all of them.
    exclusions = tuple(
        read_exclusion(dict(entries(e)), known, f"exclude[{i}]")
        for i, e in enumerate(read_tables(table, "exclude"))
    )
    experiment = Experiment(
        title=text(table.get("title", path.stem), "title"),
        fixed=fixed,
        axes=tuple(v for v in varied if isinstance(v, Axis)),
        exclusions=exclusions,
        resources=read_resources(read_table(table, "resources")),
        jobs=read_jobs(table),
        folder=path.parent,
        reference=boolean(table.get("reference", True), "reference"),
        batch=read_batch(table.get("batch", "auto")),
    )
    if search:
        factors, search = _searched(varied, search)
        if experiment.batch is Batch.ALWAYS and search.repetitions == 1:
            message = "the seeds of a trial are a batch, and there is one"
            raise ProblemError(message, key="batch", hint="add search.seeds = 3")
        return dataclasses.replace(experiment, axes=(), search=search, factors=factors)
    if design:
        axes = _drawn(design, varied, exclusions)
        return dataclasses.replace(experiment, axes=axes)
    return experiment


def _design(table: Mapping[str, object], search: Search | None) -> Design | None:
    """How combinations are drawn; None for all of them, and for a search."""
    kind = choice(table.get("design", GRID), "design", DESIGNS)
    if kind == GRID:
        for key in DRAWN[1:]:
            if key in table:
                message = 'only a design of "random" or "sobol" has it'
                raise ProblemError(message, key=key)
        return None
    if search:
        raise ProblemError("a search chooses its runs itself", key="design")
    if "runs" not in table:
        message = f"missing: how many runs, as in runs = 64 (design = {kind!r})"
        raise ProblemError(message, key="runs")
    count = integer(table["runs"], "runs", 1, LARGEST)
    seed = integer(table.get("design_seed", 0), "design_seed", 0, 2**31 - 1)
    return Design(kind, count, seed)


def _searched(
    varied: list[Axis | Factor], search: Search
) -> tuple[tuple[Factor, ...], Search]:
    """What a search chooses from; an axis of seeds is what it repeats trials with."""
    seeds = [v for v in varied if isinstance(v, Axis) and v.keys == ("seed",)]
    factors = tuple(_factor(v) for v in varied if v not in seeds)
    if any("seed" in f.keys for f in factors):
        message = "a search takes a list of seeds, with each of which a trial is run"
        raise ProblemError(message, key="axes.seed")
    if not factors:
        raise ProblemError("missing: what is searched beside the seeds", key="axes")
    if seeds and search.seeds:
        message = "the seeds are given in [axes] already"
        raise ProblemError(message, key="search.seeds")
    if seeds:
        found = tuple(int(str(row[0])) for row in seeds[0].values)
        search = dataclasses.replace(search, seeds=found)
    return factors, search


def _drawn(
    design: Design, varied: list[Axis | Factor], exclusions: tuple[Exclusion, ...]
) -> tuple[Axis, ...]:
    """The draws as an axis, and the seeds as another."""
    seeds = [v for v in varied if isinstance(v, Axis) and v.keys == ("seed",)]
    factors = [_factor(v) for v in varied if v not in seeds]
    if not factors:
        raise ProblemError("missing: what is drawn beside the seeds", key="axes")
    drawn = {k for f in factors for k in f.keys}
    early = [e for e in exclusions if {key for key, *_ in e.tests} <= drawn]

    return design.drawn(factors, lambda s: left_out(s, early)), *seeds


def _factor(varied: Axis | Factor) -> Factor:
    if isinstance(varied, Factor):
        return varied
    return Factor(varied.keys, varied.values)


def _varied(table: Mapping[str, object], *, ranges: bool) -> list[Axis | Factor]:
    """The axes, and with `ranges` what is a range without steps."""
    found: list[Axis | Factor] = []
    for key, value in entries(read_table(table, "axes")):
        if ranges and isinstance(value, Mapping) and "n" not in value:
            between, _ = read_range(value, f"axes.{key}")
            found.append(Factor((key,), between))
        else:
            found.append(read_axis(key, value))
    found += [
        read_group(dict(entries(g)), f"zip[{i}]")
        for i, g in enumerate(read_tables(table, "zip"))
    ]
    if not found:
        message = 'missing: what varies, as in "parameters.nu" = [0.1, 0.01]'
        raise ProblemError(message, key="axes")
    for one in found:
        for i, key in enumerate(one.keys):
            _check_values(key, _values(one, i))
    return found


def _values(varied: Axis | Factor, column: int) -> list[Value]:
    """The values of one of its keys, of a range the ends."""
    if isinstance(varied, Axis):
        return [row[column] for row in varied.values]
    if isinstance(varied.choices, Range):
        ends = varied.choices.low, varied.choices.high
        return [int(e) if varied.choices.whole else e for e in ends]
    return [row[column] for row in varied.choices]


def _check_values(key: str, values: list[Value]) -> None:
    if key in OF_A_RUN:
        for value in values:
            _of_a_run(key, value, f"axes.{key}")
    elif key not in TABLES_OF_PROBLEMS and not re.fullmatch(r"[^.]+(\.[^.]+)+", key):
        message = (
            f"{quoted(key)} is no setting: expected {', '.join(OF_A_RUN)}, a path "
            'such as "parameters.nu", "solver.network.width", or what a problem file '
            f"has ({', '.join(TABLES_OF_PROBLEMS)})"
        )
        hint = nearest(key, (*OF_A_RUN, *TABLES_OF_PROBLEMS))
        raise ProblemError(message, key="axes", hint=hint)


def _check_keys(keys: tuple[str, ...], fixed: Settings) -> None:
    for key in keys:
        if keys.count(key) > 1:
            raise ProblemError(f"{quoted(key)} is an axis twice", key="axes")
        if key in fixed:
            raise ProblemError(f"{quoted(key)} is an axis and fixed", key=key)
        inside = next((k for k in (*keys, *fixed) if k.startswith(f"{key}.")), None)
        if inside:
            message = f"the tables of this axis would replace {quoted(inside)}"
            hint = "put all that the table has into each value of the axis"
            raise ProblemError(message, key=f"axes.{key}", hint=hint)
    if "problem" not in (*fixed, *keys):
        message = "missing: a gallery name or a file, as in problem = 'burgers'"
        raise ProblemError(message, key="problem")


def _of_a_run(key: str, value: object, where: str) -> Value:
    if key == "problem":
        return text(value, where)
    if key == "seed":
        return integer(value, where, 0, 2**31 - 1)
    if key == "budget":
        span(value, where)
        return value  # pyright: ignore[reportReturnType]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ProblemError(f"expected a positive number, found {value!r}", key=where)
    return value
