"""Values of expanded expressions on many points at once, in NumPy.

Given functions are evaluated once or twice each; compiling them would take longer
than all the work with them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from pinnlab.equation.expression import (
    Apply,
    Coordinate,
    Expression,
    Integral,
    Number,
    Parameter,
    Partial,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.problem.problem import Place, Problem
from pinnlab.problem.shape import SLACK


FieldValues = Callable[[str, tuple[int, ...], np.ndarray], np.ndarray]
"""Gives a partial derivative (field, orders) at places [..., dim]."""

FINE, COARSE = (24, 16), (1, 32)
"""Panels and nodes of an outer integral without fields, and of all others."""
CHUNK = 512


def array_values(
    problem: Problem,
    expressions: Sequence[Expression],
    points: Float[np.ndarray, "n dim"],
    fields: FieldValues | None = None,
    chunk: int = CHUNK,
) -> Float[np.ndarray, "n expressions"]:
    """The values of expressions at points; `fields` answers for the fields in them.

    `chunk` points are computed at a time.

    Where an expression has no finite value the result is not finite either.
    """
    if not expressions:
        return np.zeros((len(points), 0))
    pieces = [points[i : i + chunk] for i in range(0, len(points), chunk)]
    with np.errstate(all="ignore"):
        return np.concatenate(
            [_piece(problem, expressions, p, fields) for p in pieces] or [points[:, :0]]
        )


def _piece(
    problem: Problem,
    expressions: Sequence[Expression],
    points: np.ndarray,
    fields: FieldValues | None,
) -> np.ndarray:
    names = (a.name for a in problem.axes)
    coordinates = dict(zip(names, points.T, strict=True))
    evaluator = Values(coordinates, problem.parameters, fields, 0)
    shape = (len(points),)
    found = [np.broadcast_to(evaluator.value(e), shape) for e in expressions]
    return np.stack(found, axis=-1).astype(float)


def holds(problem: Problem, place: Place, points: np.ndarray) -> np.ndarray:
    """Which of [n, dim] points belong to a place (fixed coordinates included)."""
    inside = np.ones(len(points), bool)
    names = [a.name for a in problem.axes]
    for name, value in place.fixed:
        inside &= points[:, names.index(name)] == value
    if (shape := problem.shape) is not None:
        if place.curve is None:
            inside &= shape.contains(points)
        else:
            away = place.curve.distance(points[:, shape.columns])
            inside &= away <= SLACK * shape.size
    if place.where is not None:
        inside &= array_values(problem, (place.where,), points)[:, 0] != 0
    return inside


class Values:
    """One evaluation: values of coordinates, parameters and fields, and a memory.

    `depth` counts the integrals around it.
    """

    def __init__(
        self,
        coordinates: Mapping[str, np.ndarray],
        parameters: Mapping[str, float],
        fields: FieldValues | None,
        depth: int,
    ):
        self.coordinates = coordinates
        self.parameters = parameters
        self.fields = fields
        self.depth = depth
        self.memory: dict[Expression, np.ndarray] = {}

    def value(self, node: Expression) -> np.ndarray:
        """The value of a node; its shape broadcasts with the coordinates'."""
        if node not in self.memory:
            self.memory[node] = np.asarray(self._value(node))
        return self.memory[node]

    def _value(self, node: Expression) -> np.ndarray | float | complex:
        match node:
            case Number(value):
                return value
            case Coordinate(name):
                return self.coordinates[name]
            case Parameter(name):
                return self.parameters[name]
            case Apply(function, arguments):
                return OPERATIONS[function](*(self.value(a) for a in arguments))
            case Integral():
                return self._integral(node)
            case Partial(field, orders, at):
                if self.fields is None:
                    raise ValueError(f"the field '{field}' has no value here")
                places = np.broadcast_arrays(*(self.value(a) for a in at))
                return self.fields(field, orders, np.stack(places, axis=-1))
            case _:
                raise ValueError(f"cannot evaluate a {type(node).__name__} node")

    def _integral(self, node: Integral) -> np.ndarray:
        inner, weights = self.within(node)
        body = inner.value(node.body)
        return np.sum(weights * body, axis=-1)

    def within(self, node: Integral) -> tuple["Values", np.ndarray]:
        """The evaluation at the nodes of an integral, on a new last axis.

        **Returns:** it, and the weights of the rule there, with the full shape.
        """
        lower, upper = self.value(node.lower), self.value(node.upper)
        fine = self.depth == 0 and not uses_fields(node.body)
        nodes, weights = gauss(*(FINE if fine else COARSE))
        half = np.asarray((upper - lower) / 2)[..., None]
        inner = {k: np.asarray(v)[..., None] for k, v in self.coordinates.items()}
        inner[node.variable] = lower[..., None] + half * (1 + nodes)
        within = Values(inner, self.parameters, self.fields, self.depth + 1)
        return within, half * weights


def gauss(panels: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Composite Gauss-Legendre nodes and weights on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    centers = (2 * np.arange(panels) + 1) / panels - 1
    every = (centers[:, None] + nodes[None, :] / panels).ravel()
    return every, np.tile(weights / panels, panels)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.power(np.asarray(a, float), b)


OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide,
    "^": _power, "neg": np.negative,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "abs": np.abs, "min": np.minimum,
    "max": np.maximum, "sign": np.sign,
    "heaviside": lambda a: np.heaviside(a, 0.5), "erf": erf,
    "where": np.where, "real": np.real, "imag": np.imag, "conj": np.conj,
}  # fmt: skip
