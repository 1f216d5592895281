"""Data of equations and conditions that have no finite value somewhere."""

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.format import format_expression
from pinnlab.equation.structure import static_nodes, uses_fields
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


POINTS = 256


def not_finite(system: System) -> list[str]:
    """One message for each term whose data are not finite where it holds."""
    terms = (*system.equations, *system.conditions)
    return [m for t in terms if (m := _not_finite(system, t))]


def _not_finite(system: System, term: Term) -> str:
    if not isinstance(term.residual, Expression):
        return ""
    nodes = static_nodes(term.residual)
    if not uses_fields(term.residual) or not nodes:
        return ""
    points = sample(system.problem, term.place, POINTS, seed=23)
    values = array_values(system.problem, nodes, points)
    bad = ~np.isfinite(values)
    if not bad.any():
        return ""
    row, column = np.argwhere(bad)[0]
    place = ", ".join(
        f"{n} = {v:.4g}" for n, v in zip(system.coordinates, points[row], strict=True)
    )
    return (
        f"{term.kind}s.{term.name}: {format_expression(nodes[column])[:60]} has no "
        f"finite value at {place}"
    )
