"""The orders of the derivatives in a system."""

from collections.abc import Sequence

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.system.system import System


def order_along(system: System, field: str, axes: Sequence[int]) -> int:
    """The highest order of derivatives of a field by some coordinates together."""
    orders = [
        sum(p.orders[i] for i in axes)
        for t in system.equations
        if isinstance(t.residual, Expression)
        for p in partials(t.residual)
        if p.field == field
    ]
    return max(orders, default=0)
