"""The truth report as HDF5 tables: a group per list, a dataset per column."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import h5py
import numpy as np

from pinnlab.result import (
    ConditionCheck,
    Cost,
    Diagnosis,
    EquationCheck,
    FieldError,
    FieldEstimate,
    MemberCheck,
    ReferenceCheck,
    Report,
    ResidualSpectrum,
    RunCheck,
    TermGradient,
)


TABLES = {
    "equations": EquationCheck,
    "conditions": ConditionCheck,
    "fields": FieldError,
    "estimates": FieldEstimate,
}
DIAGNOSIS = {
    "checks": RunCheck,
    "gradients": TermGradient,
    "spectra": ResidualSpectrum,
}
SINGLE = ("verdict", "reason", "suggestion", "target", "strategy")

_Row = TypeVar(
    "_Row",
    EquationCheck,
    ConditionCheck,
    FieldError,
    FieldEstimate,
    MemberCheck,
    RunCheck,
    TermGradient,
    ResidualSpectrum,
)


def write_report(group: h5py.Group, report: Report) -> None:
    """Write a report: attributes for what is single, a group for each table."""
    for name in SINGLE:
        group.attrs[name] = getattr(report, name)
    _write_strings(group, "warnings", report.warnings)
    _write_tables(group, report, TABLES)
    if report.members:
        _write_tables(group, report, {"members": MemberCheck})
        _name_dimension(subgroup(group, "members"), "member")
    if report.diagnosis is not None:
        inner = group.create_group("diagnosis", track_order=True)
        inner.attrs["suggestion"] = report.diagnosis.suggestion
        inner.attrs["step_memory_mb"] = report.diagnosis.step_memory_mb
        _write_strings(inner, "failures", report.diagnosis.failures)
        _write_tables(inner, report.diagnosis, DIAGNOSIS)
    if report.reference is not None:
        inner = group.create_group("reference", track_order=True)
        for name, value in dataclasses.asdict(report.reference).items():
            inner.attrs[name] = value
    cost = group.create_group("cost", track_order=True)
    for name, value in dataclasses.asdict(report.cost).items():
        cost.attrs[name] = value


def _write_strings(group: h5py.Group, name: str, texts: Sequence[str]) -> None:
    group.create_dataset(name, data=list(texts), dtype=h5py.string_dtype())


def _write_tables(
    group: h5py.Group, source: Report | Diagnosis, kinds: Mapping[str, type]
) -> None:
    for name, kind in kinds.items():
        rows = getattr(source, name)
        table = group.create_group(name, track_order=True)
        for column in dataclasses.fields(kind):
            values = [getattr(row, column.name) for row in rows]
            table.create_dataset(column.name, data=values, dtype=_dtype(column.type))


def _name_dimension(table: h5py.Group, name: str) -> None:
    """Gives a table's columns a dimension, without which xarray does not open it."""
    columns = [dataset(table, str(column)) for column in table]
    index = table.create_dataset(name, data=np.arange(len(columns[0])))
    index.make_scale(name)
    for column in columns:
        column.dims[0].attach_scale(index)


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
        diagnosis=_read_diagnosis(subgroup(group, "diagnosis"))
        if "diagnosis" in group
        else None,
        estimates=_rows(subgroup(group, "estimates"), FieldEstimate)
        if "estimates" in group
        else (),
        members=_rows(subgroup(group, "members"), MemberCheck)
        if "members" in group
        else (),
        reference=_read_reference(subgroup(group, "reference"))
        if "reference" in group
        else None,
    )


def _read_reference(group: h5py.Group) -> ReferenceCheck:
    return ReferenceCheck(
        method=str(group.attrs["method"]),
        reason=str(group.attrs["reason"]),
        error=number(group, "error"),
        seconds=number(group, "seconds"),
        seconds_alike=number(group, "seconds_alike"),
    )


def _read_diagnosis(group: h5py.Group) -> Diagnosis:
    return Diagnosis(
        suggestion=str(group.attrs["suggestion"]),
        step_memory_mb=number(group, "step_memory_mb"),
        failures=strings(dataset(group, "failures")),
        checks=_rows(subgroup(group, "checks"), RunCheck),
        gradients=_rows(subgroup(group, "gradients"), TermGradient),
        spectra=_rows(subgroup(group, "spectra"), ResidualSpectrum),
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
    # Columns that came later have defaults, and are missing in older files.
    present = [
        f
        for f in dataclasses.fields(kind)
        if f.name in table or f.default is dataclasses.MISSING
    ]
    names = [f.name for f in present]
    columns: list[Sequence] = [
        strings(dataset(table, f.name))
        if f.type is str
        else np.asarray(dataset(table, f.name)[()]).tolist()
        for f in present
    ]
    return tuple(
        kind(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)
    )


def _dtype(kind: object) -> np.dtype:
    if kind is str:
        return h5py.string_dtype()
    kinds = {int: np.int64, bool: np.bool_}
    return np.dtype(kinds.get(kind, np.float64))
