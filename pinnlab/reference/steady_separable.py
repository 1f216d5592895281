"""Whether a linear equation is a sum of operators in one coordinate each, on a box."""

from dataclasses import dataclass

from pinnlab.equation.expression import Coordinate, Expression, Partial, walk
from pinnlab.equation.structure import affine
from pinnlab.reference.steady_statements import Posed, Statement
from pinnlab.system.terms import coordinates


@dataclass(frozen=True)
class Line:
    """The operator and the conditions in one coordinate.

    - `operator`: pairs of a coefficient and the order of the derivative.
    - `conditions`: for each, where, the same pairs, and the data with the rest.
    """

    axis: int
    order: int
    operator: tuple[tuple[Expression, int], ...]
    conditions: tuple[
        tuple[Statement, tuple[tuple[Expression, int], ...], Expression], ...
    ]


@dataclass(frozen=True, eq=False)
class Separable:
    """A problem for one field that separates; `rest` is the equation's free part."""

    posed: Posed
    equation: Statement
    lines: tuple[Line, ...]
    rest: Expression


def separate(posed: Posed) -> Separable | None:
    """The problem in this form; None if it does not separate."""
    equations = [s for s in posed.statements if s.kind == "equation"]
    if len(posed.fields) != 1 or len(equations) != 1 or posed.breaks:
        return None
    form = affine(equations[0].form.expression)
    dim = len(posed.problem.axes)
    if form is None or not posed.linear or dim < 2:
        return None
    operators: list[list[tuple[Expression, int]]] = [[] for _ in range(dim)]
    for atom, coefficient in form.coefficients.items():
        axis = _only_axis(posed, atom, coefficient)
        if axis is None or not isinstance(atom, Partial):
            return None
        operators[axis].append((coefficient, atom.orders[axis]))
    lines: list[Line] = []
    conditions = [s for s in posed.statements if s.kind == "condition"]
    for axis in range(dim):
        own = [_face(posed, s, axis) for s in conditions if set(s.fixed) == {axis}]
        order = max((k for _, k in operators[axis]), default=0)
        wanted = 0 if posed.periodic(axis) else order
        found = tuple(c for c in own if c is not None)
        if len(found) != wanted or len(found) != len(own):
            return None
        lines.append(Line(axis, order, tuple(operators[axis]), found))
    if sum(len(line.conditions) for line in lines) != len(conditions):
        return None
    return Separable(posed, equations[0], tuple(lines), form.rest)


def _only_axis(posed: Posed, atom: Expression, coefficient: Expression) -> int | None:
    """The one coordinate that a summand is about; None if there are several."""
    names = coordinates(posed.problem)
    if not isinstance(atom, Partial) or atom.at != tuple(Coordinate(n) for n in names):
        return None
    axes = {i for i, k in enumerate(atom.orders) if k}
    axes |= {
        names.index(n.name) for n in walk(coefficient) if isinstance(n, Coordinate)
    }
    return min(axes, default=0) if len(axes) <= 1 else None


def _face(
    posed: Posed, statement: Statement, axis: int
) -> tuple[Statement, tuple[tuple[Expression, int], ...], Expression] | None:
    """A condition that holds on a whole face with constant coefficients."""
    form = affine(statement.form.expression)
    if form is None or statement.restricted:
        return None
    pairs: list[tuple[Expression, int]] = []
    for atom, coefficient in form.coefficients.items():
        found = _only_axis(posed, atom, coefficient)
        if found is None or not isinstance(atom, Partial):
            return None
        constant = not any(isinstance(n, Coordinate) for n in walk(coefficient))
        if found != axis and not (constant and not any(atom.orders)):
            return None
        pairs.append((coefficient, atom.orders[axis]))
    return statement, tuple(pairs), form.rest
