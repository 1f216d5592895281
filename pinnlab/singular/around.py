"""Where a shape asks for functions of its own: around its holes, and at its corners.

A solution in the plane can be continued into a hole, but not to its middle, and at a
corner of another angle than pi / n it is not smooth whatever the data.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from pinnlab.network.plane import functions_around
from pinnlab.problem.curves import Arc, Curve
from pinnlab.problem.shape import Shape
from pinnlab.singular.principal import ANY, Principal, principal_part
from pinnlab.singular.remembered import Remembered
from pinnlab.system.system import System


HARMONIC, OTHERS = 16, 12
"""The largest negative power around a hole, without and with terms of lower order."""
LOWER, LOGS = 4, 4
"""The largest power of conj(w) in those, and the number of powers with logarithms."""
FEW = (1, 2)
"""The same for systems: flow without inertia and elasticity in the plane need no more
(Goursat, 1898)."""
EXPONENTS = 12
"""How many multiples of pi / (2 angle) are taken at a corner."""
CELLS = 300
"""Cells along each side of the box in which holes are looked for."""
WHOLE = 1e-6
"""How near to a whole number an exponent counts as one."""
MEET = 1e-5
"""How far pieces of the edge may end from each other, relative to the shape's size."""


@dataclass(frozen=True)
class Around(Remembered):
    """A point and the functions that are taken around it.

    - `text`: the point in words.
    - `size`, `turn`, `powers`: as in `network.plane`.
    - `order`: the exponent of the roughest function that counts; infinite at a hole,
        whose functions are smooth in the domain.
    - `kept` [2 S]: which parts, real and imaginary, are used.
    """

    principal: Principal
    place: Float[np.ndarray, " 2"]
    text: str
    size: float
    turn: float
    powers: Float[np.ndarray, "S 3"]
    order: float
    kept: Bool[np.ndarray, " 2*S"]

    @property
    def gathers(self) -> bool:
        """Whether the equations must be asked near it: around a hole, where single
        functions are no solutions."""
        return math.isinf(self.order) and not self.principal.alone

    def computed(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """A derivative of every function at [..., 2] points."""
        found = functions_around(
            points, self.place, self.size, self.turn, self.powers, orders
        )
        return found[..., self.kept]

    def weights(self, points: np.ndarray, derivative: int) -> np.ndarray:
        """What keeps a residual with derivatives of this order bounded, [n]."""
        distance = np.linalg.norm((points - self.place) / self.size, axis=1)
        return np.minimum(1.0, distance) ** max(0.0, derivative - self.order)


def find_around(system: System) -> tuple[Around, ...]:
    """The holes and corners of a problem in the plane, without time."""
    shape = system.problem.shape
    if shape is None or len(system.coordinates) != 2:
        return ()
    principal = None
    if system.is_linear:
        lower = np.array([a.lower for a in system.problem.axes])
        principal = principal_part(system, lower, np.ones(2))
    few = len(system.fields) > 1
    if principal is None or not np.allclose(*principal.coefficients):
        return tuple(_holes(shape, ANY, few))
    return (*_holes(shape, principal, few), *_corners(shape, principal))


# ------------------------------------------------------------------------- holes


def _holes(shape: Shape, principal: Principal, few: bool) -> list[Around]:
    """Circular ones around their centers, others around their middles."""
    circles = [c for c in shape.curves if isinstance(c, Arc) and c.closed]
    found = [(c.center, c.radius) for c in circles if c.outward < 0]
    found += [h for h in _gaps(shape) if not any(_within(h[0], c) for c in circles)]
    return [_hole(principal, few, center, radius) for center, radius in found]


def _hole(
    principal: Principal, few: bool, center: tuple[float, float], radius: float
) -> Around:
    if principal.alone:
        powers = [(-n, 0, 0) for n in range(1, HARMONIC + 1)] + [(0, 0, 1)]
    else:
        lower, logs = FEW if few else (LOWER, LOGS)
        inverse = itertools.product(range(1, OTHERS + 1), range(lower + 1))
        powers = [(j - n, j, 0) for n, j in inverse if j < n]
        powers += list(itertools.product(range(logs), range(logs), (1,)))
    array = np.array(powers, float)
    # log|w| times a power of |w| has no imaginary part.
    real = array[:, 0] == array[:, 1]
    kept = np.concatenate([np.ones(len(array), bool), ~real])
    text = f"the hole at {_text(center)}"
    place = np.array(center)
    return Around(principal, place, text, radius, 0.0, array, math.inf, kept)


def _gaps(shape: Shape) -> list[tuple[tuple[float, float], float]]:
    """Middles and radii of what is left out and does not reach the box's faces."""
    lower, upper = shape.box
    step = (upper - lower) / CELLS
    # One cell more on each side, so that all that is outside hangs together.
    lines = [
        lo + s * (np.arange(CELLS + 2) - 0.5) for lo, s in zip(lower, step, strict=True)
    ]
    x, y = np.meshgrid(*lines, indexing="ij")
    outside = np.zeros(x.shape, np.int32)
    ndimage.label(shape.solid.level(x, y) <= 0, output=outside)
    found = []
    for i in range(1, int(outside.max()) + 1):
        cells = outside == i
        if cells[0].any() or cells[-1].any() or cells[:, 0].any() or cells[:, -1].any():
            continue
        middle = (float(x[cells].mean()), float(y[cells].mean()))
        if float(shape.solid.level(*middle)) < 0:
            area = cells.sum() * float(np.prod(step))
            found.append((middle, math.sqrt(area / math.pi)))
    return found


def _within(point: tuple[float, float], circle: Arc) -> bool:
    return circle.outward < 0 and math.dist(point, circle.center) < circle.radius


# ----------------------------------------------------------------------- corners


@dataclass(frozen=True)
class _End:
    """Where a piece of the edge ends, and its direction there, inside to the left."""

    place: np.ndarray
    direction: np.ndarray


def _ends(curve: Curve) -> tuple[_End, _End]:
    """The beginning and the end of a piece."""
    share = np.array([0.0, 1.0])
    places, outward = curve.at(share), curve.normal_at(share)
    if isinstance(curve, Arc) and curve.outward < 0:
        places, outward = places[::-1], outward[::-1]
    directions = np.stack([-outward[:, 1], outward[:, 0]], axis=1)
    return _End(places[0], directions[0]), _End(places[1], directions[1])


def _corners(shape: Shape, principal: Principal) -> list[Around]:
    """Corners where a harmonic function is not smooth, as far as they can be served."""
    ends = [_ends(c) for c in shape.curves if not c.closed]
    found = []
    for (_, before), (after, _) in itertools.product(ends, ends):
        if np.max(np.abs(before.place - after.place)) > MEET * shape.size:
            continue
        (a, b), (c, d) = before.direction, after.direction
        angle = math.pi - math.atan2(a * d - b * c, a * c + b * d)
        turn = math.atan2(d, c) + angle / 2
        corner = _corner(shape, principal, after.place, angle, turn)
        if corner is not None:
            found.append(corner)
    return found


def _corner(
    shape: Shape, principal: Principal, place: np.ndarray, angle: float, turn: float
) -> Around | None:
    """None where all exponents are whole, or the cut would meet the domain again."""
    first = math.pi / angle
    if abs(first - round(first)) < WHOLE:
        return None
    size = shape.size
    cut = np.array([math.cos(turn), math.sin(turn)])
    line = place - size * np.linspace(1e-3, 1.5, 500)[:, None] * cut
    if np.any(shape.solid.level(*line.T) > 0):
        return None
    exponents = first / 2 * np.arange(1, EXPONENTS + 1)
    exponents = exponents[np.abs(exponents - np.round(exponents)) > WHOLE]
    more = [(0, 0)] if principal.alone else [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
    powers = np.array([(a + i, j, 0) for a in exponents for i, j in more], float)
    text = f"the corner {_text(place)}"
    kept = np.ones(2 * len(powers), bool)
    order = float(first / 2)
    return Around(principal, place, text, size, turn, powers, order, kept)


def _text(place: Float[np.ndarray, " 2"] | tuple[float, float]) -> str:
    return f"({place[0]:.4g}, {place[1]:.4g})"
