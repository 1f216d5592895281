"""The truth report as HDF5 tables: a group per list, a dataset per column."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import h5py
import numpy as np

from pinnlab.result import ConditionCheck, Cost, EquationCheck, FieldError, Report


TABLES = {
    "equations": EquationCheck,
    "conditions": ConditionCheck,
    "fields": FieldError,
}
SINGLE = ("verdict", "reason", "suggestion", "target", "strategy")

_Row = TypeVar("_Row", EquationCheck, ConditionCheck, FieldError)


def write_report(group: h5py.Group, report: Report) -> None:
    """Write a report: attributes for what is single, a group for each table."""
    for name in SINGLE:
        group.attrs[name] = getattr(report, name)
    group.create_dataset(
        "warnings", data=list(report.warnings), dtype=h5py.string_dtype()
    )
    for name, kind in TABLES.items():
        rows = getattr(report, name)
        table = group.create_group(name, track_order=True)
        for column in dataclasses.fields(kind):
            values = [getattr(row, column.name) for row in rows]
            table.create_dataset(column.name, data=values, dtype=_dtype(column.type))
    cost = group.create_group("cost", track_order=True)
    for name, value in dataclasses.asdict(report.cost).items():
        cost.attrs[name] = value


def read_report(group: h5py.Group) -> Report:
    """Read a report back, equal to the one that was written."""
    cost = group["cost"]
    return Report(
        verdict=str(group.attrs["verdict"]),
        reason=str(group.attrs["reason"]),
        suggestion=str(group.attrs["suggestion"]),
        target=number(group, "target"),
        strategy=str(group.attrs["strategy"]),
        equations=_rows(subgroup(group, "equations"), EquationCheck),
        conditions=_rows(subgroup(group, "conditions"), ConditionCheck),
        fields=_rows(subgroup(group, "fields"), FieldError),
        cost=Cost(
            compile_seconds=number(cost, "compile_seconds"),
            train_seconds=number(cost, "train_seconds"),
            verify_seconds=number(cost, "verify_seconds"),
            iterations=int(number(cost, "iterations")),
            parameters=int(number(cost, "parameters")),
            peak_memory_mb=number(cost, "peak_memory_mb"),
        ),
        warnings=strings(dataset(group, "warnings")),
    )


def dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    """A dataset of a group; `KeyError` where the name is a group or missing."""
    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise KeyError(f"{name} is not a dataset")
    return found


def subgroup(group: h5py.Group, name: str) -> h5py.Group:
    """A group of a group; `KeyError` where the name is a dataset or missing."""
    found = group[name]
    if not isinstance(found, h5py.Group):
        raise KeyError(f"{name} is not a group")
    return found


def number(node: h5py.HLObject, attribute: str) -> float:
    """An attribute that is a number."""
    return float(np.asarray(node.attrs[attribute]).item())


def strings(column: h5py.Dataset) -> tuple[str, ...]:
    """The texts of a column."""
    return tuple(np.asarray(column.asstr()[()], dtype=object).tolist())


def _rows(table: h5py.Group, kind: type[_Row]) -> tuple[_Row, ...]:
    names = [f.name for f in dataclasses.fields(kind)]
    columns: list[Sequence] = [
        strings(dataset(table, f.name))
        if f.type is str
        else np.asarray(dataset(table, f.name)[()]).tolist()
        for f in dataclasses.fields(kind)
    ]
    return tuple(
        kind(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)
    )


def _dtype(kind: object) -> np.dtype:
    if kind is str:
        return h5py.string_dtype()
    return np.dtype(np.int64 if kind is int else np.float64)
