"""The routes by features as a whole: search, a network of them, what was recorded."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pinnlab.linear.basis import Basis
from pinnlab.linear.features import Features
from pinnlab.linear.gauss_newton import GaussNewton
from pinnlab.linear.search import Found, Search
from pinnlab.network import (
    MLP,
    AbstractNetwork,
    HeatCorners,
    LaplaceCorners,
    Piecewise,
    PlaneFunctions,
    Sum,
)
from pinnlab.network.pieces import stacked
from pinnlab.record import Observation, Record, Stop
from pinnlab.settings import Settings
from pinnlab.singular.around import Around
from pinnlab.singular.corners import Corner
from pinnlab.singular.networks import corner_words, corners_network, plane_network
from pinnlab.strategy import feature_settings
from pinnlab.system.system import System


MOST_COORDINATES = 10
GOAL, FINEST_GOAL = 1e-8, 1e-12
MOST_NAMED = 4
SHARE, SINGULAR_SHARE = 1e-2, 1e-3
"""The goal's share of the target where the solution is smooth, and where it is not."""


def suits(system: System) -> bool:
    """Whether every term is affine in the fields and the box is small enough."""
    terms = (*system.equations, *system.conditions)
    few = len(system.coordinates) <= MOST_COORDINATES
    return few and all(t.is_affine for t in terms)


def search(
    system: System,
    target: float,
    seconds: float,
    seed: int,
    observe: Callable[[Observation], None],
) -> tuple[Found, Record, Stop]:
    """Find features that solve the system.

    **Arguments:**

    - `target`: the error that is wanted. A smooth solution is followed to a residual
        of at most 1e-8, which costs little; one that is not, to a thousandth of it.
    - `seconds`: the time that may be used.

    **Returns:** the best features, the history, and why the search ended.
    """
    record = Record()
    stop = Stop.STALLED
    work = Search(system, seconds, seed, _teller("linear", record, observe))
    smooth = not any(math.isfinite(c.order) for c in work.space.corners)
    goal = min(SHARE * target, GOAL) if smooth else SINGULAR_SHARE * target
    goal = max(goal, FINEST_GOAL)
    try:
        found = work.run(goal)
    except KeyboardInterrupt:
        if work.best is None:
            raise
        found, stop = work.best, Stop.INTERRUPTED
    else:
        if found.solved.worst < goal:
            stop = Stop.TARGET
        elif work.stopped:
            stop = Stop.BUDGET
    return found, record, stop


def search_nonlinear(
    system: System,
    target: float,
    seconds: float,
    seed: int,
    observe: Callable[[Observation], None],
) -> tuple[Found | None, Record, Stop]:
    """Find features that solve a nonlinear system, by Newton's method.

    Arguments and results are those of `search`; None where nothing was resolved.
    """
    record = Record()
    work = GaussNewton(system, seconds, seed, _teller("newton", record, observe))
    goal = max(min(SHARE * target, GOAL), FINEST_GOAL)
    try:
        found = work.run(goal)
    except KeyboardInterrupt:
        if work.best is None:
            raise
        return work.best, record, Stop.INTERRUPTED
    finally:
        record.compile_seconds = work.clock.compiling
    if found is not None and found.solved.worst < goal:
        return found, record, Stop.TARGET
    return found, record, Stop.BUDGET if work.clock.spent > seconds else Stop.STALLED


def _teller(
    name: str, record: Record, observe: Callable[[Observation], None]
) -> Callable[[str, int, float, float], bool]:
    """What writes a search into the history, and shows it."""

    def tell(phase: str, tried: int, elapsed: float, worst: float) -> bool:
        row = Observation(f"{name} {phase}", tried, elapsed, worst**2 / 2, worst, None)
        record.rows.append(row)
        record.train_seconds, record.iterations = elapsed, tried
        observe(row)
        return False

    return tell


