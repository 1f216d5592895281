"""Separable equations on boxes by diagonalization.

With the conditions built in, (A_1 x E_2 x ... + E_1 x A_2 x ... + ...) w = g, where E_i
are values and A_i operators on collocation points, is diagonalized in all coordinates
but one (Lynch, Rice and Thomas, 1964): a cube of 40^3 unknowns takes a second.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eig

from pinnlab.equation.expression import Expression
from pinnlab.reference.newton import Diverged
from pinnlab.reference.steady_basis import Basis, Chebyshev, Expansion, Fourier, Space
from pinnlab.reference.steady_separable import Line, Separable
from pinnlab.system.terms import coordinates


ACCURATE = 1e-8
"""The residual of the reduced system, relative to its right-hand side."""
CHOP = 1e-15
"""Coefficients of data that are rounding, relative to the largest."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """One coordinate with its conditions built in: c = P data + N w.

    - `basis`, `points`: the functions and the collocation points.
    - `rows`: the conditions [m, N]; `lift` [N, m] is P, `kernel` [N, n] is N.
    - `operator`, `values`: rows [n, N] at the collocation points.
    """

    basis: Basis
    points: np.ndarray
    rows: np.ndarray
    lift: np.ndarray
    kernel: np.ndarray
    operator: np.ndarray
    values: np.ndarray


def solve_separable(problem: Separable, count: int) -> tuple[Expansion, float]:
    """The solution with `count` collocation points on each axis.

    **Returns:** the field, and the largest violation of a condition, relative.

    Raises `Diverged` where the reduced system cannot be solved accurately.
    """
    posed = problem.posed
    lines = [_reduce(problem, line, count) for line in problem.lines]
    lift, violation = _lifted(problem, lines)
    source = _on_mesh(problem, problem.rest, [line.points for line in lines])
    right = -source - _operate(lines, lift)
    solution = _interior(lines, right)
    space = Space(tuple(line.basis for line in lines))
    field = posed.fields[0]
    expansion = Expansion({field: space}, {field: (lift + solution).ravel()})
    return expansion, violation


def _reduce(problem: Separable, line: Line, count: int) -> Reduced:
    posed = problem.posed
    axis = posed.problem.axes[line.axis]
    if posed.periodic(line.axis):
        size = 2 * (count // 2) + 1
        basis: Basis = Fourier(axis.lower, axis.upper, size)
    else:
        size = count
        basis = Chebyshev((axis.lower, axis.upper), count + line.order, line.order)
    points = basis.collocation(size)
    operator = np.zeros((size, basis.size))
    for coefficient, order in line.operator:
        scale = _on_axis(problem, coefficient, line.axis, points)
        operator += scale[:, None] * basis.matrix(points, order)
    rows = np.zeros((len(line.conditions), basis.size))
    for k, (statement, pairs, _) in enumerate(line.conditions):
        place = np.asarray([statement.fixed[line.axis]])
        for coefficient, order in pairs:
            scale = _on_axis(problem, coefficient, line.axis, place)
            rows[k] += scale[0] * basis.matrix(place, order)[0]
    # The null space of the rows is what is orthogonal to them.
    complete, _ = np.linalg.qr(rows.T, mode="complete")
    kernel = complete[:, len(rows) :]
    lift = np.linalg.pinv(rows) if len(rows) else rows.T
    values = basis.matrix(points, 0)
    return Reduced(basis, points, rows, lift, kernel, operator, values)


def _on_axis(
    problem: Separable, expression: Expression, axis: int, points: np.ndarray
) -> np.ndarray:
    """A coefficient of one coordinate at its points, [n]."""
    names = coordinates(problem.posed.problem)
    columns = {
        n: points if i == axis else np.full(len(points), a.lower)
        for i, (n, a) in enumerate(zip(names, problem.posed.problem.axes, strict=True))
    }
    return problem.equation.form.numbers((expression,), columns)[0]


def _on_mesh(
    problem: Separable, expression: Expression, lines: list[np.ndarray]
) -> np.ndarray:
    """An expression without fields on the product of the lines."""
    names = coordinates(problem.posed.problem)
    mesh = np.meshgrid(*lines, indexing="ij")
    columns = {n: m.ravel() for n, m in zip(names, mesh, strict=True)}
    (found,) = problem.equation.form.numbers((expression,), columns)
    return np.reshape(found, mesh[0].shape)


def _lifted(problem: Separable, lines: list[Reduced]) -> tuple[np.ndarray, float]:
    """Coefficients that satisfy every condition, and how far they miss the worst."""
    data = [
        _face_data(problem, line, lines, k)
        for line in problem.lines
        for k in range(len(line.conditions))
    ]
    owners = [line.axis for line in problem.lines for _ in line.conditions]
    total = np.zeros(tuple(line.basis.size for line in lines))
    for i, line in enumerate(lines):
        own = [d for d, axis in zip(data, owners, strict=True) if axis == i]
        if own:
            missing = np.stack(own, axis=i) - _apply(line.rows, total, i)
            total = total + _apply(line.lift, missing, i)
    worst = 0.0
    for i, line in enumerate(lines):
        own = [d for d, axis in zip(data, owners, strict=True) if axis == i]
        if own:
            wanted = np.stack(own, axis=i)
            missing = np.linalg.norm(wanted - _apply(line.rows, total, i))
            size = np.linalg.norm(line.rows, 2) * np.linalg.norm(total)
            worst = max(worst, float(missing / max(size, 1e-300)))
    return total, worst


def _face_data(
    problem: Separable, line: Line, lines: list[Reduced], k: int
) -> np.ndarray:
    """The data of a condition as coefficients in the other coordinates."""
    statement, _, rest = line.conditions[k]
    points = [
        np.asarray([statement.fixed[i]])
        if i == line.axis
        else other.basis.collocation(other.basis.size)
        for i, other in enumerate(lines)
    ]
    found = -_on_mesh(problem, rest, points)
    others = [(i, x.basis) for i, x in enumerate(lines) if i != line.axis]
    for i, basis in others:
        plain = _plain(basis)
        found = _apply(np.linalg.inv(plain.matrix(points[i], 0)), found, i)
    # Rounding in high coefficients would be differentiated by conditions on edges.
    found = np.where(np.abs(found) > CHOP * np.abs(found).max(), found, 0.0)
    for i, basis in others:
        if isinstance(basis, Chebyshev):
            found = _apply(basis.from_chebyshev(), found, i)
    return np.squeeze(found, axis=line.axis)


def _plain(basis: Basis) -> Basis:
    return basis if isinstance(basis, Fourier) else replace(basis, integrations=0)


def _operate(lines: list[Reduced], coefficients: np.ndarray) -> np.ndarray:
    """The sum of the operators on the coefficients, at the collocation points."""
    total = np.zeros(tuple(len(line.points) for line in lines))
    for i in range(len(lines)):
        part = coefficients
        for j, line in enumerate(lines):
            part = _apply(line.operator if i == j else line.values, part, j)
        total = total + part
    return total


def _apply(matrix: np.ndarray, tensor: np.ndarray, axis: int) -> np.ndarray:
    """The matrix on one axis of the tensor."""
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, eq=False)
class Modes:
    """Generalized eigenvectors: operator N X = values N X diag(lambda).

    - `left`: the inverse of values N X; its condition number is `condition`.
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    left: np.ndarray
    condition: float


