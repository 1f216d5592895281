"""The terms of a problem: real residuals, each with the place where it is zero."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pinnlab.equation.calculus import expand
from pinnlab.equation.complex_parts import split
from pinnlab.equation.expression import (
    ZERO,
    Coordinate,
    Expression,
    Field,
    Number,
    walk,
)
from pinnlab.equation.structure import degree
from pinnlab.errors import ProblemError
from pinnlab.problem.problem import Condition, Equation, Place, Problem
from pinnlab.sampling import is_empty


@dataclass(frozen=True)
class Term:
    """One real residual and where it vanishes.

    - `name`: the equation's or condition's name, with `.real`, `.imag` or an index.
    - `kind`: "equation" or "condition".
    - `residual`: expanded, in the fields; a callable `(u, point)` where the user gave
        one.
    - `enforced`: "exact" or "penalty", and `why` when a penalty.
    """

    name: str
    kind: str
    text: str
    place: Place
    residual: Expression | Callable
    enforced: str = "penalty"
    why: str = ""

    @property
    def is_affine(self) -> bool:
        """Whether the residual is known and of first degree in the fields."""
        return isinstance(self.residual, Expression) and degree(self.residual) <= 1

    @property
    def free(self) -> frozenset[str] | None:
        """The coordinates that the residual varies over; None if not known."""
        if not isinstance(self.residual, Expression):
            return None
        fixed = {name for name, _ in self.place.fixed}
        names = {n.name for n in walk(self.residual) if isinstance(n, Coordinate)}
        return frozenset(names - fixed)


EVERYWHERE = Place("the domain", (), None)


def complex_fields(problem: Problem) -> frozenset[str]:
    """The names of the fields declared complex."""
    return frozenset(f.name for f in problem.fields if f.complex)


def real_fields(problem: Problem) -> tuple[str, ...]:
    """The fields as solved: a complex `h` is `h_real` and `h_imag`."""
    names: list[str] = []
    for field in problem.fields:
        if field.complex:
            names += [f"{field.name}_real", f"{field.name}_imag"]
        else:
            names.append(field.name)
    return tuple(names)


def coordinates(problem: Problem) -> tuple[str, ...]:
    """The coordinates' names, in order."""
    return tuple(a.name for a in problem.axes)


def real_parts(problem: Problem, expression: Expression) -> tuple[Expression, ...]:
    """The written expression as one or two (real, imaginary) written expressions."""
    real, imaginary = split(expression, complex_fields(problem))
    return (real,) if imaginary == ZERO else (real, imaginary)


def equation_terms(problem: Problem) -> tuple[Term, ...]:
    """The equations' residuals, on the whole domain."""
    found: list[Term] = []
    for equation in problem.equations:
        found += _terms(problem, equation.name, "equation", equation, EVERYWHERE)
    return tuple(found)


def condition_terms(problem: Problem) -> tuple[Term, ...]:
    """The conditions' residuals, one for each place and part."""
    found: list[Term] = []
    for condition in problem.conditions:
        several = len(condition.equations) > 1
        for i, equation in enumerate(condition.equations):
            name = f"{condition.name}.{i + 1}" if several else condition.name
            for place in _with_points(problem, condition):
                found += _terms(problem, name, "condition", equation, place)
    return tuple(found)


def _with_points(problem: Problem, condition: Condition) -> tuple[Place, ...]:
    """Without the faces that "boundary and y < 0.5" leaves nothing of.

    Raises `ProblemError` for a place that is not in the problem's shape.
    """
    places, shape = condition.on, problem.shape
    kept = tuple(p for p in places if not (p.is_piece and is_empty(problem, p)))
    for place in kept or places:
        if shape is not None and is_empty(problem, place):
            raise ProblemError(
                f"the place '{place.text}' holds no points of the shape",
                file=problem.file,
                key=f"conditions.{condition.name}.on",
                hint="the edge: " + "; ".join(c.text for c in shape.curves[:8]),
            )
    return kept or places


def _terms(
    problem: Problem, name: str, kind: str, equation: Equation, place: Place
) -> list[Term]:
    term = Term(name, kind, equation.text, place, ZERO)
    if equation.function is not None:
        return [replace(term, residual=equation.function)]
    names = coordinates(problem)
    normal = outward_normal(problem, place)
    parts = real_parts(problem, equation.residual)
    suffixes = ("",) if len(parts) == 1 else (".real", ".imag")
    try:
        expanded = [expand(part, names, normal) for part in parts]
    except ValueError as error:
        key = f"{kind}s.{name}"
        message = str(error)
        raise ProblemError(
            message, file=problem.file, key=key, text=equation.text
        ) from error
    return [
        replace(term, name=name + suffix, residual=part)
        for part, suffix in zip(expanded, suffixes, strict=True)
    ]


def outward_normal(problem: Problem, place: Place) -> dict[str, Expression] | None:
    """The components of the outward normal where the place lies on an edge."""
    if place.curve is not None and problem.shape is not None:
        names = [problem.axes[i].name for i in problem.shape.columns]
        components = place.curve.normal(*(Coordinate(n) for n in names))
        return dict(zip(names, components, strict=True))
    face = place.face(problem)
    return None if face is None else {face[0]: Number(1 if face[1] else -1)}


def exact_solution(problem: Problem) -> dict[str, Expression]:
    """The declared exact solution by real field, expanded."""
    names = coordinates(problem)
    found: dict[str, Expression] = {}
    for field in problem.fields:
        if field.name not in problem.exact:
            continue
        real, imaginary = split(problem.exact[field.name], complex_fields(problem))
        if field.complex:
            found[f"{field.name}_real"] = expand(real, names)
            found[f"{field.name}_imag"] = expand(imaginary, names)
        else:
            found[field.name] = expand(real, names)
    return found


def outputs(problem: Problem) -> dict[str, Expression]:
    """The declared outputs, expanded; a complex one as `_real` and `_imag`."""
    names = coordinates(problem)
    found: dict[str, Expression] = {}
    for name, written in problem.outputs.items():
        parts = real_parts(problem, written)
        keys = (name,) if len(parts) == 1 else (f"{name}_real", f"{name}_imag")
        for key, part in zip(keys, parts, strict=True):
            found[key] = expand(part, names)
    return found


def uses_field(problem: Problem, written: Expression) -> bool:
    """Whether a written expression mentions a field."""
    return any(isinstance(n, Field) for n in walk(written))
