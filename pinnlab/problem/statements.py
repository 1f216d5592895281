"""What a problem states: equations, conditions, exact solutions and outputs."""

from collections.abc import Mapping
from dataclasses import replace

from pinnlab.equation.complex_parts import split
from pinnlab.equation.expression import (
    ZERO,
    At,
    Expression,
    Field,
    Integral,
    NormalDerivative,
    walk,
)
from pinnlab.equation.parser import parse_equation, parse_expression
from pinnlab.equation.scope import Scope
from pinnlab.errors import ProblemError, located, nearest, quoted
from pinnlab.problem.constants import check_constants
from pinnlab.problem.declarations import Declarations
from pinnlab.problem.places import EVERYWHERE, parse_places
from pinnlab.problem.problem import Condition, Equation, Place, ReferenceChoice
from pinnlab.problem.tables import Table, as_list, only_keys, shown


def read_equations(table: Table, declared: Declarations) -> tuple[Equation, ...]:
    """The equations. Raises `ProblemError` for what is wrong."""
    if not table:
        raise ProblemError("there is no equation", key="equations")
    equations = tuple(
        _equation(value, name, f"equations.{name}", declared, declared.scope)
        for name, value in table.items()
    )
    if any(e.function for e in equations):
        return equations
    used = {f for e in equations for f in _fields(e.left) | _fields(e.right)}
    for field in declared.fields:
        if field.name not in used:
            raise ProblemError(f"no equation contains '{field.name}'", key="fields")
    return equations


def read_conditions(table: Table, declared: Declarations) -> tuple[Condition, ...]:
    """The conditions. Raises `ProblemError` for what is wrong."""
    return tuple(_condition(name, value, declared) for name, value in table.items())


def read_exact(table: Table, declared: Declarations) -> dict[str, Expression]:
    """The exact solutions, by field."""
    found: dict[str, Expression] = {}
    for name, value in table.items():
        with located(key=f"exact.{name}"):
            if name not in declared.scope.fields:
                names = tuple(declared.scope.fields)
                raise ProblemError(
                    f"'{name}' is no field (fields: {', '.join(names)})",
                    hint=nearest(name, names),
                )
            found[name], imaginary = _expression(value, declared)
            if _fields(found[name]):
                raise ProblemError("an exact solution may not use fields")
            if imaginary and name not in declared.complex_fields:
                raise ProblemError(f"a complex value, but the field '{name}' is real")
    return found


def read_outputs(table: Table, declared: Declarations) -> dict[str, Expression]:
    """The outputs, by name."""
    found: dict[str, Expression] = {}
    for name, value in table.items():
        with located(key=f"outputs.{name}"):
            found[name], _ = _expression(value, declared)
    return found


def read_reference(table: Table) -> ReferenceChoice:
    """What a solution is judged by. Raises `ProblemError` for what is wrong."""
    with located(key="reference"):
        only_keys(table, ("method", "file"))
        for key, value in table.items():
            if not isinstance(value, str):
                message = f"expected a text, found {shown(value)}"
                raise ProblemError(message, key=f"reference.{key}")
        method, file = str(table.get("method", "auto")), str(table.get("file", ""))
        if method not in ("auto", "none"):
            raise ProblemError(f"unknown method {quoted(method)} (auto, none)")
        if file and "method" in table:
            raise ProblemError("give a method or a file, not both")
        return ReferenceChoice(method, file)


