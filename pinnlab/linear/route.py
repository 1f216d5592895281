"""The linear route as a whole: search, a network of the features, what was recorded."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import degree
from pinnlab.linear.search import Found, Search
from pinnlab.network import MLP, AbstractNetwork
from pinnlab.record import Observation, Record, Stop
from pinnlab.system.system import System


MOST_COORDINATES = 3
FINEST_GOAL = 1e-12


def suits(system: System) -> bool:
    """Whether every term is affine in the fields and the box is small enough."""
    terms = (*system.equations, *system.conditions)
    return len(system.coordinates) <= MOST_COORDINATES and all(
        isinstance(t.residual, Expression) and degree(t.residual) <= 1 for t in terms
    )


def search(
    system: System,
    goal: float,
    seconds: float,
    seed: int,
    observe: Callable[[Observation], None],
) -> tuple[Found, Record, Stop]:
    """Find features that solve the system.

    **Arguments:**

    - `goal`: the held-out residual that is good enough.
    - `seconds`: the time that may be used.

    **Returns:** the best features, the history, and why the search ended.
    """
    record = Record()
    stop = Stop.STALLED

    def tell(phase: str, tried: int, elapsed: float, worst: float) -> bool:
        row = Observation(f"linear {phase}", tried, elapsed, worst**2 / 2, worst, None)
        record.rows.append(row)
        record.train_seconds, record.iterations = elapsed, tried
        observe(row)
        return False

    work = Search(system, seconds, seed, tell)
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


def as_network(found: Found, blank: AbstractNetwork) -> AbstractNetwork:
    """The features as a network of one hidden sine layer, in the place of `blank`'s
    numbers."""
    assert isinstance(blank, MLP)
    features = found.solved.features
    outputs = blank.layers[-1].weight.shape[0]
    coefficients = found.solved.coefficients.reshape(outputs, features.count)
    arrays = (
        features.frequencies,
        features.phases,
        coefficients,
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
