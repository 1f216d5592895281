"""One least-squares solve: all terms' rows at once, rank-revealing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from pinnlab.linear.basis import Basis
from pinnlab.linear.features import Features
from pinnlab.linear.forms import LinearForm, linear_form
from pinnlab.linear.space import Space
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

    features: Features | Basis
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
    space: Space,
    rows: int,
    seed: int,
    clustered: bool = True,
    form_of: Form = linear_form,
) -> Sheet:
    """Forms of every equation and condition at about `rows` points altogether.

    Points are low-discrepancy; `clustered` ones are denser towards the faces. What is
    continuous between pieces counts as a condition. All are weighted near singular
    points, here and where they are tested.
    """
    system, joints = space.system, space.joints
    equations, conditions = system.equations, system.conditions
    share = EQUATION_SHARE if conditions else 1.0
    inside = int(rows * share / len(equations))
    around = int(rows * (1 - share) / max(1, len(conditions) + len(joints)))
    at = lambda term, n: space.points(term, n, seed, clustered)
    forms = [
        space.weighted(t, form_of(system, t, p), p)
        for terms, n in ((equations, inside), (conditions, around))
        for t in terms
        for p in [at(t, n)]
    ]
    forms += [
        space.weighted(t, space.jump(form_of, t, edge, p), p)
        for t, edge in joints
        for p in [at(t, around)]
    ]
    everywhere = space.points(equations[0], 128, seed + 1, False)
    inside_forms = [
        space.weighted(t, form_of(system, t, everywhere), everywhere)
        for t in (*conditions, *(t for t, _ in joints))
    ]
    inside = (*forms[: len(equations)], *inside_forms)
    return Sheet(tuple(forms), inside, everywhere)


def solve_features(
    system: System, features: Features | Basis, train: Sheet, test: Sheet
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
    sizes = _sizes(matrix, np.tile(features.singular, len(system.fields)))
    if sizes is not None:
        matrix /= sizes
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
    if sizes is not None:
        found = found / sizes
    return Solved(features, found, heldout(system, features, found, test), int(rank))


def _sizes(matrix: np.ndarray, singular: np.ndarray) -> np.ndarray | None:
    """Factors that give singular columns the norm of the others; None without any."""
    if not singular.any():
        return None
    norms = np.linalg.norm(matrix, axis=0)
    usual = float(np.sqrt(np.mean(norms[~singular] ** 2)))
    return np.where(singular & (norms > 0), norms / usual, 1.0)


def heldout(
    system: System, features: Features | Basis, coefficients: np.ndarray, test: Sheet
) -> np.ndarray:
    """Of every block, the RMS residual relative to the RMS of its largest summand."""
    values = features.values(test.points, coefficients.reshape(len(system.fields), -1))
    typical = float(np.sqrt(np.mean(values**2, axis=0)).max())
    found = []
    for i, (form, inside) in enumerate(zip(test.forms, test.inside, strict=True)):
        rows, _ = features.matrix(form, system.fields)
        residual = rows @ coefficients + form.rest
        size = _largest(system, features, coefficients, inside)
        # A condition such as a mean of zero has no size of its own, nor has an
        # equation such as u_xx = 0 where u is a straight line.
        unit = 1.0 if i >= len(system.equations) else _unit(system, inside)
        size = max(size, SMALL * typical * unit)
        found.append(float(np.sqrt(np.mean(residual**2))) / (size or 1.0))
    return np.array(found)


def _unit(system: System, form: LinearForm) -> float:
    """The size of the form's largest summand for a function of size one that varies
    over the whole domain."""
    lengths = np.array([a.upper - a.lower for a in system.problem.axes])
    sizes = [
        float(
            np.sqrt(np.mean(p.coefficient**2)) / np.prod(lengths ** np.array(p.orders))
        )
        for p in form.pieces
    ]
    return max(sizes, default=0.0)


def _largest(
    system: System,
    features: Features | Basis,
    coefficients: np.ndarray,
    form: LinearForm,
) -> float:
    """The RMS of the form's largest summand."""
    sizes = [float(np.sqrt(np.mean(form.rest**2)))]
    for piece in form.pieces:
        alone = LinearForm((piece,), np.zeros_like(form.rest))
        rows, _ = features.matrix(alone, system.fields)
        sizes.append(float(np.sqrt(np.mean((rows @ coefficients) ** 2))))
    return max(sizes)
