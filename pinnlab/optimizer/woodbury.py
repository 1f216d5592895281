"""The damped Gauss-Newton step over rows instead of parameters, by Woodbury's identity.

    (J'J + lambda I)^-1 J'z = J'(JJ' + lambda I)^-1 z

so that R rows and any number of parameters cost R^2 P for the kernel K = JJ' (R x R)
and R^3/3 for its Cholesky factor. Many rows make that too dear: the kernel is then
approximated (`nystrom`).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pinnlab.optimizer.nystrom import nystrom
from pinnlab.optimizer.objective import AbstractObjective, Info, Numbering


GOOD, BAD = 0.75, 0.25
"""Ratios of actual to predicted decrease above and below which the damping changes."""
CHANGE = 3.0
HOPELESS_DAMPING = 1e3
MOST_ROWS, RANK = 3000, 500
LEAST_SHIFT = 1e-10
"""Of an approximate kernel: what lies outside of it is divided by the damping."""


def kernel(
    objective: AbstractObjective, theta: Float[Array, " P"], rows: int, memory: int
) -> Float[Array, "R R"]:
    """K = JJ'. Where J needs more than `memory` bytes it is made in pieces, again and
    again: R P itemsize / memory times."""
    most = max(1, memory // (theta.size * theta.dtype.itemsize))
    if rows <= most:
        jacobian = objective.jacobian(theta)
        return jacobian @ jacobian.T

    def strip(found: Array, index: Array, _: Array, gradients: Array) -> Array:
        def block(part: Array, other: Array, _: Array, others: Array) -> Array:
            return part.at[:, other].set(gradients @ others.T, mode="drop")

        part = jnp.zeros((index.size, rows), theta.dtype)
        part = objective.fold_rows(theta, block, part, most)
        return found.at[index].set(part, mode="drop")

    empty = jnp.zeros((rows, rows), theta.dtype)
    return objective.fold_rows(theta, strip, empty, most)


class Kernel(eqx.Module):
    """K = JJ' as far as a step needs it: its trace / R, and the damped solve.

    R counts no copies of rows.
    """

    mean: Float[Array, ""]
    least: float = eqx.field(static=True)
    solve: Callable[[Array, Array], Array]


def exact_kernel(
    objective: AbstractObjective,
    theta: Float[Array, " P"],
    rows: Numbering,
    memory: int,
) -> Kernel:
    """The kernel itself, factorized at every solve."""
    matrix = kernel(objective, theta, rows.size, memory)

    def solve(shift: Array, z: Array) -> Array:
        shifted = matrix + shift * jnp.eye(len(matrix), dtype=theta.dtype)
        return jax.scipy.linalg.cho_solve(
            jax.scipy.linalg.cho_factor(shifted, lower=True), z
        )

    least = rows.count * float(jnp.finfo(theta.dtype).eps)
    return Kernel(jnp.trace(matrix) / rows.count, least, solve)


def approximate_kernel(
    objective: AbstractObjective,
    theta: Float[Array, " P"],
    product: Callable[[Array], Array],
    rows: Numbering,
    memory: int,
    rank: int,
) -> Kernel:
    """The kernel by `rank` random directions; `product` is K times a vector."""
    if rows.size * theta.size * theta.dtype.itemsize <= memory:
        jacobian = objective.jacobian(theta)
        multiply = lambda columns: jacobian @ (jacobian.T @ columns)
    else:
        multiply = lambda columns: jax.lax.map(product, columns.T).T
    found = nystrom(multiply, rows, rank, theta.dtype)
    return Kernel(found.trace / rows.count, LEAST_SHIFT, found.solve)


class WoodburyStep(eqx.Module):
    """What a step led to; `damping` is that of the next one, relative to trace(K)/R."""

    theta: Float[Array, " P"]
    direction: Float[Array, " P"]
    damping: Float[Array, ""]
    info: Info


def woodbury_step(
    objective: AbstractObjective,
    theta: Float[Array, " P"],
    damping: Float[Array, ""],
    inherited: Float[Array, " P"],
    halvings: int,
    memory: int,
    most: int,
    rank: int,
) -> WoodburyStep:
    """theta - eta phi with phi = v + J'(JJ' + lambda I)^-1 (r - J v).

    phi is the minimizer of |r - J phi|^2 + lambda |phi - v|^2. eta is the best of
    1, 1/2, ..., 2^-halvings, by the true loss. lambda falls by the factor `CHANGE`
    where the full step keeps what the model promises, and rises where it does not.

    **Arguments:**

    - `inherited`: v, a part of the last direction, or zeros.
    - `memory`: bytes for the Jacobian.
    - `most`: the rows above which K is approximated, by `rank` random directions.
    """
    residuals, pull = jax.vjp(objective.residuals, theta)
    push = jax.linear_transpose(lambda z: pull(z)[0], residuals)
    rows = objective.numbering(theta)
    if rows.count <= most:
        seen = exact_kernel(objective, theta, rows, memory)
    else:
        product = lambda z: push(pull(z)[0])[0]
        seen = approximate_kernel(objective, theta, product, rows, memory, rank)
    # J = 0 leaves nothing to do, but must not divide 0 by 0.
    scale = jnp.where(seen.mean > 0, seen.mean, 1)
    damping = jnp.maximum(damping, seen.least)
    moved = push(inherited)[0]
    correction = pull(seen.solve(damping * scale, residuals - moved))[0]
    direction = inherited + correction
    change = push(direction)[0]
    etas = 0.5 ** jnp.arange(halvings + 1, dtype=theta.dtype)
    losses = jax.lax.map(lambda eta: objective.loss(theta - eta * direction), etas)
    losses = jnp.where(jnp.isfinite(losses), losses, jnp.inf)
    best, loss = jnp.argmin(losses), 0.5 * residuals @ residuals
    accepted = losses[best] < loss
    # L - 1/2 |r - J phi|^2 without cancellation.
    predicted = change @ (residuals - 0.5 * change)
    ratio = (loss - losses[0]) / jnp.where(predicted > 0, predicted, 1)
    info = Info(
        jnp.where(accepted, losses[best], loss),
        jnp.linalg.norm(pull(residuals)[0]),
        jnp.where(accepted, etas[best], 0),
        damping * scale,
        jnp.asarray(halvings + 2, jnp.int32),
        accepted,
        ~accepted & _hopeless(predicted, loss, damping),
    )
    return WoodburyStep(
        theta - jnp.where(accepted, etas[best] * direction, 0),
        direction,
        _next_damping(damping, ratio, accepted),
        info,
    )


def _hopeless(predicted: Array, loss: Array, damping: Array) -> Bool[Array, ""]:
    rounding = 100 * jnp.finfo(loss.dtype).eps * loss
    return (jnp.abs(predicted) <= rounding) | (damping > HOPELESS_DAMPING)


def _next_damping(damping: Array, ratio: Array, accepted: Array) -> Float[Array, ""]:
    changed = jnp.where(ratio > GOOD, damping / CHANGE, damping)
    changed = jnp.where(ratio > BAD, changed, damping * CHANGE)
    return jnp.where(accepted, changed, damping * CHANGE**2)
