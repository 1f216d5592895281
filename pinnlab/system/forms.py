"""A linear term as a list of pieces: coefficient times derivative at points.

Integrals are replaced by quadrature, so that only pieces remain. Everything is NumPy:
the search for the features solves many small systems and must not compile anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.evaluate import FIELD_NODES
from pinnlab.equation.expression import Expression, Integral, Partial
from pinnlab.equation.structure import affine
from pinnlab.system.arrays import Values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


@dataclass(frozen=True)
class Piece:
    """sum over q of coefficient[n, q] * d^orders field at location[n, q, :]."""

    field: str
    orders: tuple[int, ...]
    coefficient: np.ndarray
    location: np.ndarray


@dataclass(frozen=True)
class LinearForm:
    """One term at points: sum of the pieces plus `rest` [n]."""

    pieces: tuple[Piece, ...]
    rest: np.ndarray

    def some(self, rows: slice) -> "LinearForm":
        """The same at some of the points."""
        places: dict[int, np.ndarray] = {}
        pieces = []
        for p in self.pieces:
            # Pieces that share their places go on to share them.
            place = places.setdefault(id(p.location), p.location[rows])
            pieces.append(Piece(p.field, p.orders, p.coefficient[rows], place))
        return LinearForm(tuple(pieces), self.rest[rows])


Form = Callable[[System, Term, np.ndarray], LinearForm]
"""Gives a term at [n, dim] points as a linear form."""


def linear_form(system: System, term: Term, points: np.ndarray) -> LinearForm:
    """The pieces of a term at [n, dim] points. The term must be affine."""
    assert isinstance(term.residual, Expression)
    names = system.coordinates
    columns = {n: points[:, i, None] for i, n in enumerate(names)}
    pieces: list[Piece] = []
    ones = np.ones((len(points), 1))
    rest = _collect(system, term.residual, columns, ones, pieces)
    return LinearForm(_merged(pieces), rest.sum(axis=1))


def coordinate_values(
    system: System, expression: Expression, columns: Mapping[str, np.ndarray]
) -> np.ndarray:
    """An expression without fields at values of the coordinates in it."""
    return _values(system, (expression,), columns)[0]


def _collect(
    system: System,
    expression: Expression,
    columns: Mapping[str, np.ndarray],
    weight: np.ndarray,
    pieces: list[Piece],
) -> np.ndarray:
    """Append weight times the pieces; returns weight times the rest, [n, q]."""
    form = affine(expression)
    if form is None:
        raise ValueError("the term is not affine")
    for atom, coefficient in form.coefficients.items():
        (factor,) = _values(system, (coefficient,), columns)
        if isinstance(atom, Partial):
            where = np.stack(_values(system, atom.at, columns), axis=-1)
            pieces.append(Piece(atom.field, atom.orders, weight * factor, where))
        else:
            extra = _quadrature(system, atom, columns, weight * factor, pieces)
            if np.any(extra):
                raise ValueError("an integral of fields with a constant part")
    (rest,) = _values(system, (form.rest,), columns)
    return weight * rest


def _quadrature(
    system: System,
    node: Integral,
    columns: Mapping[str, np.ndarray],
    weight: np.ndarray,
    pieces: list[Piece],
) -> np.ndarray:
    lower, upper = _values(system, (node.lower, node.upper), columns)
    nodes, weights = np.polynomial.legendre.leggauss(FIELD_NODES)
    half = ((upper - lower) / 2)[:, :, None]
    variable = lower[:, :, None] + half * (1 + nodes)
    count, old = weight.shape
    flat = (count, old * len(nodes))
    inner = {
        n: np.broadcast_to(c[:, :, None], variable.shape).reshape(flat)
        for n, c in columns.items()
        if c.shape[1] == old or c.shape[1] == 1
    }
    inner[node.variable] = variable.reshape(flat)
    every = (weight[:, :, None] * half * weights).reshape(flat)
    return _collect(system, node.body, inner, every, pieces)


def _values(
    system: System, expressions: tuple[Expression, ...], columns: Mapping
) -> list[np.ndarray]:
    """Expressions without fields on whole arrays at once, all of one shape."""
    shape = np.broadcast_shapes(*(c.shape for c in columns.values()))
    values = Values(columns, system.problem.parameters, None, 0)
    with np.errstate(all="ignore"):
        found = [np.asarray(values.value(e), float) for e in expressions]
    return [np.broadcast_to(f, shape) for f in found]


def _merged(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Pieces on the same derivative and places added up; equal places shared."""
    found: dict[tuple, Piece] = {}
    places: dict[tuple, np.ndarray] = {}
    for p in pieces:
        where = (p.location.shape, p.location.tobytes())
        place = places.setdefault(where, p.location)
        key = (p.field, p.orders, where)
        before = found[key].coefficient if key in found else 0.0
        found[key] = Piece(p.field, p.orders, before + p.coefficient, place)
    return tuple(found.values())
