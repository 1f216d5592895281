"""The table [geometry]: the text of a shape, parsed and never executed.

"rectangle(0, 0, 2.2, 0.41) - disk(0.2, 0.2, 0.05)": `+` unites, `-` takes away, `and`
keeps what is in both and binds tighter.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinnlab.equation.scope import Scope
from pinnlab.equation.tokens import Token, tokenize
from pinnlab.errors import ProblemError, located, nearest
from pinnlab.problem.constants import constant
from pinnlab.problem.curves import Curve
from pinnlab.problem.problem import Axis
from pinnlab.problem.shape import SLACK, Shape
from pinnlab.problem.solids import Combined, Disk, Polygon, Solid, extent
from pinnlab.problem.tables import Table, only_keys, shown, subtable


WRITTEN = {
    "rectangle": "rectangle(x1, y1, x2, y2)",
    "disk": "disk(x, y, radius)",
    "polygon": "polygon(x1, y1, x2, y2, x3, y3, ...)",
}
JOINED = (
    "solids are joined by +, -, and; a place in a condition may be restricted: "
    'on = "hole and x < 0"'
)
MOST_SOLIDS, MOST_CORNERS, DEEPEST = 100, 200, 20
THINNEST = 1e-3
"""The least share of the box around it that a shape fills."""
Read = Callable[[str], float]
"""The value of a constant text."""


def read_geometry(
    table: Table,
    axes: Sequence[Axis],
    periodic: Sequence[str],
    parameters: dict[str, float],
) -> Shape | None:
    """The shape, None where there is no table. Raises `ProblemError`."""
    if not table:
        return None
    with located(key="geometry"):
        if "mesh" in table:
            raise ProblemError("meshes are not supported yet: give a shape")
        only_keys(table, ("shape", "parts"))
        text = table.get("shape")
        if not isinstance(text, str):
            raise ProblemError(
                f'expected shape = "...", found {shown(text)}',
                hint=f"a shape is {' or '.join(WRITTEN.values())}, joined by +, -, and",
            )
        names = [a.name for a in axes if a.name != "t"]
        if len(names) != 2:
            raise ProblemError(
                "a shape needs two coordinates in space, here "
                f"{'is' if len(names) == 1 else 'are'} {len(names)}: {', '.join(names)}"
            )
        for name in names:
            if name in periodic:
                raise ProblemError(f"'{name}' is periodic: a shape has an edge there")
    columns = tuple(i for i, a in enumerate(axes) if a.name != "t")
    read = lambda written: constant(
        written, Scope(parameters=tuple(parameters)), parameters
    )
    with located(key="geometry.shape", text=text):
        solid = _Parser(text, read).solid()
        curves = solid.curves
        if not curves:
            raise ProblemError("the shape is empty")
        _check_box(solid, [axes[i] for i in columns])
        shape = Shape(text, (columns[0], columns[1]), solid, curves)
        if not shape.share > THINNEST:
            raise ProblemError(
                f"the shape fills {max(0.0, shape.share):.2g} of the box around it: "
                f"too thin for points that are drawn (at least {THINNEST:g})"
            )
    parts = subtable(table, "parts")
    found = tuple((name, _part(name, parts[name], shape, read)) for name in parts)
    return replace(shape, parts=found)


def around(shape: Shape, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes, those of the shape from end to end of it."""
    found = list(axes)
    for i, bounds in zip(shape.columns, shape.box.T, strict=True):
        old, slack = axes[i], SLACK * (axes[i].upper - axes[i].lower)
        lower, upper = (
            float(there if abs(there - here) > slack else here)
            for there, here in zip(bounds, (old.lower, old.upper), strict=True)
        )
        found[i] = Axis(old.name, lower, upper)
    return tuple(found)


def _check_box(solid: Solid, axes: Sequence[Axis]) -> None:
    for axis, low, high in zip(axes, *extent(solid), strict=True):
        slack = SLACK * (axis.upper - axis.lower)
        if low < axis.lower - slack or high > axis.upper + slack:
            raise ProblemError(
                f"the shape reaches from {axis.name} = {low:.6g} to {high:.6g}, "
                f"outside of [{axis.lower:g}, {axis.upper:g}]",
                hint=f"coordinates.{axis.name} is the range that holds the shape",
            )


def _part(name: str, text: object, shape: Shape, read: Read) -> tuple[Curve, ...] | str:
    """The pieces of the edge that lie on another solid's; or the text of a place."""
    with located(key=f"geometry.parts.{name}"):
        if not isinstance(text, str):
            raise ProblemError(
                f"expected a text, found {shown(text)}",
                hint='a part is on the edge of a solid, "disk(0, 0, 1)", or a place',
            )
        with located(text=text):
            if not any(t.text in WRITTEN for t in tokenize(text)):
                return text
            solid = _Parser(text, read).solid()
            found = tuple(c for c in shape.curves if _on_edge(c, solid, shape.size))
            if not found:
                raise ProblemError(
                    "no piece of the shape's edge lies on the edge of this",
                    hint="the pieces: " + "; ".join(c.text for c in shape.curves[:8]),
                )
            return found


def _on_edge(curve: Curve, solid: Solid, size: float) -> bool:
    points = curve.at(np.linspace(0.02, 0.98, 25))
    away = np.min([c.distance(points) for c in solid.curves], axis=0)
    return bool(np.max(away) <= 1e-8 * size)