def _expression(value: object, declared: Declarations) -> tuple[Expression, bool]:
    """An expression, and whether it has an imaginary part."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ProblemError(f"expected a text, found {shown(value)}")
    text = value if isinstance(value, str) else repr(value)
    with located(text=text):
        expression = parse_expression(text, declared.scope)
        _check_normal(expression, declared.scope)
        _check_integrals(expression, declared)
        check_constants(expression, declared.parameters)
        return expression, _has_imaginary_part(expression, declared)


def _equation(
    value: object, name: str, key: str, declared: Declarations, scope: Scope
) -> Equation:
    with located(key=key):
        if callable(value):
            label = getattr(value, "__name__", "function")
            return Equation(name, ZERO, ZERO, f"{label}(u, point) = 0", value)
        if isinstance(value, Mapping):
            message = "an equation for one region is not supported yet: give a text"
            raise ProblemError(message)
        if not isinstance(value, str):
            raise ProblemError(
                f"expected a text such as 'dxx(u) = 0', found {shown(value)}"
            )
        with located(text=value):
            left, right = parse_equation(value, scope)
            for side in (left, right):
                _check_normal(side, scope)
                _check_integrals(side, declared)
                check_constants(side, declared.parameters)
            _check_fields(left - right, declared)
        return Equation(name, left, right, " ".join(value.split()))


def _check_fields(residual: Expression, declared: Declarations) -> None:
    """An equation is about a field, and complex only for complex fields."""
    used = _fields(residual)
    if not used:
        names = ", ".join(f.name for f in declared.fields)
        raise ProblemError(f"the equation contains no field ({names})")
    imaginary = _has_imaginary_part(residual, declared)
    if imaginary and not used & declared.complex_fields:
        raise ProblemError(
            "an imaginary part, but every field here is real",
            hint='declare it: fields = [{ name = "u", complex = true }]',
        )


def _has_imaginary_part(expression: Expression, declared: Declarations) -> bool:
    try:
        _, imaginary = split(expression, declared.complex_fields)
    except ValueError as error:
        raise ProblemError(str(error)) from None
    return imaginary != ZERO


def _check_normal(expression: Expression, scope: Scope) -> None:
    """Definitions may have a `dn` that has no meaning where they are used."""
    if not scope.normal and _has_normal(expression):
        raise ProblemError("dn(...) needs a face: use it in a condition")


def _check_integrals(expression: Expression, declared: Declarations) -> None:
    """Ranges of coordinates, and places given by them, are the box's."""
    if declared.shape is None:
        return
    names = [declared.axes[i].name for i in declared.shape.columns]
    for node in walk(expression):
        if isinstance(node, Integral) and node.variable in names:
            raise ProblemError(
                f"an integral over '{node.variable}' is not supported on a shape yet"
            )
        if isinstance(node, At) and _fields(node.body):
            moved = [n for n, _ in node.where if n in names]
            if moved:
                raise ProblemError(
                    f"at(..., {moved[0]} = ...) is not supported on a shape yet: the "
                    "place may be outside of it"
                )


def _has_normal(expression: Expression) -> bool:
    return any(isinstance(node, NormalDerivative) for node in walk(expression))


def _fields(expression: Expression) -> frozenset[str]:
    return frozenset(n.name for n in walk(expression) if isinstance(n, Field))


def _condition(name: str, value: object, declared: Declarations) -> Condition:
    key = f"conditions.{name}"
    with located(key=key):
        if not isinstance(value, Mapping):
            raise ProblemError(
                f'expected {{ on = "...", equation = "..." }}, found {shown(value)}'
            )
        only_keys(value, ("on", "equation", "enforce"))
        if "equation" not in value:
            raise ProblemError("the key 'equation' is missing")
    enforce = value.get("enforce", "auto")
    if enforce not in ("auto", "exact", "penalty"):
        message = f"unknown value {shown(enforce)} (auto, exact, penalty)"
        raise ProblemError(message, key=f"{key}.enforce")
    places = _places(value, key, declared)
    texts = as_list(value["equation"])
    if not texts:
        raise ProblemError("the list is empty", key=f"{key}.equation")
    scope = replace(declared.scope, normal=any(not p.inside for p in places))
    equations = tuple(
        _equation(text, name, f"{key}.equation", declared, scope) for text in texts
    )
    for equation in equations:
        if equation.function is None and _has_normal(equation.residual):
            with located(key=f"{key}.equation", text=equation.text):
                _check_faces(places, declared)
    return Condition(name, places, equations, str(enforce))


def _check_faces(places: tuple[Place, ...], declared: Declarations) -> None:
    """An outward normal exists on faces in space, and there only."""
    for place in places:
        names = [name for name, _ in place.fixed]
        if names == ["t"]:
            message = "dn(...) is a derivative in space: write dt(...) in time"
            raise ProblemError(message)
        if place.curve is not None:
            continue
        face = place.face(declared)
        if face is None or face[0] in declared.periodic:
            raise ProblemError(
                f"dn(...) needs a face; '{place.text}' has no outward normal"
            )


def _places(value: Table, key: str, declared: Declarations) -> tuple[Place, ...]:
    if "on" not in value:
        return (Place(EVERYWHERE, (), None),)
    found: list[Place] = []
    with located(key=f"{key}.on"):
        for text in as_list(value["on"]):
            if not isinstance(text, str):
                raise ProblemError(
                    f"expected a text such as 'x = 0', found {shown(text)}"
                )
            with located(text=text):
                found += parse_places(text, declared)
        if not found:
            raise ProblemError("the list is empty")
    return tuple(found)
