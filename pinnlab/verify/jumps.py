"""Where an expression of the coordinates jumps, found by bisection along lines."""

from dataclasses import dataclass

import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import has_steps
from pinnlab.problem.problem import Problem
from pinnlab.sampling import unit_points
from pinnlab.system.arrays import array_values


LINES, INTERVALS, HALVINGS = 8, 200, 40
RELATIVE = 1e-3


@dataclass(frozen=True)
class Jump:
    """A jump of a given size at `place`, "x = 0.5"."""

    place: str
    size: float


def find_jump(
    problem: Problem, node: Expression, along: str, fixed: dict[str, float]
) -> Jump | None:
    """The largest jump of an expression without fields along one coordinate.

    **Arguments:**

    - `fixed`: values of other coordinates that are not free.
    """
    if not has_steps(node):
        return None
    names = [a.name for a in problem.axes]
    i = names.index(along)
    axis = problem.axes[i]
    starts = _lines(problem, fixed)

    def values(positions: np.ndarray) -> np.ndarray:
        points = np.repeat(starts[:, None], positions.shape[1], axis=1)
        points[..., i] = positions
        flat = points.reshape(-1, len(names))
        return array_values(problem, (node,), flat)[:, 0].reshape(positions.shape)

    grid = np.linspace(axis.lower, axis.upper, INTERVALS + 1)
    found = values(np.broadcast_to(grid, (len(starts), len(grid))))
    size = np.max(np.abs(found), initial=0.0, where=np.isfinite(found))
    steps = np.nan_to_num(np.abs(np.diff(found, axis=1)))
    cell = np.argmax(steps, axis=1)
    ends = np.stack([grid[cell], grid[cell + 1]], axis=1)
    for _ in range(HALVINGS):
        middle = ends.mean(axis=1, keepdims=True)
        three = values(np.concatenate([ends[:, :1], middle, ends[:, 1:]], axis=1))
        left, right = np.nan_to_num(np.abs(np.diff(three, axis=1))).T
        lower = (left >= right)[:, None]
        ends = np.where(
            lower,
            np.concatenate([ends[:, :1], middle], axis=1),
            np.concatenate([middle, ends[:, 1:]], axis=1),
        )
    apart = 1e-9 * (axis.upper - axis.lower) * np.array([-1.0, 1.0])
    ends = np.clip(ends.mean(axis=1, keepdims=True) + apart, axis.lower, axis.upper)
    gaps = np.nan_to_num(np.abs(np.diff(values(ends), axis=1)))[:, 0]
    line = int(np.argmax(gaps))
    if not gaps[line] > RELATIVE * size:
        return None
    return Jump(f"{along} = {ends[line].mean():.6g}", float(gaps[line]))


def _lines(problem: Problem, fixed: dict[str, float]) -> np.ndarray:
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    unit = unit_points("sobol", LINES, len(lower), seed=3)
    points = lower + (upper - lower) * unit
    for k, a in enumerate(problem.axes):
        if a.name in fixed:
            points[:, k] = fixed[a.name]
    return points