@dataclass
class _Parser:
    """One text of a shape, read from left to right."""

    text: str
    read: Read
    place: int = 0
    solids: int = 0

    def __post_init__(self):
        self.tokens = tokenize(self.text)

    def solid(self) -> Solid:
        """The whole text."""
        found = self._sum(0)
        if self._here.kind != "end":
            raise self._error(f"unexpected '{self._here.text}'", JOINED)
        return found

    @property
    def _here(self) -> Token:
        return self.tokens[self.place]

    def _sum(self, depth: int) -> Solid:
        found = self._product(depth)
        while self._here.is_symbol("+", "-"):
            operation = "+" if self._next().text == "+" else "-"
            found = Combined(operation, found, self._product(depth))
        return found

    def _product(self, depth: int) -> Solid:
        found = self._one(depth)
        while self._here.is_symbol("and"):
            self._next()
            found = Combined("and", found, self._one(depth))
        return found

    def _one(self, depth: int) -> Solid:
        if depth > DEEPEST:
            raise self._error(f"parentheses are nested more than {DEEPEST} deep")
        if self._here.is_symbol("("):
            self._next()
            found = self._sum(depth + 1)
            if not self._here.is_symbol(")"):
                raise self._error("expected ')'")
            self._next()
            return found
        return self._primitive()

    def _primitive(self) -> Solid:
        start = self._here
        if start.kind != "name" or start.text not in WRITTEN:
            what = f"'{start.text}'" if start.text else "the end"
            raise self._error(
                f"expected a solid, found {what} ({', '.join(WRITTEN.values())})",
                nearest(start.text, tuple(WRITTEN)) or JOINED,
            )
        self.solids += 1
        if self.solids > MOST_SOLIDS:
            raise self._error(f"more than {MOST_SOLIDS} solids")
        self._next()
        numbers = self._arguments()
        try:
            return _made(start.text, numbers)
        except ValueError as error:
            raise ProblemError(
                f"{error}: {WRITTEN[start.text]}", text=self.text, column=start.column
            ) from None

    def _arguments(self) -> list[float]:
        if not self._here.is_symbol("("):
            raise self._error("expected '('")
        self._next()
        found: list[float] = []
        start, depth = self._here.column, 0
        while True:
            token = self._next()
            if token.kind == "end":
                raise self._error("the parenthesis is not closed")
            if depth == 0 and token.is_symbol(",", ")"):
                # Blanks in front keep the columns of errors right.
                written = " " * start + self.text[start : token.column]
                found.append(self._number(written, token))
                start = token.column + 1
                if token.text == ")":
                    return found
            depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")

    def _number(self, written: str, end: Token) -> float:
        if not written.strip():
            message = f"expected a number, found '{end.text}'"
            raise ProblemError(message, text=self.text, column=end.column)
        try:
            return self.read(written)
        except ProblemError as error:
            error.text = self.text
            if not error.column:
                error.column = len(written) - len(written.lstrip())
            raise

    def _next(self) -> Token:
        token = self._here
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def _error(self, message: str, hint: str | None = None) -> ProblemError:
        column = self._here.column
        return ProblemError(message, text=self.text, column=column, hint=hint)


def _made(name: str, numbers: list[float]) -> Solid:
    if name == "disk":
        if len(numbers) != 3:
            raise ValueError(f"a disk has 3 numbers, found {len(numbers)}")
        if not numbers[2] > 0:
            raise ValueError(f"the radius {numbers[2]:g} is not positive")
        return Disk((numbers[0], numbers[1]), numbers[2])
    if name == "rectangle":
        if len(numbers) != 4:
            raise ValueError(f"a rectangle has 4 numbers, found {len(numbers)}")
        a, b, c, d = numbers
        if not (a < c and b < d):
            raise ValueError("the first corner is not below and left of the second")
        return Polygon(((a, b), (c, b), (c, d), (a, d)))
    if len(numbers) % 2 or len(numbers) < 6:
        raise ValueError(f"a polygon has pairs of numbers, found {len(numbers)}")
    if len(numbers) > 2 * MOST_CORNERS:
        raise ValueError(
            f"a polygon has at most {MOST_CORNERS} corners, found {len(numbers) // 2}"
        )
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    return _polygon(corners)


def _polygon(corners: list[tuple[float, float]]) -> Polygon:
    """Counterclockwise. Raises `ValueError` for a line that meets itself."""
    ends = [*corners[1:], corners[0]]
    edges = list(zip(corners, ends, strict=True))
    if len(set(corners)) < len(corners):
        raise ValueError("a corner is given twice")
    for (i, one), (j, other) in itertools.combinations(enumerate(edges), 2):
        if j - i in (1, len(edges) - 1):
            continue
        if _meet(one, other):
            raise ValueError("the line through the corners meets itself")
    area = sum(a * d - c * b for (a, b), (c, d) in edges) / 2
    if abs(area) <= 1e-12 * max(abs(x) for c in corners for x in c) ** 2:
        raise ValueError("the corners lie on a line")
    return Polygon(tuple(corners if area > 0 else corners[::-1]))


def _meet(one: tuple, other: tuple) -> bool:
    """Whether two segments have a point in common."""

    def side(a, b, c) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    (a, b), (c, d) = one, other
    first = side(a, b, c) * side(a, b, d)
    second = side(c, d, a) * side(c, d, b)
    return first <= 0 and second <= 0 and not first == second == 0
