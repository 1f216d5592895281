"""A problem: coordinates, fields, equations and conditions. Data only, no JAX."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol

from pinnlab.equation.expression import Expression
from pinnlab.problem.curves import Curve
from pinnlab.problem.shape import Shape


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
    - `curve`: a piece of the edge of the problem's shape, which fixes neither.
    - `is_piece`: one of several that a word such as "boundary" means: it may hold no
        points where the others do.
    """

    text: str
    fixed: tuple[tuple[str, float], ...]
    where: Expression | None
    curve: Curve | None = None
    is_piece: bool = False

    @property
    def inside(self) -> bool:
        """Whether it is the domain, or a part of that, and no lower dimension."""
        return not self.fixed and self.curve is None

    def face(self, problem: HasAxes) -> tuple[str, bool] | None:
        """The coordinate and whether it is its end, if the place is on one face."""
        if len(self.fixed) != 1 or self.curve is not None:
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

    `shape` is the part of the axes' box where it is posed, None for all of it.
    `source` is its TOML text, "" where it has equations given as functions; it, `name`
    and `file`, which errors name, do not count in comparisons.
    """

    axes: tuple[Axis, ...]
    fields: tuple[Unknown, ...]
    equations: tuple[Equation, ...]
    conditions: tuple[Condition, ...]
    parameters: dict[str, float] = field(default_factory=dict)
    periodic: tuple[str, ...] = ()
    shape: Shape | None = None
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

    @property
    def filling(self) -> float:
        """The share of the axes' box that the shape fills."""
        if self.shape is None:
            return 1.0
        sides = [self.axes[i].upper - self.axes[i].lower for i in self.shape.columns]
        return self.shape.area / (sides[0] * sides[1])

    def axis(self, name: str) -> Axis:
        """The coordinate of this name."""
        return next(a for a in self.axes if a.name == name)
