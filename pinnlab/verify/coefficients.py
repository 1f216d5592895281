"""Coefficients that jump or are singular, and names that suggest other coordinates."""

import re
import tomllib

import numpy as np

from pinnlab.equation.calculus import expand
from pinnlab.equation.expression import (
    Apply,
    Derivative,
    Expression,
    Field,
    NormalDerivative,
    Number,
    walk,
)
from pinnlab.equation.format import format_expression
from pinnlab.equation.structure import uses_coordinates, uses_fields
from pinnlab.problem.problem import Equation, Problem
from pinnlab.sampling import unit_points
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.verify.findings import Findings
from pinnlab.verify.jumps import Jump, find_jump, has_steps


CURVED = {"r", "rho", "theta", "phi", "radius", "azimuth"}
CARTESIAN = re.compile(r"\b(lap|grad|div)\s*\(")
HALVINGS, MOST_CORNERS = 60, 6


def odd_coefficients(system: System) -> Findings:
    """Warnings about coefficients of the equations and names of coordinates."""
    problem = system.problem
    found: list[str] = []
    for equation in problem.equations:
        if equation.function is None:
            found += _jumping(problem, equation)
    for term in system.equations:
        if isinstance(term.residual, Expression):
            found += _singular(problem, term.name, term.residual)
    found += _curved(problem)
    return Findings(warnings=tuple(found))


# ------------------------------------------------------------------------ jumps


def _jumping(problem: Problem, equation: Equation) -> list[str]:
    """At most one message an equation: k*dxx(u), or dx(k*dx(u)), where k jumps."""
    for node in walk(equation.residual):
        if isinstance(node, Apply) and node.function in ("*", "/"):
            for name in _second_derivatives(node):
                if k := _jumping_factor(problem, node, name):
                    return [_outside(problem, equation.name, name, *k)]
        if isinstance(node, Derivative) and not isinstance(node.operand, Field):
            for name in dict.fromkeys(node.coordinates):
                if k := _jumping_flux(problem, node.operand, name):
                    return [_inside(equation.name, name, *k)]
    return []


def _outside(problem: Problem, equation: str, name: str, text: str, jump: Jump) -> str:
    short = text if len(text) < 20 else "k"
    dx = f"d{name}" if len(name) == 1 else "d"
    by = "" if len(name) == 1 else f", {name}"
    flux = f"{dx}({short}*{dx}(...{by}){by})"
    if sum(a.name != "t" for a in problem.axes) > 1:
        flux = f"div({short}*grad(...))"
    return (
        f"equations.{equation}: {text} jumps by {jump.size:.3g} at {jump.place} and "
        f"multiplies a second derivative: the flux is not continuous there; if it "
        f"should be, write {flux}"
    )


def _inside(equation: str, name: str, text: str, jump: Jump) -> str:
    return (
        f"equations.{equation}: {text} jumps by {jump.size:.3g} at {jump.place}: the "
        f"flux is continuous there and the derivative in {name} is not; residuals at "
        "points do not see a flux that jumps, so smooth the coefficient (tanh) or "
        "compare with another solver"
    )


def _factors(node: Expression) -> list[Expression]:
    match node:
        case Apply("*", (a, b)):
            return _factors(a) + _factors(b)
        case Apply("/", (a, b)):
            return [*_factors(a), Number(1.0) / b]
        case Apply("neg", (a,)):
            return _factors(a)
        case _:
            return [node]


def _jumping_factor(
    problem: Problem, node: Expression, name: str
) -> tuple[str, Jump] | None:
    names = tuple(a.name for a in problem.axes)
    for factor in _factors(node):
        if not has_steps(factor) or any(
            isinstance(n, Field | NormalDerivative) for n in walk(factor)
        ):
            continue
        jump = find_jump(problem, expand(factor, names), name, {})
        if jump is not None:
            return format_expression(factor)[:60], jump
    return None


def _jumping_flux(
    problem: Problem, operand: Expression, name: str
) -> tuple[str, Jump] | None:
    """A jumping factor of a first derivative by `name` inside a derivative by it."""
    for node in walk(operand):
        if isinstance(node, Apply) and node.function in ("*", "/"):
            along = any(name in _names(f) for f in _factors(node))
            if along and (found := _jumping_factor(problem, node, name)):
                return found
    return None


def _names(node: Expression) -> tuple[str, ...]:
    if isinstance(node, Derivative):
        return node.coordinates + _names(node.operand)
    return ()


