"""A second stage of training: another network learns what the first has left.

What is left of a resolved solution is small and rougher than the solution. A network
that is multiplied by its size learns it from the start (multi-stage networks; Wang and
Lai, 2024), where the first would move all of its numbers to do it.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from pinnlab.assembly import correction_of, parted
from pinnlab.network import AbstractNetwork, Corrected
from pinnlab.programs import Begin, Stage
from pinnlab.residual import LeastSquares
from pinnlab.settings import Settings
from pinnlab.strategy import Plan
from pinnlab.system.system import System


FIRST = 0.5
"""Of the budget: when it is used, a second stage that was asked for begins as soon as
the first is resolved."""


def may_correct(settings: Settings) -> bool:
    """Whether a second stage may follow the first."""
    wanted = settings.second_stage
    return wanted == "on" or (wanted == "auto" and not settings.iterations)


def with_correction(
    system: System, plan: Plan, scales: tuple[float, ...], seed: int
) -> tuple[Stage, ...]:
    """The stages of a plan, and that of a second network where there may be one.

    Unasked it comes only where the first can do no more: while that still learns, it is
    often the better use of the time.
    """
    settings, (*before, last) = plan.settings, plan.stages
    if not may_correct(settings):
        return plan.stages
    _, net_key, _ = jax.random.split(jax.random.key(seed), 3)
    begin = correcting(system, settings, scales, net_key)
    is_timed = settings.second_stage == "on" and not settings.iterations
    first = replace(last, share=FIRST) if is_timed else last
    return (*before, first, replace(last, name="correction", begin=begin))


def correcting(
    system: System, settings: Settings, scales: tuple[float, ...], key: PRNGKeyArray
) -> Begin:
    """How the second stage begins.

    The function takes an objective, its parameters and their held-out residual, which
    tells the size of what is left.
    """

    def begin(
        objective: LeastSquares, theta: Array, residual: float
    ) -> tuple[LeastSquares, Array]:
        base = objective.model(theta).network
        size = residual * jnp.asarray(scales, theta.dtype)
        network = Corrected(base, correction_of(system, settings, key), size)
        theta, unravel, fixed = parted(network, theta.dtype)
        return replace(objective, unravel=unravel, fixed=fixed), theta

    return begin


def described(plan: Plan, network: AbstractNetwork) -> tuple[Settings, str]:
    """The settings that describe a trained network, and how it was found."""
    settings, reason = plan.settings, plan.reason
    if not isinstance(network, Corrected):
        return settings, reason
    net = replace(settings.network, corrected=True)
    return replace(settings, network=net), f"{reason}; a second network corrects it"