def _modes(line: Reduced) -> Modes:
    values = line.values @ line.kernel
    # The integrals in `values` are bounded: this pencil keeps small eigenvalues exact.
    eigenvalues, vectors = eig(line.operator @ line.kernel, values)[:2]
    image = values @ vectors
    lengths = np.linalg.norm(image, axis=0)
    vectors, image = vectors / lengths, image / lengths
    condition = float(np.linalg.cond(image))
    return Modes(eigenvalues, vectors, np.linalg.inv(image), condition)


def _interior(lines: list[Reduced], right: np.ndarray) -> np.ndarray:
    """Coefficients without conditions whose operators sum up to `right`.

    All lines but the one with the worst eigenvectors are diagonalized; two steps of
    iterative refinement follow.
    """
    modes = [_modes(line) for line in lines]
    last = int(np.argmax([m.condition for m in modes]))
    others = [i for i in range(len(lines)) if i != last]
    shift = np.zeros((1,) * len(lines), complex)
    for i in others:
        shift = shift + np.expand_dims(
            modes[i].eigenvalues, [j for j in range(len(lines)) if j != i]
        )
    shifts = np.moveaxis(shift, last, -1).reshape(-1, 1, 1)
    kernel = lines[last].kernel
    systems = lines[last].operator @ kernel + shifts * (lines[last].values @ kernel)

    def solve(right: np.ndarray) -> np.ndarray:
        found = right.astype(complex)
        for i in others:
            found = _apply(modes[i].left, found, i)
        turned = np.moveaxis(found, last, -1)
        flat = turned.reshape(len(systems), -1, 1)
        found = np.linalg.solve(systems, flat).reshape(turned.shape)
        found = _apply(kernel, np.moveaxis(found, -1, last), last)
        for i in others:
            found = _apply(lines[i].kernel @ modes[i].vectors, found, i)
        return np.real(found)

    try:
        found = solve(right)
        for _ in range(2):
            found = found + solve(right - _operate(lines, found))
    except np.linalg.LinAlgError as error:
        raise Diverged("the separated system is singular") from error
    left = float(np.linalg.norm(right - _operate(lines, found)))
    if not left <= ACCURATE * max(float(np.linalg.norm(right)), 1e-300):
        raise Diverged("the separated system is nearly singular")
    return found
