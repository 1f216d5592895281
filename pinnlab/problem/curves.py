"""Smooth pieces of the boundary of a shape in the plane, with their outward normals."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from pinnlab.equation.expression import Expression, Number, divide


@dataclass(frozen=True)
class Segment:
    """A straight piece from `first` to `last`; outside is to its right."""

    first: tuple[float, float]
    last: tuple[float, float]

    closed = False

    @property
    def length(self) -> float:
        """Its length."""
        return math.dist(self.first, self.last)

    @property
    def text(self) -> str:
        """In words."""
        (a, b), (c, d) = self.first, self.last
        return f"the line from ({a:.4g}, {b:.4g}) to ({c:.4g}, {d:.4g})"

    @property
    def box(self) -> Float[np.ndarray, "2 2"]:
        """The smallest box around it: lower and upper corner."""
        return np.sort(np.array([self.first, self.last]), axis=0)

    @property
    def swept(self) -> float:
        """Its part of the area to its left: the integral of x.n / 2 along it."""
        (a, b), (c, d) = self.first, self.last
        return (a * d - b * c) / 2

    def at(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
        """Points at shares of the length."""
        first, last = np.array(self.first), np.array(self.last)
        return first + (last - first) * share[:, None]

    def normal_at(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
        """Outward unit normals at shares of the length."""
        return np.broadcast_to(self._normal, (len(share), 2))

    def normal(self, x: Expression, y: Expression) -> tuple[Expression, Expression]:
        """The components of the outward normal at (x, y) on the piece."""
        a, b = self._normal
        return Number(a), Number(b)

    def share(self, points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        """The share of the length at which the piece is nearest to points."""
        first = np.array(self.first)
        along = np.array(self.last) - first
        return np.clip((points - first) @ along / (along @ along), 0.0, 1.0)

    def distance(self, points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        """The distance of points from the piece."""
        return np.linalg.norm(points - self.at(self.share(points)), axis=1)

    def part(self, lower: float, upper: float) -> "Segment":
        """The piece between two shares of the length."""
        (a, b), (c, d) = self.at(np.array([lower, upper])).tolist()
        return Segment((a, b), (c, d))

    def turned(self) -> "Segment":
        """The same piece, of a domain on the other side."""
        return Segment(self.last, self.first)

    @property
    def _normal(self) -> tuple[float, float]:
        (a, b), (c, d) = self.first, self.last
        return (d - b) / self.length, (a - c) / self.length


@dataclass(frozen=True)
class Arc:
    """A piece of a circle between two angles; `outward` is 1 away from the center.

    - `turn`: the angle that it spans, at most 2 pi.
    """

    center: tuple[float, float]
    radius: float
    begin: float = 0.0
    turn: float = 2 * math.pi
    outward: int = 1

    @property
    def closed(self) -> bool:
        """Whether it is a whole circle."""
        return self.turn >= 2 * math.pi

    @property
    def length(self) -> float:
        """Its length."""
        return self.radius * self.turn

    @property
    def text(self) -> str:
        """In words."""
        x, y = self.center
        what = "the circle" if self.closed else "an arc"
        return f"{what} around ({x:.4g}, {y:.4g}) with radius {self.radius:.4g}"

    @property
    def box(self) -> Float[np.ndarray, "2 2"]:
        """The smallest box around it: lower and upper corner."""
        a, b = self.center
        sides = [(a + self.radius, b), (a, b + self.radius)]
        sides += [(a - self.radius, b), (a, b - self.radius)]
        reached = [
            p
            for k, p in enumerate(sides)
            if (k * math.pi / 2 - self.begin) % (2 * math.pi) <= self.turn
        ]
        ends = self.at(np.array([0.0, 1.0]))
        points = np.array(reached) if self.closed else np.array([*reached, *ends])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    @property
    def swept(self) -> float:
        """Its part of the area of the domain: the integral of x.n / 2 along it."""
        (a, b), last = self.center, self.begin + self.turn
        across = a * (math.sin(last) - math.sin(self.begin))
        across += b * (math.cos(self.begin) - math.cos(last))
        return self.outward * self.radius * (across + self.radius * self.turn) / 2

    def at(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
        """Points at shares of the length."""
        return np.array(self.center) + self.radius * self._directions(share)

    def normal_at(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
        """Outward unit normals at shares of the length."""
        return self.outward * self._directions(share)

    def normal(self, x: Expression, y: Expression) -> tuple[Expression, Expression]:
        """The components of the outward normal at (x, y) on the piece."""
        scale = Number(self.outward * self.radius)
        a, b = self.center
        return divide(x - Number(a), scale), divide(y - Number(b), scale)

    def share(self, points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        """The share of the length at which points near the piece are."""
        offset = points - np.array(self.center)
        angle = np.arctan2(offset[:, 1], offset[:, 0]) - self.begin
        beyond = (2 * math.pi - self.turn) / 2
        # What is before the beginning is nearer to it than to the end.
        turned = (angle + beyond) % (2 * math.pi) - beyond
        return np.clip(turned / self.turn, 0.0, 1.0)

    def distance(self, points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        """The distance of points from the piece."""
        offset = points - np.array(self.center)
        away = np.abs(np.linalg.norm(offset, axis=1) - self.radius)
        if self.closed:
            return away
        angle = np.arctan2(offset[:, 1], offset[:, 0]) - self.begin
        ends = self.at(np.array([0.0, 1.0]))
        near = np.linalg.norm(points[:, None] - ends, axis=2).min(axis=1)
        return np.where(angle % (2 * math.pi) <= self.turn, away, near)

    def part(self, lower: float, upper: float) -> "Arc":
        """The piece between two shares of the length; `upper` may be above 1."""
        begin, turn = self.begin + lower * self.turn, (upper - lower) * self.turn
        return replace(self, begin=float(begin), turn=float(turn))

    def turned(self) -> "Arc":
        """The same piece, of a domain on the other side."""
        return replace(self, outward=-self.outward)

    def _directions(self, share: np.ndarray) -> np.ndarray:
        angle = self.begin + self.turn * share
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)


Curve = Segment | Arc
