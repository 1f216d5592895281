"""What a problem declares: parameters, coordinates, fields and definitions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pinnlab.equation.expression import Expression, Field, walk
from pinnlab.equation.parser import parse_value
from pinnlab.equation.scope import Scope, Value
from pinnlab.errors import ProblemError, located, nearest
from pinnlab.problem.constants import constant, parameter_values
from pinnlab.problem.geometry import around, read_geometry
from pinnlab.problem.names import check_names
from pinnlab.problem.order import reading_order
from pinnlab.problem.problem import Axis, Unknown
from pinnlab.problem.shape import Shape
from pinnlab.problem.tables import Table, only_keys, shown, subtable


@dataclass(frozen=True)
class Declarations:
    """The names that equations and conditions may use, and what they mean."""

    axes: tuple[Axis, ...]
    fields: tuple[Unknown, ...]
    parameters: dict[str, float]
    periodic: tuple[str, ...]
    scope: Scope
    shape: Shape | None = None

    @property
    def complex_fields(self) -> frozenset[str]:
        """The names of the complex fields."""
        return frozenset(f.name for f in self.fields if f.complex)

    def axis(self, name: str) -> Axis:
        """The coordinate of this name."""
        return next(a for a in self.axes if a.name == name)

    @property
    def data_scope(self) -> Scope:
        """The scope without fields and what is made of them."""
        known = self.scope.definitions.items()
        plain = {name: value for name, value in known if not _uses_fields(value)}
        return replace(self.scope, fields={}, definitions=plain)


def read_declarations(table: Table) -> Declarations:
    """The declarations in the tables. Raises `ProblemError` for what is wrong."""
    fields = _fields(table["fields"])
    check_names(table, tuple(subtable(table, "coordinates")), fields)
    parameters = _parameters(subtable(table, "parameters"))
    axes = _axes(subtable(table, "coordinates"), parameters)
    periodic = _periodic(table.get("periodic", ()), tuple(a.name for a in axes))
    shape = read_geometry(subtable(table, "geometry"), axes, periodic, parameters)
    if shape is not None:
        axes = around(shape, axes)
    scope = Scope(
        axes={a.name: (a.lower, a.upper) for a in axes},
        fields={f.name: f.complex for f in fields},
        parameters=tuple(parameters),
    )
    scope = _define(scope, subtable(table, "definitions"))
    return Declarations(axes, fields, parameters, periodic, scope, shape)


def _parameters(table: Table) -> dict[str, float]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            raise ProblemError(
                "unknown, ranged, tabulated and regional parameters are not supported "
                "yet: give a number or a constant expression",
                key=f"parameters.{key}",
            )
    return parameter_values(table)


def _fields(listed: object) -> tuple[Unknown, ...]:
    if not isinstance(listed, list | tuple) or not listed:
        raise ProblemError(
            f'expected a list such as ["u"], found {shown(listed)}', key="fields"
        )
    return tuple(_field(item, f"fields[{i}]") for i, item in enumerate(listed))


def _field(item: object, key: str) -> Unknown:
    if isinstance(item, str):
        return Unknown(item)
    with located(key=key):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not isinstance(name, str):
            raise ProblemError(f'expected "u" or {{ name = "u" }}, found {shown(item)}')
        only_keys(item, ("name", "complex", "of"))
        if "of" in item:
            raise ProblemError(
                "fields of fewer coordinates ('of') are not supported yet"
            )
        is_complex = item.get("complex", False)
        if not isinstance(is_complex, bool):
            raise ProblemError("'complex' is true or false")
        return Unknown(name, is_complex)


def _axes(table: Table, parameters: dict[str, float]) -> tuple[Axis, ...]:
    if not table:
        raise ProblemError("there is no coordinate", key="coordinates")
    scope = Scope(parameters=tuple(parameters))
    found: list[Axis] = []
    for name, bounds in table.items():
        with located(key=f"coordinates.{name}"):
            if not isinstance(bounds, list | tuple) or len(bounds) != 2:
                raise ProblemError(f"expected [lower, upper], found {shown(bounds)}")
            lower, upper = (constant(b, scope, parameters) for b in bounds)
            if not lower < upper:
                raise ProblemError(
                    f"the lower bound {lower:g} is not below the upper {upper:g}"
                )
            if not 1e-290 < upper - lower < 1e290:
                raise ProblemError(
                    f"the range [{lower:g}, {upper:g}] is too wide or too narrow for "
                    "arithmetic: choose other units"
                )
            found.append(Axis(name, lower, upper))
    return tuple(found)


def _periodic(listed: object, known: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(listed, list | tuple) and len(set(map(str, listed))) < len(listed):
        raise ProblemError("a coordinate is listed twice", key="periodic")
    if not isinstance(listed, list | tuple):
        raise ProblemError(
            f'expected a list such as ["x"], found {shown(listed)}', key="periodic"
        )
    for name in listed:
        if name not in known:
            raise ProblemError(
                f"{shown(name)} is no coordinate (coordinates: {', '.join(known)})",
                key="periodic",
                hint=nearest(str(name), known),
            )
    return tuple(dict.fromkeys(str(n) for n in listed))


def _define(scope: Scope, table: Table) -> Scope:
    """The scope with the definitions, which may use each other in any order."""
    found: dict[str, Value] = {}
    for name in reading_order(table, "definitions"):
        text = table[name]
        with located(key=f"definitions.{name}"):
            if not isinstance(text, str):
                raise ProblemError(f"expected a text, found {shown(text)}")
            inner = replace(scope, definitions=found, normal=True)
            found[name] = parse_value(text, inner)
    return replace(scope, definitions={name: found[name] for name in table})


def _uses_fields(value: Value) -> bool:
    parts = (value,) if isinstance(value, Expression) else value.components
    return any(isinstance(node, Field) for part in parts for node in walk(part))