def described(
    settings: Settings, found: Found, linear: bool = True
) -> tuple[Settings, str]:
    """The settings that tell the network's shape, and what was found in words."""
    features = found.solved.features
    strategy = "linear" if linear else "newton"
    sines = f"random sine features with frequencies up to {found.box.text}"
    if isinstance(features, Features):
        words, numbers = [f"{features.count} {sines}"], (features.count,)
    else:
        words, numbers = _described_basis(features, sines)
    if linear:
        words = [f"linear problem: {words[0]}", *words[1:]]
        words.append(f"one least-squares solve ({found.tried} tried)")
    else:
        words.append(f"Newton's method ({found.tried} solves)")
    return feature_settings(settings, strategy, *numbers), ", ".join(words)


def _described_basis(basis: Basis, sines: str) -> tuple[list[str], tuple[int, ...]]:
    """What is in a basis in words, and the numbers of features on each piece, of
    pieces, of singular functions, and of those around points."""
    width, pieces = basis.features[0].count, basis.partition.count
    around = [c for c in basis.corners if isinstance(c, Around)]
    singular = [c for c in basis.corners if isinstance(c, Corner)]
    words = [f"{width} {sines}"]
    if pieces > 1:
        words = [f"{pieces} x {words[0]}, joined at {basis.partition.text}"]
    counts = [sum(int(c.kept.sum()) for c in some) for some in (singular, around)]
    if singular:
        words.append(corner_words(singular))
    if around:
        places = " and ".join(c.text for c in around[:MOST_NAMED])
        more = len(around) - MOST_NAMED
        words.append(
            f"{counts[1]} functions around {places}"
            + (f" and {more} more" if more > 0 else "")
        )
    return words, (width, pieces, *counts)


def as_network(found: Found, blank: AbstractNetwork) -> AbstractNetwork:
    """What was found as a network of the structure of `blank`."""
    features = found.solved.features
    if isinstance(features, Features):
        return _sines(features, found.solved.coefficients, blank)
    assert isinstance(blank, Piecewise)
    arrays, static = eqx.partition(blank.network, eqx.is_array)
    one = eqx.combine(jax.tree.map(lambda a: a[0], arrays), static)
    assert isinstance(one, Sum)
    every = found.solved.coefficients.reshape(-1, features.count)
    count = features.features[0].count
    networks = []
    for i, part in enumerate(features.features):
        sines = _sines(part, every[:, i * count : (i + 1) * count], one.networks[0])
        weights = every[:, len(features.features) * count :]
        others = [_around_points(features, i, weights, n) for n in one.networks[1:]]
        networks.append(Sum((sines, *others)))
    return Piecewise(
        stacked(networks),
        jnp.asarray(features.partition.edges),
        jnp.asarray(features.partition.axis),
    )


def _around_points(
    basis: Basis, piece: int, weights: np.ndarray, blank: AbstractNetwork
) -> AbstractNetwork:
    """The functions of one kind on one piece: those of other pieces with zeros."""
    every: list[np.ndarray] = []
    first = 0
    for corner in basis.corners:
        mine = np.zeros((len(weights), len(corner.kept)))
        if basis.partition.piece(corner.place) == piece:
            columns = slice(first, first + int(corner.kept.sum()))
            mine[:, corner.kept] = weights[:, columns]
        first += int(corner.kept.sum())
        every.append(mine)
    pairs = list(zip(basis.corners, every, strict=True))
    if isinstance(blank, PlaneFunctions):
        return plane_network([(c, w) for c, w in pairs if isinstance(c, Around)], blank)
    assert isinstance(blank, HeatCorners | LaplaceCorners)
    return corners_network([(c, w) for c, w in pairs if isinstance(c, Corner)], blank)


def _sines(
    features: Features, coefficients: np.ndarray, blank: AbstractNetwork
) -> AbstractNetwork:
    """The features as a network of one hidden sine layer, in the place of `blank`'s
    numbers."""
    assert isinstance(blank, MLP)
    outputs = blank.layers[-1].weight.shape[0]
    arrays = (
        features.frequencies,
        features.phases,
        coefficients.reshape(outputs, features.count),
        np.zeros(outputs),
    )
    return eqx.tree_at(
        lambda n: (
            n.layers[0].weight,
            n.layers[0].bias,
            n.layers[1].weight,
            n.layers[1].bias,
        ),
        blank,
        tuple(jnp.asarray(a) for a in arrays),
    )
