"""Where a loss stops being finite: the sub-expression, its equation and the point.

The equations are trees, so the answer is in the user's own words: the smallest part of
the equation as it was written whose value (or whose gradient in the network's
parameters) is not finite although its own parts are.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.calculus import expand
from pinnlab.equation.expression import (
    Apply,
    At,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Integral,
    Number,
    Partial,
    children,
)
from pinnlab.equation.format import pretty
from pinnlab.problem.problem import Problem
from pinnlab.residual import LeastSquares
from pinnlab.rows import Block, Rows
from pinnlab.system.system import System
from pinnlab.system.terms import Term, outward_normal, real_parts


GRADIENTS_AT_ONCE = 64
LONGEST = 60
"""Characters of an argument that is worth showing."""


class Fault(Enum):
    """What is wrong with an expression, as the end of a sentence about it."""

    VALUE = "has no finite value"
    GRADIENT = "has no finite gradient in the network's parameters"
    SIZE = "is so large that its square is not finite"


@dataclass(frozen=True)
class Culprit:
    """The smallest expression that is not finite.

    - `expression`: as the paper would write it.
    - `term`, `kind`, `text`: the equation or condition that it stands in.
    - `point`: the first training point where it happens, by coordinate.
    - `arguments`: the values of what the expression is made of.
    """

    expression: str
    fault: Fault
    term: str
    kind: str
    text: str
    point: dict[str, float]
    arguments: dict[str, float]

    def __str__(self) -> str:
        where = f" where {_values(self.arguments)}" if self.arguments else ""
        return (
            f"{self.expression} {self.fault.value} in the {self.kind} '{self.term}' "
            f"at {_values(self.point)}{where}"
        )


def find(objective: LeastSquares, theta: Float[Array, " P"]) -> Culprit | None:
    """The first expression that makes the loss or its gradient not finite.

    Values are looked at before gradients, equations before conditions.

    **Returns:** None where everything is finite.
    """
    for fault, finite in ((Fault.VALUE, _values_finite), (Fault.GRADIENT, _gradients)):
        for block in objective.blocks:
            bad = ~np.asarray(finite(objective, block, theta))
            if bad.any():
                row, column = np.argwhere(bad)[0]
                return _culprit(objective, theta, block, row, column, fault)
    if np.isfinite(float(objective.loss(theta))):
        return None
    block = max(objective.blocks, key=lambda b: np.max(_sizes(objective, b, theta)))
    sizes = _sizes(objective, block, theta)
    row, column = np.unravel_index(np.argmax(sizes), sizes.shape)
    return _culprit(objective, theta, block, int(row), int(column), Fault.SIZE)


def _sizes(objective: LeastSquares, block: Block, theta: Array) -> np.ndarray:
    return np.abs(np.asarray(block.raw(objective.model(theta)) * block.factor))


def _values_finite(
    objective: LeastSquares, block: Block, theta: Array
) -> Array:  # [points, terms]
    return jnp.isfinite(block.raw(objective.model(theta)))


def _gradients(
    objective: LeastSquares, block: Block, theta: Array
) -> Array:  # [points, terms]
    return jnp.stack([_gradient(objective, block, theta, r) for r in _alone(block)], 1)


def _alone(block: Block) -> list[Rows]:
    """One row at a time: 0 times a NaN would spoil the gradients of the others."""
    rows = block.rows
    named = zip(rows.names, rows.functions, strict=True)
    return [Rows(rows.system, (n,), (f,), rows.nodes, rows.weighted) for n, f in named]


def _gradient(
    objective: LeastSquares, block: Block, theta: Array, rows: Rows
) -> Array:  # [points]
    def finite(data: tuple[Array, Array]) -> Array:
        row = jax.jacrev(lambda th: rows(objective.model(th), *data))(theta)
        return jnp.all(jnp.isfinite(row))

    size = min(GRADIENTS_AT_ONCE, block.points.shape[0])
    return jax.lax.map(finite, (block.points, block.known), batch_size=size)


def _culprit(
    objective: LeastSquares,
    theta: Array,
    block: Block,
    row: int,
    column: int,
    fault: Fault,
) -> Culprit:
    system, point = block.rows.system, block.points[row]
    term = _term(system, block.rows, column)
    kind, text, expression = term.kind, term.text, "the residual"
    arguments: dict[str, float] = {}
    written = _written(system.problem, term)
    if written is not None and fault is not Fault.SIZE:
        look = _Look(objective, theta, point, system, term, fault)
        expression, arguments = look.smallest(written)
    names = system.coordinates
    place = dict(zip(names, np.asarray(point, float).tolist(), strict=True))
    return Culprit(expression, fault, term.name, kind, text, place, arguments)


def _term(system: System, rows: Rows, column: int) -> Term:
    """The term behind a row. Terms that differ only in their place share the name."""
    function = rows.functions[column]
    for term in (*system.equations, *system.conditions):
        residual = term.residual
        if isinstance(residual, Expression):
            residual = system.imposed(residual)
        if term.name == rows.names[column] and residual == function:
            return term
    raise LookupError(f"no term '{rows.names[column]}'")


def _written(problem: Problem, term: Term) -> Expression | None:
    """The term's equation as it was written; None for one given as a function."""
    if not isinstance(term.residual, Expression):
        return None
    name = term.name.split(".")[0]
    equations = [e for e in problem.equations if term.kind == "equation"]
    for condition in problem.conditions:
        if term.kind == "condition" and condition.name == name:
            equations += condition.equations
    return next(e.residual for e in equations if e.text == term.text)


