"""Trial fields with derivatives in closed form: random states and polynomial bases."""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from pinnlab.problem.problem import Axis, Problem


DEGREES = {1: 20, 2: 12, 3: 7, 4: 5}
"""Total degree of the basis by the number of coordinates."""


@dataclass(frozen=True)
class State:
    """Smooth positive fields u = 1.3 + 0.2 sum_k sin(w_k . xi + phi_k), xi in [-1, 1].

    - `frequencies` [field, wave, dim], `phases` [field, wave].
    """

    axes: tuple[Axis, ...]
    fields: tuple[str, ...]
    frequencies: np.ndarray
    phases: np.ndarray

    def __call__(
        self, field: str, orders: tuple[int, ...], places: np.ndarray
    ) -> np.ndarray:
        """The partial derivative of a field at places [..., dim]."""
        f = self.fields.index(field)
        half = np.array([(a.upper - a.lower) / 2 for a in self.axes])
        waves = self.frequencies[f] / half
        middle = np.array([(a.upper + a.lower) / 2 for a in self.axes])
        angles = (places - middle) @ waves.T + self.phases[f]
        size = np.prod(waves ** np.array(orders), axis=1)
        shift = np.pi / 2 * sum(orders)
        offset = 1.3 if sum(orders) == 0 else 0.0
        return offset + 0.2 * np.sin(angles + shift) @ size


def random_state(axes: tuple[Axis, ...], fields: tuple[str, ...], seed: int) -> State:
    """A state of three waves a field."""
    rng = np.random.default_rng(seed)
    shape = (len(fields), 3)
    return State(
        axes,
        fields,
        rng.uniform(-2.0, 2.0, (*shape, len(axes))),
        rng.uniform(0, 2 * np.pi, shape),
    )


def zero_state(field: str, orders: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    """Every field is zero."""
    return np.zeros(places.shape[:-1])


@dataclass(frozen=True)
class Basis:
    """Products of Chebyshev polynomials (of sines and cosines where periodic).

    - `powers` [functions, dim]: the number of the factor along each axis.
    """

    axes: tuple[Axis, ...]
    periodic: tuple[str, ...]
    powers: np.ndarray

    @property
    def count(self) -> int:
        """The number of functions."""
        return len(self.powers)

    def __call__(
        self, orders: tuple[int, ...], places: Float[np.ndarray, "*n dim"]
    ) -> Float[np.ndarray, "*n functions"]:
        """A partial derivative of every function at places."""
        total = np.ones((*places.shape[:-1], 1))
        highest = int(self.powers.max())
        for i, axis in enumerate(self.axes):
            half = (axis.upper - axis.lower) / 2
            xi = (places[..., i] - (axis.lower + axis.upper) / 2) / half
            factors = _waves if axis.name in self.periodic else _chebyshev
            values = factors(xi, highest, orders[i]) / half ** orders[i]
            total = total * values[..., self.powers[:, i]]
        return total


def make_basis(problem: Problem) -> Basis:
    """The basis for a problem of at most four coordinates."""
    dim = len(problem.axes)
    degree = DEGREES[dim]
    powers = [
        p for p in itertools.product(range(degree + 1), repeat=dim) if sum(p) <= degree
    ]
    return Basis(problem.axes, problem.periodic, np.array(powers))


def _chebyshev(xi: np.ndarray, highest: int, order: int) -> np.ndarray:
    cheb = np.polynomial.chebyshev
    if order > highest:
        return np.zeros((*xi.shape, highest + 1))
    coefficients = cheb.chebder(np.eye(highest + 1), order, axis=0)
    return cheb.chebvander(xi, len(coefficients) - 1) @ coefficients


def _waves(xi: np.ndarray, highest: int, order: int) -> np.ndarray:
    """1, cos(pi xi), sin(pi xi), cos(2 pi xi), ...: functions of period 2."""
    number = (np.arange(highest + 1) + 1) // 2
    phase = np.where(np.arange(highest + 1) % 2, np.pi / 2, 0.0)
    phase[0] = np.pi / 2
    angle = np.pi * number * xi[..., None] + phase + order * np.pi / 2
    return (np.pi * number) ** float(order) * np.sin(angle)
