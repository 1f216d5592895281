"""The system linearized on a basis: its matrix shows what is left undetermined.

Residual rows of every term, for every function of a polynomial basis. A function that
changes no row at all is one that the problem does not determine.
"""

import math
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.calculus import differentiate
from pinnlab.equation.expression import (
    Coordinate,
    Expression,
    Integral,
    Partial,
    children,
    rebuild,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.sampling import sample
from pinnlab.system.arrays import FieldValues, Values, array_values
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term
from pinnlab.verify.trial import Basis, make_basis, random_state, zero_state


MOST_COORDINATES = 4
EXACTLY, NEARLY = 1e-10, 1e-8
SMALLEST = 1e-3
ROUNDING = 1e-13
VISIBLE = 1e-5
"""The size, relative to its coefficients, below which a function is none."""


@dataclass(frozen=True)
class Linearized:
    """J c + r: the residuals at sampled points, linear in the basis' coefficients.

    - `matrix` [rows, fields * functions], scaled so that low degrees give sizes of one.
    - `rest` [rows]: the residuals of zero, in the same scale.
    - `scales` [fields]: the size of each field that the matrix has divided out.
    - `vanishes_at_zero`: whether zero satisfies every term.
    - `inside` [points, functions]: values in the domain, where it is a shape.
    """

    basis: Basis
    fields: tuple[str, ...]
    matrix: np.ndarray
    rest: np.ndarray
    scales: np.ndarray
    vanishes_at_zero: bool
    inside: np.ndarray | None = None

    def null_vectors(
        self, columns: np.ndarray | None = None, null: float = EXACTLY
    ) -> np.ndarray:
        """Coefficients [k, columns] of independent functions that change no row.

        **Arguments:**

        - `columns`: a boolean mask of the columns that may be used.
        - `null`: the singular value, relative to the largest, that counts as zero.
        """
        part = self.matrix if columns is None else self.matrix[:, columns]
        norms = np.maximum(np.linalg.norm(part, axis=0), SMALLEST)
        missing = max(0, part.shape[1] - len(part))
        square = np.pad(part / norms, ((0, missing), (0, 0)))
        _, sizes, right = np.linalg.svd(square, full_matrices=False)
        found = right[sizes <= null * max(1.0, sizes[0])] / norms
        return found if columns is not None else self._seen(found)

    def _seen(self, vectors: np.ndarray) -> np.ndarray:
        """Those that are not small all over the domain: of a thin shape many are."""
        if self.inside is None or not len(vectors):
            return vectors
        vectors = vectors / np.max(np.abs(vectors), axis=1, keepdims=True)
        parts = vectors.reshape(len(vectors), len(self.fields), -1)
        values = (parts @ self.inside.T).reshape(len(vectors), -1)
        left, sizes, _ = np.linalg.svd(values, full_matrices=False)
        seen = sizes > VISIBLE * math.sqrt(len(self.inside))
        return left.T[seen] @ vectors

    def misfit(self) -> float:
        """The residual that the basis cannot remove, relative to that of zero."""
        norms = np.maximum(np.linalg.norm(self.matrix, axis=0), SMALLEST)
        size = np.linalg.norm(self.rest)
        left = self.matrix / norms
        found = np.linalg.lstsq(left, -self.rest, rcond=NEARLY)[0]
        return float(np.linalg.norm(left @ found + self.rest) / size) if size else 0.0

    def of_degrees(self, allowed: np.ndarray) -> np.ndarray:
        """The columns, of every field, of a mask of basis functions."""
        return np.tile(allowed, len(self.fields))

    def function(self, vector: np.ndarray) -> FieldValues:
        """The fields, of size one, that a vector of coefficients stands for."""
        parts = (vector / np.max(np.abs(vector))).reshape(len(self.fields), -1)
        coefficients = parts / self.scales[:, None]
        coefficients = coefficients / np.max(np.abs(coefficients))

        def values(field: str, orders: tuple[int, ...], places: np.ndarray):
            return self.basis(orders, places) @ coefficients[self.fields.index(field)]

        return values

    def used_fields(self, vectors: np.ndarray) -> tuple[str, ...]:
        """The fields in which functions [k, columns] are not zero."""
        size = np.abs(vectors).reshape(len(vectors), len(self.fields), -1)
        most = size.max(axis=(0, 2))
        return tuple(
            f for f, m in zip(self.fields, most, strict=True) if m > 1e-6 * most.max()
        )


def linearize(system: System, seed: int) -> Linearized | None:
    """The system linearized at a random state; None where it cannot be.

    That is where a term has no finite value at all, or is a Python function. For a
    linear system the state does not matter.
    """
    terms = (*system.equations, *system.conditions)
    if len(system.coordinates) > MOST_COORDINATES or any(
        not isinstance(t.residual, Expression) for t in terms
    ):
        return None
    basis = make_basis(system.problem)
    state = random_state(system.problem.axes, system.fields, seed)
    blocks, rests = [], []
    for term in terms:
        assert isinstance(term.residual, Expression)
        points = rows_of(system, term, basis.count)
        blocks.append(_rows(system, term, basis, state, points))
        rests.append(
            array_values(system.problem, (term.residual,), points, zero_state)[:, 0]
        )
    finite = [
        np.isfinite(b).all(axis=1) & np.isfinite(r)
        for b, r in zip(blocks, rests, strict=True)
    ]
    if not all(f.any() for f in finite):
        return None
    blocks = [b[f] for b, f in zip(blocks, finite, strict=True)]
    rests = [r[f] for r, f in zip(rests, finite, strict=True)]
    rows, columns = _scales(blocks, basis, len(system.fields))
    matrix = np.concatenate([b / s for b, s in zip(blocks, rows, strict=True)])
    matrix = matrix / np.repeat(columns, basis.count)
    rest = np.concatenate([r / s for r, s in zip(rests, rows, strict=True)])
    zero = all(_vanishes(system, t) for t in terms)
    inside = None
    if system.problem.shape is not None:
        points = sample(system.problem, EVERYWHERE, 4 * basis.count, seed=37)
        inside = basis((0,) * len(system.coordinates), points)
    return Linearized(basis, system.fields, matrix, rest, columns, zero, inside)


def _vanishes(system: System, term: Term) -> bool:
    """Whether zero satisfies a term, to rounding of what the data are elsewhere."""
    assert isinstance(term.residual, Expression)
    here, inside = (
        np.abs(array_values(system.problem, (term.residual,), points, zero_state))
        for points in (
            rows_of(system, term, 64),
            sample(system.problem, EVERYWHERE, 64, seed=31),
        )
    )
    if not np.isfinite(here).any():
        return False
    most = np.max(inside, initial=0.0, where=np.isfinite(inside))
    return bool(np.nanmax(here) <= ROUNDING * most)


def rows_of(system: System, term: Term, count: int) -> np.ndarray:
    """The points of a term's rows, [n, dim]; one where the residual is the same."""
    if term.kind == "condition":
        count = count if term.free is None or term.free else 1
    else:
        count = 2 * count
    return sample(system.problem, term.place, count, seed=29)


def _rows(
    system: System, term: Term, basis: Basis, state: FieldValues, points: np.ndarray
) -> np.ndarray:
    """The derivative of the residual along every basis function, [n, columns]."""
    names = system.coordinates
    around = Values(
        dict(zip(names, points.T, strict=True)), system.problem.parameters, state, 0
    )
    assert isinstance(term.residual, Expression)
    with np.errstate(all="ignore"):
        found = tangent(term.residual, around, basis, system.fields)
    return np.broadcast_to(found, (len(points), found.shape[-1]))


def tangent(
    node: Expression, around: Values, basis: Basis, fields: tuple[str, ...]
) -> np.ndarray:
    """d node / d coefficient for each field and basis function, on the last axis."""
    total = np.zeros((1, len(fields) * basis.count))
    for atom, slope in slopes(node).items():
        size = np.asarray(around.value(slope), float)[..., None]
        total = total + size * _atom(atom, around, basis, fields)
    return total


def _atom(
    atom: Partial | Integral, around: Values, basis: Basis, fields: tuple[str, ...]
) -> np.ndarray:
    if isinstance(atom, Integral):
        within, weights = around.within(atom)
        inner = tangent(atom.body, within, basis, fields)
        return np.sum(weights[..., None] * inner, axis=-2)
    places = np.broadcast_arrays(*(around.value(a) for a in atom.at))
    values = basis(atom.orders, np.stack(places, axis=-1).astype(float))
    padded = np.zeros((*values.shape[:-1], len(fields), basis.count))
    padded[..., fields.index(atom.field), :] = values
    return padded.reshape(*values.shape[:-1], -1)


def slopes(node: Expression) -> dict[Partial | Integral, Expression]:
    """The derivative of an expression by each partial or integral in it."""
    found: dict[Partial | Integral, Expression] = {}
    for atom in atoms(node):
        slot = Coordinate("#")
        free = _replace(node, {atom: slot})
        found[atom] = _replace(differentiate(free, slot.name), {slot: atom})
    return found


def atoms(node: Expression) -> tuple[Partial | Integral, ...]:
    """Partials, and integrals over fields, that are not inside other integrals."""
    if isinstance(node, Partial):
        return (node,)
    if isinstance(node, Integral):
        return (node,) if uses_fields(node) else ()
    found = dict.fromkeys(a for c in children(node) for a in atoms(c))
    return tuple(found)


def _replace(node: Expression, new: dict[Expression, Expression]) -> Expression:
    done = dict(new)

    def change(node: Expression) -> Expression:
        if node not in done:
            inside = isinstance(node, Partial | Integral)
            done[node] = node if inside else rebuild(node, change)
        return done[node]

    return change(node)


def _scales(
    blocks: list[np.ndarray], basis: Basis, fields: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of terms and fields by which smooth functions give residuals of one."""
    low = basis.powers.sum(axis=1) <= 4
    size = np.array(
        [
            [np.max(np.abs(part), initial=0.0) for part in _by_field(b, fields, low)]
            for b in blocks
        ]
    )
    rows, columns = np.ones(len(blocks)), np.ones(fields)
    for _ in range(4):
        scaled = size / columns
        rows = np.where(scaled.max(axis=1) > 0, scaled.max(axis=1), 1.0)
        scaled = size / rows[:, None]
        columns = np.where(scaled.max(axis=0) > 0, scaled.max(axis=0), 1.0)
    return rows, columns


def _by_field(block: np.ndarray, fields: int, low: np.ndarray) -> list[np.ndarray]:
    split = block.reshape(len(block), fields, -1)
    return [split[:, f, low] for f in range(fields)]
