"""One least-squares solve: all terms' rows at once, rank-revealing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from pinnlab.linear.features import Features
from pinnlab.linear.forms import LinearForm, linear_form
from pinnlab.problem.problem import Problem
from pinnlab.sampling import membership, unit_points
from pinnlab.system.system import System
from pinnlab.system.terms import Term


RCOND = 1e-13
EQUATION_SHARE = 0.6
SMALL = 1e-2


@dataclass(frozen=True)
class Solved:
    """Coefficients [fields * N] of the features, and how good they are.

    - `heldout`: of every block, the RMS residual on fresh points relative to the RMS
      of its largest summand.
    - `rank`: the numerical rank.
    """

    features: Features
    coefficients: np.ndarray
    heldout: np.ndarray
    rank: int

    @property
    def worst(self) -> float:
        """The worst block's held-out residual."""
        return float(np.max(self.heldout))


@dataclass(frozen=True)
class Sheet:
    """The forms of all terms at one set of points.

    `inside` has the same forms at `points` of the whole domain: the size of a condition
    such as u = 0 is the size of u there.
    """

    forms: tuple[LinearForm, ...]
    inside: tuple[LinearForm, ...]
    points: np.ndarray


Form = Callable[[System, Term, np.ndarray], LinearForm]
"""Gives a term at [n, dim] points as a linear form."""


def sheet(
    system: System,
    rows: int,
    seed: int,
    clustered: bool = True,
    form_of: Form = linear_form,
) -> Sheet:
    """Forms of every equation and condition at about `rows` points altogether.

    Points are low-discrepancy; `clustered` ones are denser towards the faces.
    """
    equations, conditions = system.equations, system.conditions
    share = EQUATION_SHARE if conditions else 1.0
    inside = int(rows * share / len(equations))
    around = int(rows * (1 - share) / max(1, len(conditions)))
    forms = [
        form_of(system, t, _points(system.problem, t, n, seed, clustered))
        for terms, n in ((equations, inside), (conditions, around))
        for t in terms
    ]
    everywhere = _points(system.problem, equations[0], 128, seed + 1, False)
    inside_forms = [form_of(system, t, everywhere) for t in conditions]
    inside = (*forms[: len(equations)], *inside_forms)
    return Sheet(tuple(forms), inside, everywhere)


def _points(
    problem: Problem, term: Term, count: int, seed: int, clustered: bool
) -> np.ndarray:
    if term.free is not None and not term.free:
        count = 1
    count = max(count, 1)
    inside = membership(problem, term.place)
    unit = unit_points("sobol", max(4 * count, 8), len(problem.axes), seed)
    if clustered:
        unit = (1 - np.cos(np.pi * unit)) / 2
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    points = lower + (upper - lower) * unit
    for name, value in term.place.fixed:
        points[:, [a.name for a in problem.axes].index(name)] = value
    return points[inside(points)][:count]


def solve_features(
    system: System, features: Features, train: Sheet, test: Sheet
) -> Solved:
    """The coefficients that minimize all rows, each block scaled to size one."""
    blocks, right = [], []
    for form in train.forms:
        rows, size = features.matrix(form, system.fields)
        scale = 1 / ((size or 1.0) * np.sqrt(len(form.rest)))
        blocks.append(rows * scale)
        right.append(-form.rest * scale)
    matrix = np.concatenate(blocks)
    vector = np.concatenate(right)
    # The triangle of [A | b] holds all that least squares needs, at half the cost.
    both = np.column_stack([matrix, vector])
    if both.shape[0] > both.shape[1]:
        both = np.asarray(np.linalg.qr(both, mode="r"))
    solution = scipy.linalg.lstsq(
        both[:, :-1],
        both[:, -1],
        cond=RCOND,
        lapack_driver="gelsy",
        check_finite=False,
    )
    assert solution is not None
    found, _, rank, _ = solution
    return Solved(features, found, _heldout(system, features, found, test), int(rank))


def _heldout(
    system: System, features: Features, coefficients: np.ndarray, test: Sheet
) -> np.ndarray:
    # A condition such as a mean of zero has no size of its own.
    waves, _ = features.waves(test.points)
    values = waves @ coefficients.reshape(len(system.fields), -1).T
    least = SMALL * float(np.sqrt(np.mean(values**2, axis=0)).max())
    found = []
    for i, (form, inside) in enumerate(zip(test.forms, test.inside, strict=True)):
        rows, _ = features.matrix(form, system.fields)
        residual = rows @ coefficients + form.rest
        size = _largest(system, features, coefficients, inside)
        if i >= len(system.equations):
            size = max(size, least)
        found.append(float(np.sqrt(np.mean(residual**2))) / (size or 1.0))
    return np.array(found)


def _largest(
    system: System, features: Features, coefficients: np.ndarray, form: LinearForm
) -> float:
    """The RMS of the form's largest summand."""
    sizes = [float(np.sqrt(np.mean(form.rest**2)))]
    for piece in form.pieces:
        alone = LinearForm((piece,), np.zeros_like(form.rest))
        rows, _ = features.matrix(alone, system.fields)
        sizes.append(float(np.sqrt(np.mean((rows @ coefficients) ** 2))))
    return max(sizes)
