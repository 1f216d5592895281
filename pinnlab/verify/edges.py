"""Conditions counted on the pieces of a shape's edge, as `faces` does on a box."""

import numpy as np

from pinnlab.problem.curves import Curve
from pinnlab.problem.problem import Place
from pinnlab.system.arrays import holds
from pinnlab.system.system import System
from pinnlab.verify.findings import Findings, listing
from pinnlab.verify.orders import order_along


PLACES = 33
"""Places along a piece where conditions are looked for."""


def edge_counts(system: System) -> Findings:
    """Errors where no condition stands on a piece of an edge; warnings for parts of it.

    A system of order 2 in space needs one condition for each of its fields of that
    order; of order 4, two (Agmon, Douglis and Nirenberg, 1964). Systems of first order
    are not judged.
    """
    shape = system.problem.shape
    assert shape is not None
    orders = {f: order_along(system, f, shape.columns) for f in system.fields}
    needed = sum(order // 2 for order in orders.values())
    fields = tuple(f for f, order in orders.items() if order > 1)
    if not needed:
        return Findings()
    errors, warnings = [], []
    for curve in shape.curves:
        counts = _counts(system, curve)
        text = f"{listing(fields)}: {curve.text} has"
        if not counts.any():
            errors.append(f"{text} no condition ({needed} needed)")
        elif counts.min() == 0:
            warnings.append(f"{text} a condition on a part of it only")
        elif counts.max() > 2 * needed:
            warnings.append(
                f"{text} {counts.max()} conditions, {needed} would do: it may be "
                "over-determined"
            )
    return Findings(errors=tuple(errors), warnings=tuple(warnings))


def _counts(system: System, curve: Curve) -> np.ndarray:
    """How many conditions hold at places along a piece, [PLACES]."""
    problem = system.problem
    assert problem.shape is not None
    share = (np.arange(PLACES) + 0.5) / PLACES
    middle = [(a.lower + a.upper) / 2 for a in problem.axes]
    points = np.tile(middle, (PLACES, 1))
    points[:, problem.shape.columns] = curve.at(share)
    on_edge = (t.place for t in system.conditions if _in_space(t.place))
    return np.sum([holds(problem, p, points) for p in on_edge], axis=0, initial=0)


def _in_space(place: Place) -> bool:
    """Whether a place is an edge, or a face, in space."""
    names = [name for name, _ in place.fixed]
    return place.curve is not None or (len(names) == 1 and names != ["t"])
