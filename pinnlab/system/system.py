"""The system to be solved: real terms, the ansatz of each field, what it is made of."""

from dataclasses import dataclass, replace
from functools import cached_property

import jax

from pinnlab.equation.expression import Coordinate, Expression, Integral, walk
from pinnlab.equation.structure import partials
from pinnlab.problem.problem import Problem
from pinnlab.system.ansatz import FieldAnsatz, impose
from pinnlab.system.exact import choose
from pinnlab.system.terms import (
    Term,
    condition_terms,
    coordinates,
    equation_terms,
    real_fields,
)


@dataclass(frozen=True, eq=False)
class System:
    """A problem in real form; compared by identity (it is static in compiled code).

    - `equations`, `conditions`: the terms; conditions know how they are enforced.
    - `ansatz`: every real field as lift, factors and remainder.
    """

    problem: Problem
    equations: tuple[Term, ...]
    conditions: tuple[Term, ...]
    ansatz: dict[str, FieldAnsatz]

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The real fields, in the order of the network's outputs."""
        return real_fields(self.problem)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """The coordinates' names."""
        return coordinates(self.problem)

    @property
    def penalties(self) -> tuple[Term, ...]:
        """The conditions that enter the loss."""
        return tuple(c for c in self.conditions if c.enforced != "exact")

    @cached_property
    def is_linear(self) -> bool:
        """Whether every term is affine in the fields."""
        return all(t.is_affine for t in (*self.equations, *self.conditions))

    @cached_property
    def joined(self) -> tuple[int, ...]:
        """Indices of the periodic coordinates along which points are coupled.

        Without derivatives by a coordinate, and without values elsewhere, every point
        has a solution of its own, and the period of the data may have a kink.
        """
        names = self.coordinates
        here = tuple(Coordinate(n) for n in names)
        terms = (*self.equations, *self.conditions)
        residuals = [t.residual for t in terms]
        trees = [r for r in residuals if isinstance(r, Expression)]
        every = [p for r in trees for p in partials(r)]
        coupled = lambda i: (
            len(trees) < len(terms)
            or any(isinstance(n, Integral) for r in trees for n in walk(r))
            or any(p.orders[i] or p.at[i] != here[i] for p in every)
        )
        periodic = [names.index(p) for p in self.problem.periodic]
        return tuple(i for i in periodic if coupled(i))

    def imposed(self, expression: Expression, network: bool = True) -> Expression:
        """An expression of the fields as one of the network's outputs."""
        return impose(expression, self.ansatz, self.coordinates, network)


def build_system(problem: Problem, enforce: str = "auto") -> System:
    """The real system of a problem.

    **Arguments:**

    - `enforce`: "penalty" makes every condition a penalty; "rows" does too and says
        that they are rows of a linear least-squares system.
    """
    with jax.enable_x64(True):
        wishes: list[str] = []
        conditions = condition_terms(problem)
        by_name = {c.name: c.enforce for c in problem.conditions}
        for term in conditions:
            wish = by_name[term.name.split(".")[0]]
            wishes.append(wish if enforce == "auto" else "penalty")
        marked, ansatz = choose(problem, conditions, tuple(wishes))
        if enforce == "rows":
            marked = tuple(replace(t, enforced="rows", why="") for t in marked)
        return System(problem, equation_terms(problem), marked, ansatz)
