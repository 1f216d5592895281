"""Which resolutions are tried: all coordinates alike first, then elements on a line."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pinnlab.reference.steady_basis import Chebyshev, Expansion
from pinnlab.reference.steady_statements import Posed


LADDERS = {
    1: (12, 18, 26, 38, 56, 84, 126, 190, 280),
    2: (8, 11, 14, 18, 22, 27, 32, 38, 45, 53, 62, 74, 88, 105, 126, 150),
    3: (5, 7, 9, 11, 13, 16, 19, 23, 28, 34, 41, 50),
    4: (4, 5, 6, 7, 9, 11, 13, 16),
}
"""Collocation points on each element of each axis, by the number of axes."""
ON_ELEMENT = 20
"""Collocation points on an element that is one of many."""
LAST = (30, 45)
"""Collocation points on an element when no element needs to be halved any more."""
MESHES = 60
"""Meshes that are tried."""
SHARE = 0.3
"""How large last coefficients are where elements are halved, of the largest."""
RESOLVED = 1e-13
"""Last coefficients that are rounding, relative to the field."""

Resolution = tuple[int, tuple[float, ...]]
"""Collocation points on each element, and where elements meet beside breaks."""


def resolutions(
    posed: Posed, solved: Sequence[Expansion], error: float
) -> Iterator[Resolution]:
    """The resolutions to try, coarse to fine.

    On a line, elements are halved where the last solution has not converged; the last
    mesh is repeated with more points.

    **Arguments:**

    - `solved`: the solutions so far, which the caller appends to.
    """
    for count in LADDERS[len(posed.problem.axes)]:
        yield count, ()
    if not _has_elements(posed):
        return
    axis = posed.problem.axes[0]
    edges = (axis.lower, *posed.cuts(0), axis.upper)
    cuts = _middles(edges)
    cuts = (*cuts, *_middles(tuple(sorted((*edges, *cuts)))))
    for _ in range(MESHES):
        yield ON_ELEMENT, cuts
        every = tuple(sorted((*edges, *cuts)))
        marked = _unresolved(solved, every, error)
        if not marked:
            yield from ((count, cuts) for count in LAST)
            return
        cuts = (*cuts, *marked)


def _has_elements(posed: Posed) -> bool:
    """Integrals in equations couple all elements: that would be too much memory."""
    equations = [s for s in posed.statements if s.kind == "equation"]
    return (
        len(posed.problem.axes) == 1
        and not posed.periodic(0)
        and not any(s.form.integrals for s in equations)
    )


def _middles(edges: tuple[float, ...]) -> tuple[float, ...]:
    return tuple((a + b) / 2 for a, b in pairwise(edges))


def _unresolved(
    solved: Sequence[Expansion], edges: tuple[float, ...], error: float
) -> tuple[float, ...]:
    """The middles of the elements to halve: all where the mesh was not solved."""
    middles = np.asarray(_middles(edges))
    if not solved:
        return tuple(middles)
    excess = np.zeros(len(middles))
    for field, space in solved[-1].spaces.items():
        (basis,) = space.bases
        if not isinstance(basis, Chebyshev) or basis.edges != edges:
            return tuple(middles)
        coefficients = solved[-1].coefficients[field]
        values = space.values(coefficients, middles[:, None])
        scale = max(float(np.abs(values).max()), 1e-300)
        least = scale * max(0.1 * error, RESOLVED)
        excess = np.maximum(excess, basis.tails(coefficients) / least)
    # Before a layer is resolved, it disturbs the elements around it.
    return tuple(middles[(excess > 1) & (excess > SHARE * excess.max())])
