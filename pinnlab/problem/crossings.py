"""Where pieces of edges meet one another, as shares of their lengths."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from pinnlab.problem.curves import Arc, Curve, Segment


ON = 1e-9
"""How far from a piece a point still lies on it, relative to the size."""
APART = 1e-6
"""How near to each other two cuts are one, relative to the size."""


def cuts(curve: Curve, others: Sequence[Curve], size: float) -> Float[np.ndarray, " k"]:
    """Shares at which a piece meets others, where they end on it too; in order."""
    box = curve.box + ON * size * np.array([[-1.0], [1.0]])
    near = [o for o in others if np.all((o.box[1] >= box[0]) & (o.box[0] <= box[1]))]
    points = [np.zeros((0, 2))]
    for other in near:
        ends = [] if other.closed else [other.at(np.array([0.0, 1.0]))]
        for found in (_meeting(curve, other), *ends):
            away = np.maximum(curve.distance(found), other.distance(found))
            points.append(found[away <= ON * size])
    shares = np.sort(curve.share(np.concatenate(points)))
    least = APART * size / curve.length
    if not curve.closed:
        shares = shares[(shares > least) & (shares < 1 - least)]
    kept: list[float] = []
    for share in shares.tolist():
        round_trip = curve.closed and kept and share - kept[0] > 1 - least
        if not (round_trip or (kept and share - kept[-1] <= least)):
            kept.append(share)
    return np.array(kept)


def _meeting(one: Curve, other: Curve) -> Float[np.ndarray, "k 2"]:
    """Where the lines and circles of two pieces meet; none where they are the same."""
    if isinstance(one, Segment) and isinstance(other, Segment):
        return _lines(one, other)
    if isinstance(one, Segment) and isinstance(other, Arc):
        return _line_and_circle(one, other)
    if isinstance(one, Arc) and isinstance(other, Segment):
        return _line_and_circle(other, one)
    assert isinstance(one, Arc) and isinstance(other, Arc)
    return _circles(one, other)


def _lines(one: Segment, other: Segment) -> Float[np.ndarray, "k 2"]:
    a, b = np.array(one.first), np.array(other.first)
    u, v = np.array(one.last) - a, np.array(other.last) - b
    across = u[0] * v[1] - u[1] * v[0]
    if abs(across) <= ON * one.length * other.length:
        return np.zeros((0, 2))
    share = ((b - a)[0] * v[1] - (b - a)[1] * v[0]) / across
    return (a + share * u)[None]


def _line_and_circle(line: Segment, circle: Arc) -> Float[np.ndarray, "k 2"]:
    a, center = np.array(line.first), np.array(circle.center)
    along = (np.array(line.last) - a) / line.length
    foot = a + ((center - a) @ along) * along
    return _both(foot, along, circle.radius, math.dist(foot, center))


def _circles(one: Arc, other: Arc) -> Float[np.ndarray, "k 2"]:
    center, offset = np.array(one.center), np.subtract(other.center, one.center)
    apart = math.hypot(*offset)
    if apart <= ON * max(one.radius, other.radius):
        return np.zeros((0, 2))
    along = offset / apart
    away = (
        apart + (one.radius - other.radius) * (one.radius + other.radius) / apart
    ) / 2
    across = np.array([-along[1], along[0]])
    return _both(center + away * along, across, one.radius, abs(away))


def _both(
    foot: np.ndarray, along: np.ndarray, radius: float, away: float
) -> Float[np.ndarray, "k 2"]:
    """The points of a line at a radius from a center `away` from it; one if it touches.

    - `foot`: the point of the line nearest to the center.
    """
    if away > radius * (1 + ON):
        return np.zeros((0, 2))
    half = math.sqrt(max(0.0, (radius - away) * (radius + away)))
    return foot + np.array([[-half], [half]]) * along
