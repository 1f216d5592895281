"""The principal part of the equations at a point: Laplace's or the heat equation's."""

from dataclasses import dataclass

import numpy as np

from pinnlab.network.singular import HIGHEST
from pinnlab.system.forms import Form, linear_form
from pinnlab.system.system import System


CLOSE = 1e-6
"""How far inside the coefficients are taken, relative to the domain."""
TERMS = 5
"""How many orders of singular functions are taken, from the first on."""
MOST_LOGS = 2


@dataclass(frozen=True)
class Principal:
    """a u_xx + b u_yy with a b > 0, or u_t - D u_xx.

    - `coefficients` [2]: (a, b), or 1 and 4 D in the order of the coordinates.
    - `time`: the coordinate of first order, None for Laplace's.
    - `alone`: whether nothing else is there and both are constant.
    """

    coefficients: tuple[float, float]
    time: int | None
    alone: bool

    def scales(self, lengths: np.ndarray) -> np.ndarray:
        """Factors of the coordinates that leave u_xx + u_yy, or u_t - u_dd / 4.

        The longest side, or the time, becomes 1.
        """
        roots = 1 / np.sqrt(np.array(self.coefficients))
        if self.time is None:
            return roots / np.max(roots * lengths)
        roots[self.time] = 1.0
        duration = lengths[self.time]
        roots /= np.sqrt(duration)
        roots[self.time] = 1 / duration
        return roots

    def order(self, orders: tuple[int, ...]) -> int:
        """The order of a derivative; one by time counts twice."""
        return _order(orders, self.time)

    def powers(self, first: int) -> np.ndarray:
        """The functions whose derivatives of order `first` and above are singular."""
        orders = range(first, first + TERMS)
        if self.time is not None:
            return np.array(
                [
                    (j, n - 2 * j)
                    for n in orders
                    if n <= HIGHEST
                    for j in range(1 if self.alone else n + 1)
                ]
            )
        return np.array(
            [
                (2 * (n - j), j, m)
                for n in orders
                for j in range(1 if self.alone else n + 1)
                for m in range(1, MOST_LOGS + 1)
                if m == 1 or n > first
            ]
        )


ANY = Principal((1.0, 1.0), None, False)
"""Stands in where the principal part is another one, or not linear."""


def principal_part(
    system: System, place: np.ndarray, inward: np.ndarray, form_of: Form = linear_form
) -> Principal | None:
    """The principal part next to a corner of the box; None where it is another.

    **Arguments:**

    - `inward` [2]: 1 where the domain lies above the place, -1 where below.
    - `form_of`: gives the equations, or what they are linearized to.
    """
    lengths = np.array([a.upper - a.lower for a in system.problem.axes])
    points = place + inward * lengths * np.array([[CLOSE], [0.3]])
    names = system.coordinates
    time = names.index("t") if "t" in names else None
    found: dict[str, tuple[float, float]] = {}
    alone = True
    for term in system.equations:
        form = form_of(system, term, points)
        if any(
            p.location.shape[1] != 1 or np.any(p.location[:, 0] != points)
            for p in form.pieces
        ):
            return None
        used = {(p.field, p.orders): p.coefficient[:, 0] for p in form.pieces}
        used = {key: c for key, c in used.items() if np.any(c)}
        leading = ((1 if time == 0 else 2, 0), (0, 1 if time == 1 else 2))
        fields = {f for f, o in used if _order(o, time) >= 2}
        if len(fields) != 1:
            return None
        (field,) = fields
        high = {o for f, o in used if _order(o, time) >= 2}
        if high != set(leading) or field in found:
            return None
        pair = np.array([used[field, o] for o in leading])
        alone &= len(used) == 2 and bool(np.all(pair[:, 0] == pair[:, 1]))
        a, b = pair[:, 0]
        if time is not None:
            first, second = (a, b) if time == 0 else (b, a)
            diffusivity = -second / (first * inward[time])
            if not diffusivity > 0:
                return None
            both = [4 * diffusivity] * 2
            both[time] = 1.0
            found[field] = (both[0], both[1])
        elif a * b > 0:
            found[field] = (1.0, float(b / a))
        else:
            return None
    values = list(found.values())
    if set(found) != set(system.fields) or not np.allclose(values, values[0]):
        return None
    return Principal(values[0], time, alone)


def _order(orders: tuple[int, ...], time: int | None) -> int:
    return sum(orders) + (0 if time is None else orders[time])
