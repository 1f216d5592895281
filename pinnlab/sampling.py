"""Collocation points: on the whole domain, on a face, or on any place of a problem."""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.equation.calculus import expand
from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.errors import ProblemError
from pinnlab.problem.problem import Place, Problem


FEW = 1024
"""Points by which it is seen whether a place holds any."""
METHODS = ("sobol", "latin", "grid", "uniform")


def unit_points(method: str, count: int, dim: int, seed: int) -> np.ndarray:
    """`count` points in the unit cube, [count, dim].

    **Arguments:**

    - `method`: "sobol" (scrambled), "latin" (Latin hypercube), "grid" (cell centers;
        the count is rounded down to a full grid and filled up at random) or "uniform".

    Raises `ValueError` for another method.
    """
    rng = np.random.default_rng(seed)
    if dim == 0:
        return np.zeros((count, 0))
    if method == "sobol":
        return _sobol(int(np.ceil(np.log2(max(count, 2)))), dim, seed)[:count].copy()
    if method == "latin":
        from scipy.stats import qmc

        return qmc.LatinHypercube(dim, rng=rng).random(count)
    if method == "uniform":
        return rng.random((count, dim))
    if method == "grid":
        side = max(1, int(count ** (1 / dim) + 1e-9))
        line = (np.arange(side) + 0.5) / side
        mesh = np.stack(np.meshgrid(*[line] * dim, indexing="ij"), -1).reshape(-1, dim)
        return np.concatenate([mesh, rng.random((count - len(mesh), dim))])
    raise ValueError(f"unknown sampler '{method}' (one of: {', '.join(METHODS)})")


@lru_cache(maxsize=16)
def _sobol(power: int, dim: int, seed: int) -> np.ndarray:
    """Scrambling takes long, and the same points are asked for again and again."""
    from scipy.stats import qmc

    return qmc.Sobol(dim, rng=np.random.default_rng(seed)).random_base2(power)


def sample(
    problem: Problem, place: Place, count: int, seed: int, method: str = "sobol"
) -> np.ndarray:
    """`count` points of a place, [count, dim], by rejection where it is restricted.

    Raises `ProblemError` if a restricted place holds (nearly) no points.
    """
    inside = membership(problem, place)
    kept: list[np.ndarray] = []
    found = 0
    size = count if not place.inside else int(np.ceil(count / problem.filling))
    for attempt in range(12):
        unit = unit_points(method, size, len(problem.axes), seed + 7919 * attempt)
        points = _spread(problem, place, unit)
        points = points[inside(points)]
        kept.append(points)
        found += len(points)
        if found >= count:
            return np.concatenate(kept)[:count]
        method = "uniform" if method == "grid" else method
    if found == 0:
        raise ProblemError(
            f"the place '{place.text}' holds no points of the domain",
            text=place.text,
        )
    everything = np.concatenate(kept)
    return everything[np.arange(count) % found]


def is_empty(problem: Problem, place: Place) -> bool:
    """Whether a restricted place, or one that a shape may miss, holds no points."""
    missed = problem.shape is not None and place.curve is None and not place.is_piece
    if place.where is None and not missed:
        return False
    unit = unit_points("sobol", FEW, len(problem.axes), seed=1)
    return not membership(problem, place)(_spread(problem, place, unit)).any()


def _spread(problem: Problem, place: Place, unit: np.ndarray) -> np.ndarray:
    lower = np.array([a.lower for a in problem.axes])
    upper = np.array([a.upper for a in problem.axes])
    points = lower + (upper - lower) * unit
    return on(problem, place, points, unit)


def on(
    problem: Problem, place: Place, points: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """Points moved onto a place: fixed coordinates set, or along a piece of an edge.

    **Arguments:**

    - `unit`: the same points in the unit cube; the first of the coordinates in the
        plane becomes the share of the piece's length.
    """
    points = points.copy()
    names = [a.name for a in problem.axes]
    for name, value in place.fixed:
        points[:, names.index(name)] = value
    if place.curve is not None and problem.shape is not None:
        columns = problem.shape.columns
        points[:, columns] = place.curve.at(unit[:, columns[0]])
    return points


def membership(problem: Problem, place: Place) -> Callable[[np.ndarray], np.ndarray]:
    """A function that tells which of [n, dim] points satisfy the place's restriction.

    What the place fixes is taken for granted. Points outside of the problem's shape
    belong to no place.
    """
    shape, restricted = problem.shape, _restriction(problem, place)
    if shape is None:
        return restricted
    return lambda points: shape.contains(points) & restricted(points)


def _restriction(problem: Problem, place: Place) -> Callable[[np.ndarray], np.ndarray]:
    if place.where is None:
        return lambda points: np.ones(len(points), bool)
    names = tuple(a.name for a in problem.axes)
    condition = expand(place.where, names)
    parameters = {k: jnp.asarray(v) for k, v in problem.parameters.items()}

    def one(point: Float[Array, " dim"]) -> Array:
        values = dict(zip(names, point, strict=True))
        return jnp.asarray(evaluate((condition,), Surroundings(values, parameters))[0])

    return lambda points: np.asarray(jax.vmap(one)(jnp.asarray(points)), bool)


def uniform(
    key: PRNGKeyArray,
    lower: Float[Array, " dim"],
    upper: Float[Array, " dim"],
    count: int,
) -> Float[Array, "count dim"]:
    """Independent uniform points in a box, on the device."""
    unit = jax.random.uniform(key, (count, lower.size), lower.dtype)
    return lower + (upper - lower) * unit


def by_residual(
    key: PRNGKeyArray,
    pool: Float[Array, "pool dim"],
    residual: Float[Array, " pool"],
    count: int,
) -> Float[Array, "count dim"]:
    """Residual-adaptive draw of `count` of the pool's points, without replacement.

    A point is drawn with probability proportional to |r| / mean|r| + 1 (RAD with
    k = c = 1; Wu et al., 2023), by the Gumbel trick.
    """
    size = jnp.abs(residual)
    weight = size / jnp.mean(size) + 1
    score = jnp.log(weight) + jax.random.gumbel(key, weight.shape, weight.dtype)
    return pool[jax.lax.top_k(score, count)[1]]
