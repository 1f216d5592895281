"""Networks of known functions in NumPy: compiling these takes longer than all that is
asked of a solution.

Sums run along each point's own numbers, so that a point alone and the same point among
many give the same bits.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from pinnlab.network.base import AbstractNetwork
from pinnlab.network.corners import HeatCorners, LaplaceCorners
from pinnlab.network.mlp import MLP
from pinnlab.network.pieces import Piecewise, Sum
from pinnlab.network.plane import PlaneFunctions, functions_around
from pinnlab.network.separable import Separable
from pinnlab.network.sines import Sines
from pinnlab.network.singular import laplace_functions


Derivative = Callable[
    [Float[np.ndarray, "n dim"], int, tuple[int, ...]], Float[np.ndarray, " n"]
]
"""Gives a partial derivative (orders) of an output at points."""


def in_arrays(network: AbstractNetwork) -> Derivative | None:
    """Derivatives of a network whose compilation is not worth it; None for others."""
    if isinstance(network, Separable):
        return network.derivative
    if isinstance(network, Sum) and isinstance(network.networks[0], Separable):
        return _part(network)
    if isinstance(network, Piecewise) and _has_plane_functions(network.network):
        return _piecewise(network)
    return None


def slabs_of(network: AbstractNetwork, points: np.ndarray) -> np.ndarray:
    """Which points are best computed together, [n]."""
    if isinstance(network, Separable):
        return network.slabs_of(points)
    return np.zeros(len(points), int)


class _Last:
    """A function of points and orders that remembers what it gave at the last points:
    all fields and terms ask for the same there, one after another."""

    def __init__(self, function: Callable):
        self.function = function
        self.at, self.known = b"", {}

    def __call__(self, points: np.ndarray, *orders: int):
        at = points.tobytes()
        if at != self.at:
            self.at, self.known = at, {}
        if orders not in self.known:
            self.known[orders] = self.function(points, *orders)
        return self.known[orders]


def _has_plane_functions(network: AbstractNetwork) -> bool:
    return isinstance(network, Sum) and any(
        isinstance(n, PlaneFunctions) for n in network.networks
    )


def _piecewise(network: Piecewise) -> Derivative | None:
    arrays, static = eqx.partition(network.network, eqx.is_array)
    edges, axis = np.asarray(network.edges), int(network.axis)
    pieces = []
    for i in range(len(edges) + 1):
        one = eqx.combine(jax.tree.map(lambda a, i=i: np.asarray(a[i]), arrays), static)
        pieces.append(_part(one))
    if any(p is None for p in pieces):
        return None

    def derivative(points: np.ndarray, output: int, orders: tuple[int, ...]):
        piece = np.sum(points[:, axis, None] > edges, axis=1)
        found = np.zeros(len(points))
        for i, part in enumerate(pieces):
            here = piece == i
            if here.any():
                found[here] = part(points[here], output, orders)
        return found

    return derivative


def _part(network: AbstractNetwork) -> Derivative | None:
    """What is in a sum, and sums."""
    match network:
        case Sum(networks=networks):
            parts = [_part(n) for n in networks]
            known = [p for p in parts if p is not None]
            if len(known) < len(parts):
                return None
            return lambda points, output, orders: np.sum(
                [p(points, output, orders) for p in known], axis=0
            )
        case Separable():
            return network.derivative
        case MLP():
            return _sines(network)
        case PlaneFunctions():
            return _plane(network)
        case HeatCorners() | LaplaceCorners() if len(network.places) == 0:
            return lambda points, output, orders: np.zeros(len(points))
        case LaplaceCorners():
            return _laplace(network)
    return None


def _sines(network: MLP) -> Derivative | None:
    """One hidden layer of sines of the scaled coordinates."""
    plain = not (network.features.periodic or network.features.waves)
    if len(network.layers) != 2 or network.activation != "sin" or not plain:
        return None
    lower, upper = np.array(network.features.lower), np.array(network.features.upper)
    hidden, last = network.layers
    sines = Sines(np.asarray(hidden.matrix), np.asarray(hidden.bias), lower, upper)
    weights = np.asarray(last.matrix) * np.array(network.scales)[:, None]
    level = np.asarray(last.bias) * np.array(network.scales)

    def waves(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # A product of matrices rounds otherwise for a point alone than among others.
        angles = np.tile(sines.phases, (len(points), 1))
        for z, row in zip(sines.scaled(points).T, sines.frequencies.T, strict=True):
            angles += z[:, None] * row
        return np.sin(angles), np.cos(angles)

    remembered = _Last(waves)

    def derivative(points: np.ndarray, output: int, orders: tuple[int, ...]):
        wave = remembered(points)[sum(orders) % 2]
        found = np.sum(wave * (sines.factor(orders) * weights[output]), axis=1)
        return found if any(orders) else found + level[output]

    return derivative


def _laplace(network: LaplaceCorners) -> Derivative:
    places, slopes, powers, coefficients = (
        np.asarray(a)
        for a in (
            network.places,
            network.slopes,
            network.powers,
            network.coefficients,
        )
    )

    def functions(points: np.ndarray, by_x: int, by_y: int) -> list[np.ndarray]:
        orders = (by_x, by_y)
        return [
            np.prod(s ** np.array(orders))
            * laplace_functions(s * (points - place), powers, orders)
            for place, s in zip(places, slopes, strict=True)
        ]

    return _expansion(functions, coefficients)


def _plane(network: PlaneFunctions) -> Derivative:
    places, sizes, turns, powers, coefficients = (
        np.asarray(a)
        for a in (
            network.places,
            network.sizes,
            network.turns,
            network.powers,
            network.coefficients,
        )
    )

    def functions(points: np.ndarray, *orders: int) -> list[np.ndarray]:
        each = zip(places, sizes, turns, powers, strict=True)
        return [functions_around(points, *one, orders) for one in each]

    return _expansion(functions, coefficients)


def _expansion(functions: Callable, coefficients: np.ndarray) -> Derivative:
    """Functions around points, a list of [n, functions], with their coefficients
    [points, outputs, functions]."""
    remembered = _Last(functions)

    def derivative(points: np.ndarray, output: int, orders: tuple[int, ...]):
        every = remembered(points, *orders)
        weights = coefficients[:, output]
        parts = (np.sum(f * w, axis=1) for f, w in zip(every, weights, strict=True))
        return sum(parts, start=np.zeros(len(points)))

    return derivative
