"""How good a steady solution is: differences, residuals between points, null spaces."""

from collections.abc import Mapping

import numpy as np

from pinnlab.problem.problem import Problem
from pinnlab.reference.boundary_value import Collocation
from pinnlab.reference.newton import Singular
from pinnlab.reference.steady_basis import Expansion
from pinnlab.reference.steady_linearization import Located, locate
from pinnlab.reference.steady_statements import Posed


COMPARISON = {1: 1001, 2: 81, 3: 25, 4: 11}
"""Uniform points on each axis on which two solutions are compared."""
ENTRIES = 4_000_000
"""Entries of a matrix that is made to check a residual."""
MOST_POINTS = 2000


def comparison_points(problem: Problem) -> np.ndarray:
    """Uniform points of the domain, [n, dim]."""
    count = COMPARISON[len(problem.axes)]
    lines = [np.linspace(a.lower, a.upper, count) for a in problem.axes]
    mesh = np.meshgrid(*lines, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)


def relative_difference(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """|coarse - fine| / |fine| by column; absolute where a column is 0."""
    size = np.linalg.norm(fine, axis=0)
    return np.linalg.norm(coarse - fine, axis=0) / np.where(size > 0, size, 1.0)


def residual_between(posed: Posed, expansion: Expansion) -> float:
    """The largest residual of an equation at random points, relative to its summands.

    It is near 1 where the points of the collocation have missed a part of the data.
    """
    size = sum(s.size for s in expansion.spaces.values())
    count = int(np.clip(ENTRIES / size, 50, MOST_POINTS))
    axes = posed.problem.axes
    unit = np.random.default_rng(0).random((count, len(axes)))
    columns = {
        a.name: a.lower + (a.upper - a.lower) * unit[:, i] for i, a in enumerate(axes)
    }
    points = np.stack(list(columns.values()), axis=1)
    fields = np.sqrt(np.mean(expansion.values(points) ** 2, axis=0))
    amplitudes = dict(zip(posed.fields, fields, strict=True))
    nodes = max(max(s.shape) for s in expansion.spaces.values())
    largest = 0.0
    for statement in posed.statements:
        if statement.kind == "equation":
            here = locate(statement.form, columns, expansion.spaces, nodes)
            values, sizes = _summands(posed, here, expansion, amplitudes)
            scale = max(float(np.sqrt(np.mean(sizes**2))), 1e-300)
            largest = max(largest, float(np.sqrt(np.mean(values**2))) / scale)
    return largest


def _summands(
    posed: Posed, here: Located, expansion: Expansion, amplitudes: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The residuals [n], and the sizes of what they are the sums of.

    A derivative counts as at least amplitude / length^order, so that rounding is no
    residual where all derivatives are 0.
    """
    values, atoms, slopes = here.residual(expansion.coefficients)
    sizes = np.abs(values - np.sum(slopes * atoms, axis=1))
    lengths = [a.upper - a.lower for a in posed.problem.axes]
    least = [
        amplitudes[p.field]
        / np.prod([L**k for L, k in zip(lengths, p.orders, strict=True)])
        for p in here.form.partials
    ]
    least += [0.0] * len(here.form.integrals)
    sizes += np.sum(np.abs(slopes) * (np.abs(atoms) + np.asarray(least)), axis=1)
    return values, sizes


def null_space(system: Collocation, singular: Singular) -> str:
    """What may be added to a solution."""
    if singular.vector is None:
        return "there are fewer conditions than the equations need"
    problem = system.posed.problem
    values = system.expansion(singular.vector).values(comparison_points(problem))
    largest = np.abs(values).max(axis=0)
    k = int(np.argmax(largest))
    name, column = system.posed.fields[k], values[:, k]
    if np.ptp(column) <= 1e-6 * largest[k]:
        return f"the solution is not unique: a constant may be added to '{name}'"
    return f"the solution is not unique: '{name}' has a part that nothing determines"
