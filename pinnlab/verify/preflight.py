"""Preflight: what can be known to be wrong before any training."""

import math
import os
from dataclasses import dataclass

import jax
import numpy as np

from pinnlab.equation.calculus import substitute
from pinnlab.equation.expression import (
    ONE,
    Coordinate,
    Expression,
    Number,
    Partial,
    terms,
)
from pinnlab.equation.format import pretty
from pinnlab.equation.structure import partials
from pinnlab.problem.problem import Problem
from pinnlab.sampling import sample
from pinnlab.settings import read_settings
from pinnlab.strategy import plan
from pinnlab.system.ansatz import FieldAnsatz, impose
from pinnlab.system.exact import static_values
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import EVERYWHERE, Term, exact_solution
from pinnlab.verify.data import not_finite
from pinnlab.verify.faces import face_counts


POINTS = 512
EXACT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ConditionNote:
    """One condition at one place: how it is enforced and on how many points."""

    name: str
    place: str
    text: str
    enforced: str
    points: int


@dataclass(frozen=True)
class Preflight:
    """The findings. With any of `errors` a problem is not solved.

    - `equations`: name and readable mathematics.
    - `parameters`, `memory_mb`: of the network and the training, estimated.
    """

    equations: tuple[tuple[str, str], ...]
    conditions: tuple[ConditionNote, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    strategy: str
    parameters: int
    memory_mb: float


def check(problem: Problem, target: float = 1e-3) -> Preflight:
    """Examine a problem without solving it.

    Raises `ProblemError` for what makes no sense at all (an empty place, an unknown
    setting).
    """
    settings = read_settings(problem.solver, f"{problem.name}.toml")
    with jax.enable_x64(True):
        system = build_system(problem, settings.enforce)
        chosen = plan(system, settings, target)
        errors, warnings = face_counts(system)
        errors = [*errors, *not_finite(system), *_exact_findings(system)]
        warnings = [*warnings, *_periodic_findings(system)]
        full = chosen.settings
        count = _parameter_count(system, full.network.width, full.network.depth)
        dense = {"ssbroyden": 4 * count**2, "levenberg_marquardt": 3 * count**2}
        rows = full.points * len(system.equations)
        matrix = dense.get(full.optimizer, 0)
        if full.optimizer == "levenberg_marquardt":
            matrix += 3 * rows * count
        channels = _channels(system)
        work = full.points * full.network.width * full.network.depth * channels * 6
        memory = 250 + 8 * (matrix + work) / 1e6
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
        if memory > 0.9 * available:
            errors.append(
                f"about {memory:.3g} MB of memory are needed, this machine has "
                f"{available:.3g} MB: lower solver.network.width or solver.points"
            )
        return Preflight(
            equations=tuple((e.name, _readable(e)) for e in problem.equations),
            conditions=tuple(
                _condition_note(system, t, full.condition_points)
                for t in system.conditions
            ),
            errors=tuple(errors),
            warnings=tuple(warnings),
            notes=_notes(system),
            strategy=chosen.reason,
            parameters=count,
            memory_mb=round(memory, 1),
        )


def _readable(equation) -> str:
    if equation.function is not None:
        return f"{equation.text} (a Python function)"
    return f"{pretty(equation.left)} = {pretty(equation.right)}"


def _parameter_count(system: System, width: int, depth: int) -> int:
    inputs, outputs = len(system.coordinates), len(system.fields)
    return (
        (inputs + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * outputs
    )


def _channels(system: System) -> int:
    """The number of partial derivatives that the network propagates."""
    closed: set[tuple[int, ...]] = set()
    for term in system.equations:
        if isinstance(term.residual, Expression):
            for p in partials(term.residual):
                shape = tuple(n + 1 for n in p.orders)
                closed.update(tuple(int(i) for i in k) for k in np.ndindex(shape))
    return max(1, len(closed))


def _condition_note(system: System, term: Term, points: int) -> ConditionNote:
    count = points if term.free is None or term.free else 1
    how = "exact" if term.enforced == "exact" else f"penalty ({term.why})"
    sample(system.problem, term.place, 8, seed=0)
    return ConditionNote(term.name, term.place.text, term.text, how, count)


def _notes(system: System) -> tuple[str, ...]:
    notes: list[str] = []
    if not system.problem.exact:
        notes.append("no [exact] solution: the verdict can be 'unverified' at best")
    if system.is_linear:
        notes.append("the problem is linear in its fields")
    return tuple(notes)


def _exact_findings(system: System) -> list[str]:
    """Where a declared exact solution misses the equations or conditions."""
    exact = exact_solution(system.problem)
    if set(exact) != set(system.fields):
        missing = sorted(set(system.fields) - set(exact))
        return [f"exact: no expression for '{m}'" for m in missing] if exact else []
    found: list[str] = []
    inside = sample(system.problem, EVERYWHERE, POINTS, seed=18)
    values = static_values(system.problem, tuple(exact.values()), inside)
    for name, column in zip(exact, values.T, strict=True):
        if not np.isfinite(column).any():
            found.append(f"exact.{name}: the declared solution is not finite")
    if found:
        return found
    for term in (*system.equations, *system.conditions):
        worst = _miss(system, term, exact)
        if worst > EXACT_TOLERANCE:
            kind = "equation" if term.kind == "equation" else "condition"
            where = "" if term.kind == "equation" else f" on {term.place.text}"
            found.append(
                f"exact: the declared solution does not satisfy {kind} "
                f"'{term.name}'{where}: relative residual {worst:.1e}"
            )
    return found


def _miss(system: System, term: Term, exact: dict[str, Expression]) -> float:
    """The largest residual of the exact solution, relative to the summands."""
    if not isinstance(term.residual, Expression):
        return 0.0
    pieces = (term.residual, *terms(term.residual))
    imposed = tuple(_with_exact(p, exact, system.coordinates) for p in pieces)
    points = sample(system.problem, term.place, POINTS, seed=17)
    if term.kind == "equation":
        points = _off_the_edges(system.problem, points)
    # The size of a condition such as u = 0 is the size of u in the domain.
    inside = _off_the_edges(
        system.problem, sample(system.problem, EVERYWHERE, POINTS, seed=18)
    )
    values, around = (
        _finite(static_values(system.problem, imposed, p)) for p in (points, inside)
    )
    if not len(values):
        return 0.0
    size = max(_largest_rms(values[:, 1:]), _largest_rms(around[:, 1:]))
    if term.kind == "condition":
        fields = static_values(system.problem, tuple(exact.values()), inside)
        size = max(size, 1e-2 * _largest_rms(_finite(fields)))
    worst = float(np.sqrt(np.mean(values[:, 0] ** 2)))
    return worst / size if size > 0 else (math.inf if worst > 1e-9 else 0.0)


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values).all(axis=1)]


