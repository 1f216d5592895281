"""One least-squares solve: all terms' rows at once, rank-revealing."""

from dataclasses import dataclass

import numpy as np

from pinnlab.linear.basis import Basis
from pinnlab.linear.features import Features
from pinnlab.linear.parity import Parity
from pinnlab.linear.space import Space
from pinnlab.linear.symmetry import needed, parity_of, parts_of_data, representatives
from pinnlab.linear.triangle import Triangle
from pinnlab.system.forms import Form, LinearForm, linear_form
from pinnlab.system.system import System


EQUATION_SHARE = 0.6
NONE = Parity((), np.zeros((1, 0), bool))
"""No reflections: one part."""
SMALL = 1e-2
AT_ONCE = 1_000_000
"""Numbers of the matrix that are computed at one time: 8 MB."""


@dataclass(frozen=True)
class Solved:
    """Coefficients [fields * N] of the features, and how good they are.

    - `heldout`: of every block, the RMS residual on fresh points relative to the RMS
      of its largest summand.
    """

    features: Features | Basis
    coefficients: np.ndarray
    heldout: np.ndarray

    @property
    def worst(self) -> float:
        """The worst block's held-out residual."""
        return float(np.max(self.heldout))


@dataclass(frozen=True)
class Sheet:
    """The forms of all terms at one set of points.

    - `inside` has the same forms at `points` of the whole domain: the size of a
        condition such as u = 0 is the size of u there.
    - `rests`: the forms' data, [parts, n] each. There is one part, or one for each
        kind of symmetry that the data have.
    - `parity`: of the parts.
    """

    forms: tuple[LinearForm, ...]
    inside: tuple[LinearForm, ...]
    points: np.ndarray
    rests: tuple[np.ndarray, ...]
    parity: Parity


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
    around = max(around, space.least)
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
    rests = tuple(f.rest[None] for f in forms)
    every = (*forms[: len(equations)], *inside_forms)
    return Sheet(tuple(forms), every, everywhere, rests, NONE)


def folded(space: Space, rows: int, seed: int) -> Sheet:
    """A sheet of a space with reflections, to be solved part by part.

    Of terms that are reflections of each other one is enough.
    """
    system, mirrors = space.system, space.mirrors
    terms = (*system.equations, *system.conditions)
    chosen = representatives(mirrors, len(terms))
    inside = sum(i < len(system.equations) for i in chosen)
    around = max(1, len(chosen) - inside)
    share = EQUATION_SHARE if system.conditions else 1.0
    forms, rests = [], []
    for i in chosen:
        own = share / inside if i < len(system.equations) else (1 - share) / around
        points = space.points(terms[i], int(rows * own), seed, True)
        forms.append(linear_form(system, terms[i], points))
        rests.append(parts_of_data(system, mirrors, i, points))
    parity, kept = parity_of(mirrors), needed(rests)
    return Sheet(
        tuple(forms),
        (),
        np.zeros((0, len(system.coordinates))),
        tuple(r[kept] for r in rests),
        Parity(parity.mirrored, parity.odd[kept]),
    )


def solve_features(
    system: System, features: Features | Basis, train: Sheet, test: Sheet
) -> Solved:
    """The coefficients that minimize all rows, each block scaled to size one."""
    fields, parity = len(system.fields), train.parity
    width = fields * features.count // parity.turns
    triangles = [Triangle(width) for _ in parity.odd]
    step = max(1, AT_ONCE // (fields * features.count))
    for form, rests in zip(train.forms, train.rests, strict=True):
        scale = 1 / ((features.size(form) or 1.0) * np.sqrt(len(form.rest)))
        for i in range(0, len(form.rest), step):
            here = slice(i, i + step)
            parts = _matrices(system, features, form.some(here), parity)
            for triangle, rows, rest in zip(triangles, parts, rests, strict=True):
                triangle.add(rows * scale, -rest[here] * scale)
    singular = np.tile(features.singular[: features.count // parity.turns], fields)
    found = np.stack([t.solve(singular) for t in triangles])
    found = found.reshape(len(found), fields, -1)
    coefficients = np.einsum("kg,kfj->fgj", parity.signs, found).ravel()
    return Solved(features, coefficients, heldout(system, features, coefficients, test))


def _matrices(
    system: System, features: Features | Basis, form: LinearForm, parity: Parity
) -> list[np.ndarray]:
    """The rows of a form for each part."""
    if not parity.mirrored:
        return [features.matrix(form, system.fields)]
    assert isinstance(features, Features)
    return parity.matrices(features, form, system.fields)


def heldout(
    system: System, features: Features | Basis, coefficients: np.ndarray, test: Sheet
) -> np.ndarray:
    """Of every block, the RMS residual relative to the RMS of its largest summand."""
    return _before_and_after(system, features, coefficients, test)[:, 1]


def unexplained(
    system: System, features: Features | Basis, coefficients: np.ndarray, test: Sheet
) -> float:
    """What is left of the forms' data, relative to all of them; above 1 where the
    solution makes the residual larger than none does."""
    before, after = _before_and_after(system, features, coefficients, test).T
    return float(np.linalg.norm(after) / (np.linalg.norm(before) or 1.0))


def sizes_of_data(
    system: System, features: Features | Basis, coefficients: np.ndarray, test: Sheet
) -> np.ndarray:
    """Of every block, the RMS of the forms' data relative to their largest summand."""
    return _before_and_after(system, features, coefficients, test)[:, 0]


def _before_and_after(
    system: System, features: Features | Basis, coefficients: np.ndarray, test: Sheet
) -> np.ndarray:
    """RMS data and RMS residual relative to the largest summand, [blocks, 2]."""
    values = features.values(test.points, coefficients.reshape(len(system.fields), -1))
    typical = float(np.sqrt(np.mean(values**2, axis=0)).max())
    found = []
    for i, (form, inside) in enumerate(zip(test.forms, test.inside, strict=True)):
        every = features.summands(form, system.fields, coefficients)
        residual = np.sum(every, axis=1) + form.rest
        if inside is not form:
            every = features.summands(inside, system.fields, coefficients)
        summands = np.column_stack([every, inside.rest])
        size = float(np.sqrt(np.mean(summands**2, axis=0)).max())
        # A condition such as a mean of zero has no size of its own, nor has an
        # equation such as u_xx = 0 where u is a straight line.
        unit = 1.0 if i >= len(system.equations) else _unit(system, inside)
        size = max(size, SMALL * typical * unit) or 1.0
        found.append([np.sqrt(np.mean(a**2)) / size for a in (form.rest, residual)])
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
