"""From the tables of a problem file, or of Python, to a checked `Problem`."""

from collections.abc import Iterable, Mapping
from typing import TypeGuard

import tomli_w

from pinnlab.equation.complex_parts import split
from pinnlab.equation.expression import ZERO, Expression, Field, walk
from pinnlab.equation.parser import parse_equation, parse_expression, parse_value
from pinnlab.equation.scope import RESERVED, RESULT_NAMES, Scope, Value, Vector
from pinnlab.equation.tokens import names_in
from pinnlab.errors import ProblemError, located, nearest
from pinnlab.problem.constants import constant, parameter_values
from pinnlab.problem.places import EVERYWHERE, Surroundings, parse_places
from pinnlab.problem.problem import (
    Axis,
    Condition,
    Equation,
    Place,
    Problem,
    Unknown,
)
from pinnlab.problem.usage import check_usage


TABLES = (
    "title", "coordinates", "fields", "periodic", "parameters", "definitions",
    "equations", "conditions", "exact", "outputs", "solver", "reference",
)  # fmt: skip
NOT_YET = ("geometry", "regions", "data", "history")
REQUIRED = ("coordinates", "fields", "equations")

Table = Mapping[str, object]


def make_problem(table: Table, name: str = "problem", file: str | None = None):  # noqa: ANN201
    """The problem that tables describe; the same tables as in a problem file.

    An equation, or the `equation` of a condition, may also be a callable
    `(u, point)` that is zero: `u.name` are the fields as scalar functions of the point
    [dim], ready for `jax.grad`, `jax.hessian` and `jax.jvp`.

    Raises `ProblemError` for anything that is wrong.

    !!! example
        ```python
        problem = make_problem(
            {
                "coordinates": {"x": [0, 1]},
                "fields": ["u"],
                "equations": {"e": lambda u, x: jax.hessian(u)(x)[0, 0] + 1},
                "conditions": {"ends": {"on": "boundary", "equation": "u = 0"}},
            }
        )
        ```
    """
    with located(file=file):
        return _Builder(table, name, file).problem()


