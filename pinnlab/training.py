"""Training of a network: its preparation, and the outcome."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tomli_w
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.assembly import least_squares, network_of
from pinnlab.checkpoint import Identity
from pinnlab.correction import described, with_correction
from pinnlab.devices import single
from pinnlab.fields import Model
from pinnlab.network import AbstractNetwork
from pinnlab.outcome import Job, Outcome
from pinnlab.problem.problem import Problem
from pinnlab.record import Stop
from pinnlab.residual import LeastSquares
from pinnlab.scaling import field_scales, parameters_of
from pinnlab.settings import Settings, settings_table
from pinnlab.strategy import Plan, plan
from pinnlab.system.system import System, build_system
from pinnlab.train import Hooks, Limits, Trained, train
from pinnlab.verify.known import error_of
from pinnlab.viscosity import viscous


@dataclass(frozen=True)
class Prepared:
    """A problem made ready for training with one seed.

    - `key`: of the points that training draws.
    """

    system: System
    plan: Plan
    scales: tuple[float, ...]
    objective: LeastSquares
    theta: Float[Array, " P"]
    key: PRNGKeyArray


MakeNetwork = Callable[
    [System, Settings, tuple[float, ...], PRNGKeyArray], AbstractNetwork
]


def prepare(
    system: System, plan: Plan, seed: int, make: MakeNetwork = network_of
) -> Prepared:
    """The network, the objective and the first parameters of a seed."""
    full = plan.settings
    _, net_key, train_key = jax.random.split(jax.random.key(seed), 3)
    scales = field_scales(system, lambda s, k: make(system, full, s, k), net_key)
    network = make(system, full, scales, net_key)
    smooth = viscous(system, plan.viscosity)
    objective, theta = least_squares(smooth, full, network, seed)
    return Prepared(system, plan, scales, objective, theta, train_key)


def trained_outcome(prepared: Prepared, trained: Trained) -> Outcome:
    """What training led to, in 64 bits.

    Raises `FloatingPointError` where no finite loss could be found.
    """
    lost = not np.isfinite(trained.heldout).all()
    if lost and trained.stop is not Stop.INTERRUPTED:
        raise FloatingPointError(next(iter(trained.record.events), "no finite loss"))
    alone = trained.objective.on(single())
    wide = jax.tree.map(
        lambda a: jnp.asarray(np.asarray(a), float) if eqx.is_inexact_array(a) else a,
        alone.model(jnp.asarray(trained.theta)).network,
    )
    settings, reason = described(prepared.plan, wide)
    return Outcome(
        prepared.system,
        settings,
        prepared.scales,
        Model(wide, parameters_of(prepared.system)),
        np.asarray(alone.blocks[0].points, float),
        float(np.max(trained.heldout)),
        trained.record,
        trained.stop,
        reason,
    )


def limits_of(job: Job, seconds: float) -> Limits:
    """When training has done enough, or used its time."""
    return Limits(seconds, job.target / 100, job.target / 2)


def trained(problem: Problem, settings: Settings, job: Job, seconds: float) -> Outcome:
    """What training leads to; every process of the team must do it.

    Raises `FloatingPointError` where no finite loss could be found.
    """
    system = build_system(problem, settings.enforce)
    prepared = prepare(system, plan(system, settings, job.target), job.seed)
    text = tomli_w.dumps(settings_table(prepared.plan.settings))
    identity = Identity(problem.source, text, job.seed, job.target)
    keeper = job.keeper
    with keeper.deferring() if keeper else nullcontext():
        done = train(
            prepared.objective.on(job.mesh),
            prepared.theta,
            with_correction(system, prepared.plan, prepared.scales, job.seed),
            limits_of(job, seconds),
            key=prepared.key,
            hooks=Hooks(
                job.observe,
                error_of(system),
                job.inspect,
                keeper.pause if keeper else None,
                job.team.decided,
            ),
            start=keeper.start(identity) if keeper else None,
        )
    return trained_outcome(prepared, done)
