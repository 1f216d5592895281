"""Preflight: what can be known to be wrong before any training."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import equinox as eqx
import jax

from pinnlab.assembly import network_of, sizes_of
from pinnlab.equation.format import pretty
from pinnlab.linear import gauss_newton
from pinnlab.linear import route as linear
from pinnlab.memory import device_memory
from pinnlab.newton import route as newton
from pinnlab.pieces import pieces_for
from pinnlab.problem.problem import Problem
from pinnlab.sampling import sample
from pinnlab.settings import Settings, read_settings
from pinnlab.strategy import Plan, plan, tries
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import Term
from pinnlab.verify.balance import unbalanced
from pinnlab.verify.coefficients import odd_coefficients
from pinnlab.verify.corners import jumping_data
from pinnlab.verify.data import not_finite
from pinnlab.verify.declared import not_periodic, wrong_exact
from pinnlab.verify.degenerate import degenerate_equations
from pinnlab.verify.faces import face_counts
from pinnlab.verify.findings import Findings
from pinnlab.verify.reference_file import bad_reference_file
from pinnlab.verify.repeated import repeated_conditions
from pinnlab.verify.signs import wrong_signs
from pinnlab.verify.wellposed import undetermined


EXAMINERS: tuple[Callable[[System], Findings], ...] = (
    degenerate_equations,
    face_counts,
    repeated_conditions,
    undetermined,
    unbalanced,
    wrong_signs,
    jumping_data,
    not_periodic,
    odd_coefficients,
    wrong_exact,
    bad_reference_file,
)


BEFORE = 250.0
"""Megabytes of a process before it trains."""
CANDIDATE = 16
"""Numbers for each candidate of new points: where it is, its residuals, sorting."""


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
    settings = read_settings(problem.solver, problem.file)
    with jax.enable_x64(True):
        system = build_system(problem, settings.enforce)
        chosen = plan(system, settings, target)
        findings = examine(system)
        errors = list(findings.errors)
        full = chosen.settings
        count = _parameter_count(system, full)
        memory = _megabytes(system, full, count)
        available = (device_memory() or math.inf) / 1e6
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
            warnings=findings.warnings,
            notes=_notes(system),
            strategy=_strategy(system, settings, chosen),
            parameters=count,
            memory_mb=round(memory, 1),
        )


def memory_needed(problem: Problem, target: float) -> tuple[float, float]:
    """Bytes of a process before it trains, and what one training adds, roughly."""
    settings = read_settings(problem.solver, problem.file)
    with jax.enable_x64(True):
        system = build_system(problem, settings.enforce)
        full = plan(system, settings, target).settings
        needed = _megabytes(system, full, _parameter_count(system, full))
    return 1e6 * BEFORE, 1e6 * (needed - BEFORE)


def examine(system: System) -> Findings:
    """Everything that is wrong with, or suspicious about, the mathematics."""
    found = Findings(errors=tuple(not_finite(system)))
    for examiner in EXAMINERS:
        found += examiner(system)
    return found


def _strategy(system: System, settings: Settings, chosen: Plan) -> str:
    """The ways that will be tried, in their order."""
    ways = []
    if tries(settings, "linear") and linear.suits(system):
        ways.append("random sine features by least squares (conditions as rows)")
    suits = newton.suits if settings.strategy == "separable" else newton.is_due
    if tries(settings, "separable") and suits(system):
        ways.append("separable features by Gauss-Newton (conditions as rows)")
    if settings.strategy == "newton" or (
        tries(settings, "newton") and gauss_newton.is_due(system)
    ):
        ways.append("random sine features by Newton's method (conditions as rows)")
    if settings.strategy in ("auto", "nonlinear"):
        ways.append(f"a network ({chosen.reason})")
    return "; if that is not enough, ".join(ways)


def _readable(equation) -> str:
    if equation.function is not None:
        return f"{equation.text} (a Python function)"
    return f"{pretty(equation.left)} = {pretty(equation.right)}"


def _parameter_count(system: System, full: Settings) -> int:
    scales = (1.0,) * len(system.fields)
    make = lambda key: network_of(system, full, scales, key)
    # Shapes alone: the network may be larger than the memory.
    shapes = eqx.filter_eval_shape(make, jax.random.key(0))
    return sum(math.prod(a.shape) for a in jax.tree.leaves(shapes) if _is_shape(a))


def _is_shape(leaf: object) -> TypeGuard[jax.ShapeDtypeStruct]:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _megabytes(system: System, full: Settings, count: int) -> float:
    """The memory of training, roughly.

    Matrices of the optimizer, jets at a piece of the points (with what their gradients
    need, or without at more points), some numbers for each candidate of new points.
    """
    rows = full.points * len(system.equations)
    matrices = {
        "ssbroyden": 4 * count**2,
        "levenberg_marquardt": 3 * count**2 + 3 * rows * count,
        "sketched_gauss_newton": 2 * count**2,
        "engd_w": 4 * rows**2 + rows * count,
        "spring": 4 * rows**2 + rows * count,
    }.get(full.optimizer, 0)
    candidates = full.pool * full.points
    sizes = sizes_of(system, full, count)
    pieces = pieces_for(sizes, device_memory())
    work = sizes.gradient * min(full.points, pieces.gradient)
    work += sizes.residual * min(candidates, pieces.residuals)
    return BEFORE + (sizes.bytes * (matrices + CANDIDATE * candidates) + work) / 1e6


def _condition_note(system: System, term: Term, points: int) -> ConditionNote:
    count = points if term.free is None or term.free else 1
    how = "exact" if term.enforced == "exact" else f"penalty ({term.why})"
    sample(system.problem, term.place, 8, seed=0)
    return ConditionNote(term.name, term.place.text, term.text, how, count)


def _notes(system: System) -> tuple[str, ...]:
    notes: list[str] = []
    choice = system.problem.reference
    if not system.problem.exact and choice.method == "none" and not choice.file:
        notes.append("no [exact] solution and no reference: the error is estimated")
    if system.is_linear:
        notes.append("the problem is linear in its fields")
    return tuple(notes)
