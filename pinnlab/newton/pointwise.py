"""Residuals at points and their derivatives by every partial derivative of the fields.

A term is a function of the point and of a few partial derivatives there. Its slopes by
these are all that a Gauss-Newton method needs: a row of the Jacobian is the sum over
the partials of slope times the derivative of the features.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.clock import Clock
from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Coordinate, Expression
from pinnlab.equation.structure import partials
from pinnlab.system.system import System
from pinnlab.system.terms import Term


FEWEST, MOST = 64, 16384
"""Points at which a program computes: a power of two between these."""


class Pointwise:
    """Terms at many points, by few compiled programs.

    A program computes at a number of points; other numbers are filled up, and many
    points are taken piece by piece.

    - `partials`: every partial derivative that the terms contain.
    - `strength`: how much of what is nonlinear is left. With F(0) + F'(0) v + N(v) the
      terms are those of F(0) + (F(s v) - F(0)) / s: linear at s = 0, unchanged at 1. A
      quadratic N is multiplied by s.
    """

    def __init__(
        self,
        system: System,
        terms: Sequence[Term],
        clock: Clock | None = None,
    ):
        self.clock = clock or Clock()
        self._programs: dict[tuple, Callable] = {}
        self.strength = 1.0
        residuals = [t.residual for t in terms]
        self.residuals = tuple(r for r in residuals if isinstance(r, Expression))
        found = (p for r in self.residuals for p in partials(r))
        self.partials = tuple(dict.fromkeys(found))
        self.names = system.coordinates
        self.parameters = dict(system.problem.parameters)
        self._plain = tuple(Coordinate(n) for n in self.names)

    def locations(self, points: np.ndarray) -> list[np.ndarray]:
        """Where each partial is taken, [n, dim] each; mostly the points themselves."""
        if all(p.at == self._plain for p in self.partials):
            return [points] * len(self.partials)
        (found,) = self._mapped(self._location, points)
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
        s = self.strength
        residual, slopes = self._mapped(self._at_point, points, s * values)
        if s == 1.0:
            return residual, slopes
        if s == 0.0:
            return residual + np.einsum("ntp,np->nt", slopes, values), slopes
        start, _ = self._mapped(self._at_point, points, np.zeros_like(values))
        return start + (residual - start) / s, slopes

    def _mapped(self, function: Callable, *arrays: np.ndarray) -> list[np.ndarray]:
        """A function of a point at many: what it returns as arrays [n, ...]."""
        count = len(arrays[0])
        size = int(2 ** np.ceil(np.log2(np.clip(count, FEWEST, MOST))))
        pieces = []
        for i in range(0, max(count, 1), size):
            some = [a[i : i + size] for a in arrays]
            filled = [np.resize(a, (size, *a.shape[1:])) for a in some]
            found = self._program(function, filled)(*filled)
            pieces.append([np.asarray(f)[: len(some[0])] for f in found])
        if len(pieces) == 1:
            return pieces[0]
        return [np.concatenate(p) for p in zip(*pieces, strict=True)]

    def _program(self, function: Callable, arrays: list[np.ndarray]) -> Callable:
        """The function compiled for arrays of these shapes."""
        key = (function.__name__, *(a.shape for a in arrays))
        if key not in self._programs:
            jitted: Any = jax.jit(jax.vmap(function))
            with self.clock.compilation():
                self._programs[key] = jitted.lower(*arrays).compile()
        return self._programs[key]

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

    def _location(self, point: Array) -> tuple[Array]:
        coordinates, parameters = self._around(point)
        around = Surroundings(coordinates, parameters)
        every = [
            jnp.stack([jnp.asarray(v, float) for v in evaluate(p.at, around)])
            for p in self.partials
        ]
        return (jnp.stack(every),)


class Compiled:
    """The groups of terms of one system, each compiled once, on one clock."""

    def __init__(self, system: System, clock: Clock | None = None):
        self.system, self.clock = system, clock or Clock()
        self._known: dict[tuple[Term, ...], Pointwise] = {}

    def of(self, terms: tuple[Term, ...]) -> Pointwise:
        """A group of terms."""
        if terms not in self._known:
            self._known[terms] = Pointwise(self.system, terms, self.clock)
        return self._known[terms]