@dataclass(frozen=True)
class _Look:
    """A close look at one term at one point."""

    objective: LeastSquares
    theta: Array
    point: Float[Array, " dim"]
    system: System
    term: Term
    fault: Fault
    seen: dict[Expression, tuple[float, bool]] = field(default_factory=dict)

    def smallest(self, written: Expression) -> tuple[str, dict[str, float]]:
        """The smallest part that is not finite, and the values of what it is made of.

        Where a field itself is not finite, the cause is in its ansatz.
        """
        found = self._descend(written, _parts, self._imposed)
        if found is None:
            return "the residual", {}
        node, arguments = found
        name = pretty(node)
        if not _is_of_field(node):
            return name, arguments
        for part in self._imposed(node):
            inside = self._descend(part, children, lambda e: (e,))
            if inside is not None and isinstance(inside[0], Partial):
                return f"the network's part of {name}", {}
            if inside is not None:
                return f"{pretty(inside[0])} in the exact part of {name}", inside[1]
        return name, arguments

    def _imposed(self, written: Expression) -> tuple[Expression, ...]:
        """Real expressions of the network's outputs; none for what cannot be bad."""
        if isinstance(written, Number):
            return ()
        problem = self.system.problem
        normal = outward_normal(problem, self.term.place)
        names = self.system.coordinates
        return tuple(
            self.system.imposed(expand(part, names, normal))
            for part in real_parts(problem, written)
        )

    def _descend(
        self,
        root: Expression,
        parts: Callable[[Expression], tuple[Expression, ...]],
        functions: Callable[[Expression], tuple[Expression, ...]],
    ) -> tuple[Expression, dict[str, float]] | None:
        """Down from a bad root to a bad node whose parts are all good."""

        def values(node: Expression) -> list[float]:
            return [self._value(e)[0] for e in functions(node)]

        def bad(node: Expression) -> bool:
            return not all(self._value(e)[1] for e in functions(node))

        if not bad(root):
            return None
        node = root
        while inner := [c for c in _used(node, parts(node), values) if bad(c)]:
            node = inner[0]
        arguments: dict[str, float] = {}
        for part in parts(node):
            found = [] if isinstance(part, Number | Coordinate) else values(part)
            if len(found) == 1 and len(pretty(part)) <= LONGEST:
                arguments[pretty(part)] = found[0]
        return node, arguments

    def _value(self, function: Expression) -> tuple[float, bool]:
        """The value of an expression of the network's outputs; whether it is good."""
        if function not in self.seen:
            self.seen[function] = self._measured(function)
        return self.seen[function]

    def _measured(self, function: Expression) -> tuple[float, bool]:
        rows = Rows(self.system, ("",), (function,), ())
        none = jnp.zeros(0, self.point.dtype)

        def value(theta: Array) -> Array:
            return rows(self.objective.model(theta), self.point, none)[0]

        found = float(value(self.theta))
        if self.fault is Fault.GRADIENT:
            return found, bool(jnp.all(jnp.isfinite(jax.grad(value)(self.theta))))
        return found, bool(np.isfinite(found))


def _is_of_field(node: Expression) -> bool:
    """Whether the node is a field or a derivative of one."""
    while isinstance(node, Derivative):
        node = node.operand
    return isinstance(node, Field)


def _parts(node: Expression) -> tuple[Expression, ...]:
    """Parts of a written expression that have a value at the point of the whole."""
    match node:
        case At(body, where):
            return tuple(At(part, where) for part in _parts(body))
        case Integral(_, _, lower, upper):
            return lower, upper
        case _:
            return children(node)


def _used(
    node: Expression,
    parts: tuple[Expression, ...],
    values: Callable[[Expression], list[float]],
) -> tuple[Expression, ...]:
    """The parts that a bad node may have it from: one branch of a bad `where`.

    A branch that is not taken can still spoil the gradient, by 0 times infinity.
    """
    selects = isinstance(node, Apply) and node.function == "where"
    if not selects or np.isfinite(values(node)).all():
        return parts
    condition, yes, no = parts
    return condition, yes if all(values(condition)) else no


def _values(named: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in named.items())