class _Builder:
    """The tables and what was made of them so far."""

    def __init__(self, table: Table, name: str, file: str | None):
        self.table, self.name, self.file = table, name, file
        _check_tables(table)
        self.parameters = self._parameters()
        self.fields = self._fields()
        self.axes = self._axes()
        self._check_names()
        self.scope = self._scope()

    def problem(self) -> Problem:
        """Everything put together."""
        equations = self._equations("equations")
        if not equations:
            raise ProblemError("there is no equation", key="equations")
        problem = Problem(
            axes=self.axes,
            fields=self.fields,
            equations=equations,
            conditions=self._conditions(),
            parameters=self.parameters,
            periodic=self._periodic(),
            exact=self._expressions("exact"),
            outputs=self._expressions("outputs"),
            solver=dict(_table(self.table, "solver")),
            reference=dict(_table(self.table, "reference")),
            title=_string(self.table, "title"),
            name=self.name,
            source=_source(self.table),
        )
        check_usage(self.table)
        return problem

    def _parameters(self) -> dict[str, float]:
        table = _table(self.table, "parameters")
        for key, value in table.items():
            if isinstance(value, Mapping):
                raise ProblemError(
                    "unknown, ranged and tabulated parameters are not supported yet: "
                    "give a number or a constant expression",
                    key=f"parameters.{key}",
                )
        return parameter_values(table, self.file)

    def _fields(self) -> tuple[Unknown, ...]:
        listed = self.table["fields"]
        if not isinstance(listed, list | tuple) or not listed:
            raise ProblemError('expected a list such as ["u"]', key="fields")
        return tuple(_field(item, f"fields[{i}]") for i, item in enumerate(listed))

    def _axes(self) -> tuple[Axis, ...]:
        table = _table(self.table, "coordinates")
        if not table:
            raise ProblemError("there is no coordinate", key="coordinates")
        scope = Scope(parameters=tuple(self.parameters))
        found: list[Axis] = []
        for name, bounds in table.items():
            key = f"coordinates.{name}"
            with located(key=key):
                if not isinstance(bounds, list | tuple) or len(bounds) != 2:
                    raise ProblemError(f"expected [lower, upper], found {bounds!r}")
                lower, upper = (constant(b, scope, self.parameters) for b in bounds)
                if not lower < upper:
                    raise ProblemError(
                        f"the lower bound {lower:g} is not below the upper {upper:g}"
                    )
                found.append(Axis(name, lower, upper))
        return tuple(found)

    def _check_names(self) -> None:
        """Names are words, not reserved, and mean one thing only."""
        kinds: list[tuple[str, str, Iterable[str]]] = [
            ("coordinate", "coordinates", [a.name for a in self.axes]),
            ("field", "fields", [f.name for f in self.fields]),
            ("parameter", "parameters", self.parameters),
            ("definition", "definitions", _table(self.table, "definitions")),
            ("equation", "equations", _table(self.table, "equations")),
            ("condition", "conditions", _table(self.table, "conditions")),
            ("output", "outputs", _table(self.table, "outputs")),
        ]
        seen: dict[str, str] = {}
        for kind, key, names in kinds:
            for name in names:
                with located(key=f"{key}.{name}" if key != "fields" else key):
                    _check_word(name, kind)
                    if kind in ("equation", "condition"):
                        continue
                    if name in seen:
                        raise ProblemError(
                            f"'{name}' is the name of a {seen[name]} and of a {kind}: "
                            "every name may mean one thing only"
                        )
                    seen[name] = kind

    def _scope(self) -> Scope:
        scope = Scope(
            axes={a.name: (a.lower, a.upper) for a in self.axes},
            fields={f.name: f.complex for f in self.fields},
            parameters=tuple(self.parameters),
        )
        table = _table(self.table, "definitions")
        found: dict[str, Value] = {}
        pending: list[str] = []

        def find(name: str) -> None:
            if name in found:
                return
            text = table[name]
            with located(key=f"definitions.{name}"):
                if not isinstance(text, str):
                    raise ProblemError(f"expected a text, found {text!r}")
                if name in pending or len(pending) > 50:
                    chain = " -> ".join((*pending[-6:], name))
                    message = f"the definition is circular: {chain}"
                    raise ProblemError(message, text=text)
                with located(text=text):
                    pending.append(name)
                    for other in sorted(names_in(text) & table.keys()):
                        find(other)
                    pending.pop()
                    found[name] = parse_value(text, _with(scope, found))

        for name in table:
            find(name)
        return _with(scope, found)

    def _equations(self, key: str) -> tuple[Equation, ...]:
        table = _table(self.table, key)
        return tuple(
            self._equation(value, name, f"{key}.{name}", self.scope)
            for name, value in table.items()
        )

    def _equation(
        self, value: object, name: str, key: str, scope: Scope
    ) -> Equation:
        with located(key=key):
            if callable(value):
                label = getattr(value, "__name__", "function")
                return Equation(name, ZERO, ZERO, f"{label}(u, point) = 0", value)
            if not isinstance(value, str):
                hint = None
                if name in TABLES:
                    hint = f"'{name}' is a top-level key: put it before any [table]"
                raise ProblemError(
                    f"expected a text such as 'dxx(u) = 0', found {value!r}", hint=hint
                )
            with located(text=value):
                left, right = parse_equation(value, scope)
                self._check_complex(left - right, value)
            return Equation(name, left, right, " ".join(value.split()))

    def _check_complex(self, expression: Expression, text: str) -> None:
        complex_names = frozenset(f.name for f in self.fields if f.complex)
        try:
            _, imaginary = split(expression, complex_names)
        except ValueError as error:
            raise ProblemError(str(error), text=text, column=0) from None
        mentions = {n.name for n in walk(expression) if isinstance(n, Field)}
        if imaginary != ZERO and not mentions & complex_names:
            raise ProblemError(
                "an imaginary part, but every field here is real", text=text, column=0,
                hint='declare it: fields = [{ name = "u", complex = true }]',
            )  # fmt: skip

    def _conditions(self) -> tuple[Condition, ...]:
        table = _table(self.table, "conditions")
        return tuple(self._condition(n, v) for n, v in table.items())

    def _condition(self, name: str, value: object) -> Condition:
        key = f"conditions.{name}"
        with located(key=key):
            if not isinstance(value, Mapping):
                hint = None
                if name in TABLES:
                    hint = f"'{name}' is a top-level key: put it before any [table]"
                raise ProblemError(
                    f'expected {{ on = "...", equation = "..." }}, found {value!r}',
                    hint=hint,
                )
            _only_keys(value, ("on", "equation", "enforce"))
            if "equation" not in value:
                raise ProblemError("the key 'equation' is missing")
            enforce = value.get("enforce", "auto")
            if enforce not in ("auto", "exact", "penalty"):
                raise ProblemError(
                    f"unknown value {enforce!r} (auto, exact, penalty)",
                    key=f"{key}.enforce",
                )
            places = self._places(value, key)
        normal = any(p.fixed for p in places)
        scope = _with(self.scope, self.scope.definitions, normal)
        listed = value["equation"]
        texts = listed if isinstance(listed, list | tuple) else [listed]
        if not texts:
            raise ProblemError("the list is empty", key=f"{key}.equation")
        equations = tuple(
            self._equation(t, name, f"{key}.equation", scope) for t in texts
        )
        return Condition(name, places, equations, str(enforce))

    def _places(self, value: Table, key: str) -> tuple[Place, ...]:
        if "on" not in value:
            return (Place(EVERYWHERE, (), None),)
        listed = value["on"]
        texts = listed if isinstance(listed, list | tuple) else [listed]
        around = Surroundings(self.axes, self.scope, self.parameters)
        found: list[Place] = []
        with located(key=f"{key}.on"):
            if not texts:
                raise ProblemError("the list is empty")
            for text in texts:
                if not isinstance(text, str):
                    raise ProblemError(f"expected a text such as 'x = 0', found {text!r}")
                with located(text=text):
                    found += parse_places(text, around)
            if not found:
                raise ProblemError("there is no such face: no coordinate but time")
        return tuple(found)

    def _periodic(self) -> tuple[str, ...]:
        listed = self.table.get("periodic", [])
        known = [a.name for a in self.axes]
        if not isinstance(listed, list | tuple):
            raise ProblemError('expected a list such as ["x"]', key="periodic")
        for name in listed:
            if name not in known:
                raise ProblemError(
                    f"{name!r} is no coordinate (coordinates: {', '.join(known)})",
                    key="periodic",
                    hint=nearest(str(name), known),
                )
        return tuple(str(n) for n in listed)

    def _expressions(self, key: str) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        for name, text in _table(self.table, key).items():
            with located(key=f"{key}.{name}"):
                if key == "exact" and name not in self.scope.fields:
                    raise ProblemError(
                        f"'{name}' is no field (fields: {', '.join(self.scope.fields)})",
                        hint=nearest(name, self.scope.fields),
                    )
                if not isinstance(text, str | int | float) or isinstance(text, bool):
                    raise ProblemError(f"expected a text, found {text!r}")
                written = text if isinstance(text, str) else repr(text)
                with located(text=written):
                    found[name] = parse_expression(written, self.scope)
                    if key == "exact" and any(
                        isinstance(n, Field) for n in walk(found[name])
                    ):
                        raise ProblemError("an exact solution may not use fields")
                    _scalar_parts(found[name], self.fields)
        return found


