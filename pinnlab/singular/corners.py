"""Corners of two faces where no smooth function satisfies everything, and their
singular functions.

Near a corner polynomials are fitted to the equations and the conditions of both faces.
Where they cannot fit, the data do not agree to some order: 0 for values that jump, 1
for slopes, 2 for second derivatives. The misfit in boxes of two sizes tells the order.
Nonlinear equations are those that they are linearized to where the fields vanish.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.network.basis import chebyshev
from pinnlab.network.singular import heat_functions, laplace_functions
from pinnlab.sampling import membership
from pinnlab.singular.principal import ANY, MOST_LOGS, Principal, principal_part
from pinnlab.singular.remembered import Remembered
from pinnlab.system.forms import Form, LinearForm, linear_form
from pinnlab.system.system import System


NEAR = 0.02
"""The size of the box in which polynomials are fitted, relative to the domain."""
DEGREE, NODES = 8, 9
MISFIT = 1e-6
ROUGHEST, SMOOTHEST = 0, 4
"""Orders of disagreement that singular functions are taken for."""
SYSTEM_TERMS = 4
"""How many orders of singular functions a system has, with the one before the first,
of fields whose first derivatives stand beside second ones of others (a pressure)."""
CLOSEST = 1e-5
"""Where points near a corner begin, relative to the longest side."""


@dataclass(frozen=True)
class Corner(Remembered):
    """A singular point and the functions that are taken there.

    - `place` [2]: the point.
    - `slopes` [2]: scaled coordinates are slopes * (point - place), from 0 inwards.
    - `text`: the point in words.
    - `order`: the first derivatives that do not exist.
    - `powers`: as in `heat_functions` or `laplace_functions`.
    - `kept`: which of the columns are used.
    - `reach`: the shortest side of the box, in scaled coordinates.
    """

    principal: Principal
    place: np.ndarray
    slopes: np.ndarray
    text: str
    order: int
    powers: np.ndarray
    kept: np.ndarray
    reach: float

    def computed(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """A derivative of every function at [..., 2] points."""
        local, scale = self.local(points), np.prod(self.slopes ** np.array(orders))
        t = self.principal.time
        if t is None:
            found = laplace_functions(local, self.powers, (orders[0], orders[1]))
        else:
            ordered = local[..., [t, 1 - t]]
            found = heat_functions(ordered, self.powers, (orders[t], orders[1 - t]))
        return scale * found[..., self.kept]

    def local(self, points: np.ndarray) -> np.ndarray:
        """The scaled coordinates from the corner."""
        return self.slopes * (points - self.place)

    def near(self, unit: np.ndarray) -> np.ndarray:
        """Points [n, 2] of the quarter around it, as many in each ring twice as large,
        from [0, 1]^2: the distance, and the angle from the first coordinate."""
        radius = CLOSEST * (self.reach / CLOSEST) ** unit[:, 0]
        angle = np.pi / 2 * unit[:, 1]
        local = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return self.place + local / self.slopes

    def weights(self, points: np.ndarray, derivative: int) -> np.ndarray:
        """What keeps a residual with derivatives of this order bounded, [n].

        Derivatives of order s grow like distance^(order - s) towards the corner.
        """
        t, local = self.principal.time, self.local(points)
        squares = local**2
        if t is not None:
            squares[:, t] = np.abs(local[:, t])
        distance = np.minimum(1.0, np.sqrt(squares.sum(axis=1)))
        return distance ** max(0, derivative - self.order)


def find_corners(system: System, form_of: Form = linear_form) -> tuple[Corner, ...]:
    """The corners of a problem in two coordinates that are not smooth.

    **Arguments:**

    - `form_of`: gives the terms, or what they are linearized to.
    """
    axes, periodic = system.problem.axes, system.problem.periodic
    if len(axes) != 2 or periodic:
        return ()
    found = []
    for upper in itertools.product((False, True), repeat=2):
        ends = [(a.lower, a.upper) for a in axes]
        place = np.array([e[u] for e, u in zip(ends, upper, strict=True)])
        inward = np.array([-1.0 if u else 1.0 for u in upper])
        if (corner := _corner(system, place, inward, form_of)) is not None:
            found.append(corner)
    return tuple(found)


def _corner(
    system: System, place: np.ndarray, inward: np.ndarray, form_of: Form
) -> Corner | None:
    single = principal_part(system, place, inward, form_of)
    if single is None and not _is_elliptic(system):
        return None
    principal = single or ANY
    lengths = np.array([a.upper - a.lower for a in system.problem.axes])
    slopes = inward * principal.scales(lengths)
    sides = slopes * inward * lengths
    time = principal.time
    if time is not None:
        sides[time] = np.sqrt(sides[time])
    near = NEAR * sides.min()
    misfits = []
    for h in (near, near / 2):
        box = np.full(2, h)
        if time is not None:
            box[time] = h**2
        if not _holds(system, place + np.outer((0.25, 0.5, 1.0), box / slopes)):
            return None
        misfits.append(_misfit(system, place, box / slopes, form_of))
    (large, size), (small, _) = misfits
    if not large > MISFIT * size:
        return None
    order = round(float(np.log2(large / small)))
    if not ROUGHEST <= order <= SMOOTHEST:
        return None
    named = zip(system.coordinates, place, strict=True)
    text = ", ".join(f"{n} = {v:g}" for n, v in named)
    powers = single.powers(order) if single else _powers(order)
    kept = np.ones(len(powers) * (1 if time is not None else 2), bool)
    if single and time is None:
        # No condition asks for log r; a pressure does.
        kept[: len(powers)] = (powers[:, 0] != 0) | (powers[:, 1] != 0)
    reach = float(sides.min())
    return Corner(principal, place, slopes, text, order, powers, kept, reach)


def _is_elliptic(system: System) -> bool:
    """Whether it is a steady system with second derivatives, as flows and elasticity
    are; functions of z and conj(z) serve these (Goursat, 1898)."""
    if len(system.fields) < 2 or "t" in system.coordinates:
        return False
    terms = [t.residual for t in system.equations]
    written = [r for r in terms if isinstance(r, Expression)]
    orders = {p.orders for r in written for p in partials(r)}
    highest = max((sum(o) for o in orders), default=0)
    both = {(2, 0), (0, 2)} <= orders
    return both and highest == 2 and len(written) == len(terms)


def _powers(first: int) -> np.ndarray:
    """(2 k, j, m) of z^k conj(z)^j log(z)^m of a system's singular functions.

    Values that jump (`first` 0) have k = -1 too.
    """
    least = 0 if first else -1
    found = []
    for n in range(first - 1, first - 1 + SYSTEM_TERMS):
        # Before the first order there are harmonic ones alone.
        for j in range(n - least + 1 if n >= first else 1):
            if (k := n - j) < 0:
                logs = range(2 if n > first else 1)
            else:
                logs = range(1, 1 + (MOST_LOGS if n > first else 1))
            found += [(2 * k, j, m) for m in logs]
    return np.array(found)


def _holds(system: System, points: np.ndarray) -> bool:
    """Whether points belong to the domain, which is the box if it has no shape."""
    shape = system.problem.shape
    return shape is None or bool(shape.contains(points).all())


def _misfit(
    system: System, place: np.ndarray, box: np.ndarray, form_of: Form
) -> tuple[float, float]:
    """What polynomials leave of the equations and conditions in a box at a corner.

    Every row is scaled so that functions of size one have entries of size one.

    **Returns:** the misfit, 0 where coefficients are not finite, and the size of the
    data or of the solution: the smaller one. (Coefficients can be large and cancel.)
    """
    nodes = (1 - np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)) / 2
    unit = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    inside = place + box * unit
    blocks, right = [], []
    for term in (*system.equations, *system.conditions):
        points = inside
        if term.kind == "condition":
            points = _on_face(system, term, place, box, nodes)
            if points is None:
                continue
        form = form_of(system, term, points)
        rows = _rows(form, system.fields, place, box)
        size = float(np.max(np.abs(rows), initial=0.0)) or 1.0
        blocks.append(rows / size)
        right.append(-form.rest / size)
    matrix, vector = np.concatenate(blocks), np.concatenate(right)
    if not (np.isfinite(matrix).all() and np.isfinite(vector).all()):
        return 0.0, 1.0
    solution = np.linalg.lstsq(matrix, vector, rcond=1e-13)[0]
    left = matrix @ solution - vector
    size = min(np.max(np.abs(solution)), np.max(np.abs(vector)))
    return float(np.max(np.abs(left))), float(size)


def _on_face(system: System, term, place, box, nodes) -> np.ndarray | None:
    """Points of a condition's face next to the corner; None where it is not there."""
    names, fixed = system.coordinates, dict(term.place.fixed)
    if len(fixed) != 1:
        return None
    name, value = next(iter(fixed.items()))
    axis = names.index(name)
    if value != place[axis]:
        return None
    points = np.repeat(place[None], len(nodes), axis=0)
    points[:, 1 - axis] += box[1 - axis] * nodes
    points = points[membership(system.problem, term.place)(points)]
    return points if len(points) else None


def _rows(
    form: LinearForm, fields: tuple[str, ...], place: np.ndarray, box: np.ndarray
) -> np.ndarray:
    """The rows of a form for the products of Chebyshev polynomials, up to a degree."""
    degrees = [
        (a, b) for a in range(DEGREE + 1) for b in range(DEGREE + 1) if a + b <= DEGREE
    ]
    rows = np.zeros((len(form.rest), len(fields), len(degrees)))
    for piece in form.pieces:
        for q in range(piece.location.shape[1]):
            z = 2 * (piece.location[:, q] - place) / box - 1
            lines = [
                chebyshev(z[:, i], DEGREE + 1, n) * (2 / box[i]) ** n
                for i, n in enumerate(piece.orders)
            ]
            product = lines[0][:, [a for a, _ in degrees]]
            product = product * lines[1][:, [b for _, b in degrees]]
            rows[:, fields.index(piece.field)] += (
                piece.coefficient[:, q, None] * product
            )
    return rows.reshape(len(rows), -1)