def _largest_rms(columns: np.ndarray) -> float:
    if not len(columns):
        return 0.0
    return float(np.max(np.sqrt(np.mean(columns**2, axis=0))))


def _off_the_edges(problem: Problem, points: np.ndarray) -> np.ndarray:
    """Points drawn a little inwards: formulas may be singular at t = 0 or corners."""
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    middle = (lower + upper) / 2
    return middle + 0.98 * (points - middle)


def _with_exact(
    node: Expression, exact: dict[str, Expression], names: tuple[str, ...]
) -> Expression:
    """The expression with the exact solution in the fields' place."""
    point = tuple(Coordinate(n) for n in names)
    one = tuple(ONE for _ in names)
    lifts = {
        f: FieldAnsatz(f, e, one, Partial(f, (0,) * len(names), point))
        for f, e in exact.items()
    }
    return impose(node, lifts, names, network=False)


def _periodic_findings(system: System) -> list[str]:
    """Lifts that are not periodic where the problem is."""
    problem, found = system.problem, []
    for axis in problem.axes:
        if axis.name not in problem.periodic:
            continue
        for field in system.fields:
            lift = system.ansatz[field].lift
            ends = tuple(
                substitute(lift, {axis.name: Number(v)})
                for v in (axis.lower, axis.upper)
            )
            points = sample(problem, system.equations[0].place, 64, seed=2)
            values = static_values(problem, ends, points)
            gap = float(np.max(np.abs(values[:, 0] - values[:, 1]), initial=0.0))
            if gap > 1e-8 * (1e-300 + float(np.max(np.abs(values)))):
                found.append(
                    f"the data of '{field}' are not periodic in {axis.name}: they "
                    f"differ by {gap:.2e} between the ends"
                )
    return found