def _second_derivatives(node: Expression) -> tuple[str, ...]:
    """Coordinates in which a second derivative is a summand of one of the factors."""
    found: dict[str, None] = {}
    stack = _factors(node)
    while stack:
        part = stack.pop()
        if isinstance(part, Apply) and part.function in ("+", "-", "neg"):
            stack.extend(part.arguments)
        names = _names(part)
        found |= dict.fromkeys(n for n in names if n != "t" and names.count(n) > 1)
    return tuple(found)


# --------------------------------------------------------------- singularities


def _singular(problem: Problem, name: str, residual: Expression) -> list[str]:
    """Messages for divisions by something that vanishes in the domain."""
    found: dict[str, None] = {}
    for node in walk(residual):
        below = _denominator(node)
        if below is None or uses_fields(below) or not uses_coordinates(below):
            continue
        place = _zero(problem, below)
        if place is None or _removable(problem, node, place):
            continue
        at = ", ".join(
            f"{a.name} = {v:.4g}"
            for a, v in zip(problem.axes, place, strict=True)
            if any(n == a.name for n in _coordinates(below))
        )
        text = format_expression(below)[:60]
        found[
            f"equations.{name}: a coefficient is singular at {at}: it is divided by "
            f"{text}, which is 0 there; multiply the equation by it, or leave that "
            "place out of the domain"
        ] = None
    return list(found)


def _denominator(node: Expression) -> Expression | None:
    match node:
        case Apply("/", (_, below)):
            return below
        case Apply("^", (base, Number(float() | int() as exponent))) if exponent < 0:
            return base
        case _:
            return None


def _coordinates(node: Expression) -> set[str]:
    return {n.name for n in walk(node) if hasattr(n, "name")}  # pyright: ignore


def _zero(problem: Problem, node: Expression) -> np.ndarray | None:
    """A point of the closed box where an expression vanishes; None if not found."""
    points = _grid(problem)
    values = array_values(problem, (node,), points)[:, 0]
    size = np.abs(values)
    largest = np.max(size, initial=0.0, where=np.isfinite(size))
    best = int(np.argmin(np.nan_to_num(size, nan=np.inf)))
    if size[best] <= 1e-12 * largest:
        return points[best]
    if np.nanmin(values) < 0 < np.nanmax(values):
        signs = np.nanargmin(values), np.nanargmax(values)
        middle = _root(problem, node, points[list(signs)])
        if abs(array_values(problem, (node,), middle[None])[0, 0]) < 1e-9 * largest:
            return middle
    return None


def _root(problem: Problem, node: Expression, ends: np.ndarray) -> np.ndarray:
    """A point between two of opposite signs where the sign changes, by bisection."""
    middle = ends.mean(axis=0)
    for _ in range(HALVINGS):
        above = array_values(problem, (node,), middle[None])[0, 0] > 0
        ends[int(above)] = middle
        middle = ends.mean(axis=0)
    return middle


def _grid(problem: Problem) -> np.ndarray:
    """Corners, centers of faces and of the box, and random points."""
    dim = len(problem.axes)
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    unit = unit_points("sobol", 512, dim, seed=31)
    if dim <= MOST_CORNERS:
        special = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * dim), axis=-1)
        unit = np.concatenate([special.reshape(-1, dim), unit])
    points = lower + (upper - lower) * unit
    return points if problem.shape is None else points[problem.shape.contains(points)]


def _removable(problem: Problem, node: Expression, place: np.ndarray) -> bool:
    """Whether a quotient without fields stays bounded: sin(x)/x."""
    if uses_fields(node):
        return False
    middle = np.array([(a.lower + a.upper) / 2 for a in problem.axes])
    target = np.where(np.abs(place - middle) > 0, middle, middle * 0.9 + 0.1)
    near = place + np.array([[1e-3], [1e-5]]) * (target - place)
    far, close = np.abs(array_values(problem, (node,), near)[:, 0])
    return bool(close < 3 * far + 1e-300)


# ------------------------------------------------------------------------ names


def _curved(problem: Problem) -> list[str]:
    names = [a.name for a in problem.axes if a.name.lower() in CURVED]
    if not names:
        return []
    texts = [e.text for e in problem.equations]
    texts += [e.text for c in problem.conditions for e in c.equations]
    if problem.source:
        definitions = tomllib.loads(problem.source).get("definitions", {})
        texts += [str(v) for v in definitions.values()]
    for text in texts:
        if found := CARTESIAN.search(text):
            return [
                f"'{found[1]}' is Cartesian: it takes {', '.join(names)} for lengths "
                "along straight axes; in polar, cylindrical or spherical coordinates "
                "write the terms out, such as drr(u) + dr(u)/r"
            ]
    return []