def _scalar_parts(expression: Expression, fields: tuple[Unknown, ...]) -> None:
    try:
        split(expression, frozenset(f.name for f in fields if f.complex))
    except ValueError as error:
        raise ProblemError(str(error)) from None


def _with(
    scope: Scope, definitions: Mapping[str, Value], normal: bool = False
) -> Scope:
    return Scope(
        axes=scope.axes,
        fields=scope.fields,
        parameters=scope.parameters,
        definitions=dict(definitions),
        normal=normal,
    )


def _field(item: object, key: str) -> Unknown:
    if isinstance(item, str):
        return Unknown(item)
    with located(key=key):
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise ProblemError(f'expected "u" or {{ name = "u" }}, found {item!r}')
        _only_keys(item, ("name", "complex", "of"))
        if "of" in item:
            message = "fields of fewer coordinates ('of') are not supported yet"
            raise ProblemError(message)
        if not isinstance(item.get("complex", False), bool):
            raise ProblemError("'complex' is true or false")
        return Unknown(item["name"], item.get("complex", False))


def _check_word(name: str, kind: str) -> None:
    if not name.isidentifier() or len(name) > 64:
        raise ProblemError(f"the {kind} name {name!r} is not a word of letters")
    if name.startswith("_") or (kind != "output" and name.startswith("residual_")):
        raise ProblemError(f"the {kind} name '{name}' may not start like that")
    if kind in ("equation", "condition"):
        return
    if name in RESERVED or name in RESULT_NAMES:
        raise ProblemError(f"'{name}' is reserved and cannot name a {kind}")


def _check_tables(table: Table) -> None:
    for key in table:
        if key in NOT_YET:
            raise ProblemError(f"[{key}] is not supported yet", key=key)
        if key not in TABLES:
            raise ProblemError(
                f"unknown key '{key}' (known: {', '.join(TABLES)})",
                key=key,
                hint=nearest(key, TABLES),
            )
    for key in REQUIRED:
        if key not in table:
            raise ProblemError(f"the key '{key}' is missing", hint=_misplaced(table, key))


def _misplaced(table: Table, key: str) -> str | None:
    for name, inner in table.items():
        if isinstance(inner, Mapping) and key in inner:
            return (
                f"'{key}' stands inside [{name}]: put top-level keys before any [table]"
            )
    return None


def _only_keys(table: Table, known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            hint = nearest(str(key), known)
            if key in TABLES:
                hint = f"'{key}' is a top-level key: put it before any [table]"
            message = f"unknown key '{key}' (known: {', '.join(known)})"
            raise ProblemError(message, hint=hint)


def _is_table(value: object) -> TypeGuard[Table]:
    return isinstance(value, Mapping) and all(isinstance(k, str) for k in value)


def _table(table: Table, key: str) -> Table:
    value = table.get(key, {})
    if not _is_table(value):
        raise ProblemError(f"expected a table, found {value!r}", key=key)
    return value


def _string(table: Table, key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ProblemError(f"expected a text, found {value!r}", key=key)
    return value


def _source(table: Table) -> str:
    """The tables as TOML; "" where functions stand in them."""
    try:
        return tomli_w.dumps(dict(table))
    except TypeError:
        return ""


_ = Vector
