"""What the names in an equation mean, and which names are taken."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pinnlab.equation.expression import (
    FUNCTIONS,
    LOGIC,
    RELATIONS,
    Apply,
    Coordinate,
    Expression,
    Field,
    Number,
    Parameter,
)
from pinnlab.equation.tokens import KEYWORDS


CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
"""Constants that every text may use; a declared `e` wins over the constant."""

OPERATORS = frozenset(
    {"d", "dn", "lap", "grad", "div", "dot", "integral", "at", "jump"}
)
PLACES = frozenset({"start", "end", "boundary"})
RESULT_NAMES = frozenset({"solution", "model", "history", "report", "point", "mask"})
RESERVED = OPERATORS | KEYWORDS | FUNCTIONS.keys() | PLACES | {"pi"}
"""Words of the language, which no field, coordinate or parameter may have."""


@dataclass(frozen=True)
class Vector:
    """A vector over the space coordinates; it exists only while parsing."""

    components: tuple[Expression, ...]


Value = Expression | Vector
"""What a part of a text means."""


@dataclass(frozen=True)
class Scope:
    """The names a text may use.

    **Arguments:**

    - `axes`: each coordinate's bounds, in order.
    - `fields`: each field, and whether it is complex.
    - `parameters`: names of the parameters.
    - `definitions`: each definition's value, put in place of its name.
    - `bound`: bound variables of the integrals around the text.
    - `ends`: the coordinate whose bounds `start` and `end` mean here.
    - `normal`: whether there is an outward normal, so that `dn` has a meaning.
    """

    axes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fields: Mapping[str, bool] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    definitions: Mapping[str, Value] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    ends: str | None = None
    normal: bool = False

    @property
    def space(self) -> tuple[str, ...]:
        """The space coordinates: all but the one called `t`."""
        return tuple(name for name in self.axes if name != "t")

    def bind(self, names: Iterable[str]) -> "Scope":
        """The scope inside an integral over these variables."""
        return dataclasses.replace(self, bound=self.bound | frozenset(names))

    def between(self, coordinate: str) -> "Scope":
        """The scope of a value of the coordinate: `start` and `end` are known."""
        ends = coordinate if coordinate in self.axes else None
        return dataclasses.replace(self, ends=ends)

    def resolve(self, name: str) -> Value | None:
        """The meaning of a name, None where it has none."""
        if name in self.bound or name in self.axes:
            return Coordinate(name)
        if name in self.fields:
            return Field(name)
        if name in self.parameters:
            return Parameter(name)
        if name in self.definitions:
            return self.definitions[name]
        if self.ends is not None and name in ("start", "end"):
            return signed(self.axes[self.ends][name == "end"])
        return Parameter(name) if name in CONSTANTS else None

    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Kind of name to the names of this kind, without empty kinds."""
        kinds = {
            "fields": tuple(self.fields),
            "coordinates": tuple(self.axes),
            "parameters": self.parameters,
            "definitions": tuple(self.definitions),
            "bound variables": tuple(sorted(self.bound - self.axes.keys())),
        }
        return {kind: names for kind, names in kinds.items() if names}

    def names(self) -> tuple[str, ...]:
        """All names that may be used, for hints."""
        declared = [name for names in self.kinds().values() for name in names]
        ends = ("start", "end") if self.ends else ()
        return (*declared, *CONSTANTS, *ends)

    def listing(self) -> str:
        """The known names as errors print them: `fields: u; coordinates: t, x`."""
        kinds = [f"{kind}: {_some(names)}" for kind, names in self.kinds().items()]
        return "; ".join(kinds) or "constants: pi, e"


def is_boolean(value: Value) -> bool:
    """Whether the value is true or false."""
    return isinstance(value, Apply) and (
        value.function in RELATIONS or value.function in LOGIC
    )


def signed(value: float) -> Expression:
    """The number as a text would give it: a minus sign is an operator."""
    number = Number(abs(value))
    return Apply("neg", (number,)) if value < 0 else number


def derivative_letters(word: str, coordinates: Iterable[str]) -> tuple[str, ...] | None:
    """The coordinates that `dxt` differentiates by; None if it is not a derivative."""
    letters = tuple(word[1:])
    if not word.startswith("d") or not letters or word in RESERVED:
        return None
    known = set(coordinates)
    return letters if all(letter in known for letter in letters) else None


def _some(names: tuple[str, ...], limit: int = 12) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ..."
