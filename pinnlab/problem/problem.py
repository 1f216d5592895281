"""A problem: coordinates, fields, equations and conditions. Data only, no JAX."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol

from pinnlab.equation.expression import Expression


@dataclass(frozen=True)
class Axis:
    """A coordinate and its range; the one called `t` is time."""

    name: str
    lower: float
    upper: float


class HasAxes(Protocol):
    """Anything with coordinates."""

    def axis(self, name: str) -> Axis:
        """The coordinate of this name."""
        ...


@dataclass(frozen=True)
class Unknown:
    """A field to be found; `of` names its coordinates where they are not all."""

    name: str
    complex: bool = False
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Equation:
    """left = right, in written form; or a function of (u, point) that is zero."""

    name: str
    left: Expression
    right: Expression
    text: str
    function: Callable | None = None

    @property
    def residual(self) -> Expression:
        """left - right."""
        return self.left - self.right


@dataclass(frozen=True)
class Place:
    """Where a condition holds: some coordinates fixed, perhaps a restriction.

    - `fixed`: pairs of coordinate and value.
    - `where`: a comparison that the other coordinates must satisfy.
    """

    text: str
    fixed: tuple[tuple[str, float], ...]
    where: Expression | None

    def face(self, problem: HasAxes) -> tuple[str, bool] | None:
        """The coordinate and whether it is its end, if the place is on one face."""
        if len(self.fixed) != 1:
            return None
        name, value = self.fixed[0]
        axis = problem.axis(name)
        if value not in (axis.lower, axis.upper):
            return None
        return name, value == axis.upper


@dataclass(frozen=True)
class Condition:
    """Equations that hold at places; `enforce` is "auto", "exact" or "penalty"."""

    name: str
    on: tuple[Place, ...]
    equations: tuple[Equation, ...]
    enforce: str = "auto"


@dataclass(frozen=True)
class ReferenceChoice:
    """What a solution is judged by where there is no exact one.

    - `method`: "auto" (a classical solution, if there is a method) or "none".
    - `file`: a data file that holds the solution instead; "" for none.
    """

    method: str = "auto"
    file: str = ""


@dataclass(frozen=True)
class Problem:
    """A differential equation with everything that makes its solution unique.

    `source` is its TOML text, "" where it has equations given as functions; it, `name`
    and `file`, which errors name, do not count in comparisons.
    """

    axes: tuple[Axis, ...]
    fields: tuple[Unknown, ...]
    equations: tuple[Equation, ...]
    conditions: tuple[Condition, ...]
    parameters: dict[str, float] = field(default_factory=dict)
    periodic: tuple[str, ...] = ()
    exact: dict[str, Expression] = field(default_factory=dict)
    outputs: dict[str, Expression] = field(default_factory=dict)
    solver: dict[str, object] = field(default_factory=dict)
    reference: ReferenceChoice = ReferenceChoice()
    title: str = ""
    name: str = field(default="problem", compare=False)
    file: str | None = field(default=None, compare=False)
    source: str = field(default="", compare=False)

    def _repr_html_(self) -> str:
        # Views belong to a layer above; they are looked up when a notebook asks.
        return import_module("pinnlab.notebook").problem_html(self)

    def axis(self, name: str) -> Axis:
        """The coordinate of this name."""
        return next(a for a in self.axes if a.name == name)
