"""Residuals at points and their derivatives by every partial derivative of the fields.

A term is a function of the point and of a few partial derivatives there. Its slopes by
these are all that a Gauss-Newton method needs: a row of the Jacobian is the sum over
the partials of slope times the derivative of the features.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Coordinate, Expression
from pinnlab.equation.structure import partials
from pinnlab.system.system import System
from pinnlab.system.terms import Term


Weights = Callable[[np.ndarray], np.ndarray]
"""What the terms are multiplied with at [n, dim] points: [n, terms]."""


class Pointwise:
    """Terms at many points, compiled once for each number of points.

    - `partials`: every partial derivative that the terms contain.
    - `strength`: how much of what is nonlinear is left. With F(0) + F'(0) v + N(v) the
      terms are those of F(0) + (F(s v) - F(0)) / s: linear at s = 0, unchanged at 1. A
      quadratic N is multiplied by s.
    """

    def __init__(
        self, system: System, terms: Sequence[Term], weights: Weights | None = None
    ):
        self.strength, self._weights = 1.0, weights
        residuals = [t.residual for t in terms]
        self.residuals = tuple(r for r in residuals if isinstance(r, Expression))
        found = (p for r in self.residuals for p in partials(r))
        self.partials = tuple(dict.fromkeys(found))
        self.names = system.coordinates
        self.parameters = dict(system.problem.parameters)
        self._plain = tuple(Coordinate(n) for n in self.names)
        self._both = jax.jit(jax.vmap(self._at_point))
        self._locations = jax.jit(jax.vmap(self._location))

    def locations(self, points: np.ndarray) -> list[np.ndarray]:
        """Where each partial is taken, [n, dim] each; mostly the points themselves."""
        if all(p.at == self._plain for p in self.partials):
            return [points] * len(self.partials)
        found = np.asarray(self._locations(jnp.asarray(points)))
        return [found[:, i] for i in range(len(self.partials))]

    def __call__(
        self, points: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and slopes.

        **Arguments:**

        - `points`: [n, dim].
        - `values`: of the partials, [n, partials].

        **Returns:** [n, terms] and [n, terms, partials].
        """
        residual, slopes = self._weakened(jnp.asarray(points), values)
        if self._weights is None:
            return residual, slopes
        weights = self._weights(points)
        return residual * weights, slopes * weights[:, :, None]

    def _weakened(
        self, points: Array, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        s = self.strength
        residual, slopes = map(np.asarray, self._both(points, jnp.asarray(s * values)))
        if s == 1.0:
            return residual, slopes
        if s == 0.0:
            return residual + np.einsum("ntp,np->nt", slopes, values), slopes
        start, _ = map(np.asarray, self._both(points, jnp.zeros_like(values)))
        return start + (residual - start) / s, slopes

    def _around(self, point: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        values = dict(zip(self.names, point, strict=True))
        return values, {k: jnp.asarray(v) for k, v in self.parameters.items()}

    def _at_point(self, point: Array, values: Array) -> tuple[Array, Array]:
        coordinates, parameters = self._around(point)

        def residual(given: Array) -> Array:
            known: dict[Expression, Array] = {}
            known.update(zip(self.partials, given, strict=True))
            around = Surroundings(coordinates, parameters, None, known)
            found = evaluate(self.residuals, around)
            return jnp.stack([jnp.asarray(v, float) for v in found])

        return residual(values), jax.jacfwd(residual)(values)

    def _location(self, point: Array) -> Array:
        coordinates, parameters = self._around(point)
        around = Surroundings(coordinates, parameters)
        every = [
            jnp.stack([jnp.asarray(v, float) for v in evaluate(p.at, around)])
            for p in self.partials
        ]
        return jnp.stack(every)
