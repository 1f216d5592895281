"""Constant steps of a diffrax solver, some of the states saved."""

from collections.abc import Callable

import diffrax as dfx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def march(
    solver: dfx.AbstractSolver,
    field: Callable[[Array, Array], Array],
    y0: Float[Array, "..."],
    saves: int,
    each: Float[Array, ""],
) -> Float[Array, "saves_and_one ..."]:
    """The states after 0, 1, ..., `saves` times `each` steps of length 1.

    For solvers that keep nothing from step to step. Their steps are taken here and not
    by `diffeqsolve`, which is made for steps that adapt: the same numbers, and half the
    time of compilation.

    **Arguments:**

    - `field`: the vector field for a time that counts steps. Such a time has no
        rounding, and every step has exactly the length that the solver's coefficients
        are for.
    """
    terms = dfx.ODETerm(lambda n, y, args: field(jnp.asarray(n), y))

    def save(y: Array, first: Array) -> tuple[Array, Array]:
        def step(n: Array, y: Array) -> Array:
            t = first + n
            return solver.step(terms, t, t + 1.0, y, None, None, False)[0]

        y = jax.lax.fori_loop(0, jnp.round(each).astype(int), step, y)
        return y, y

    _, later = jax.lax.scan(save, y0, each * jnp.arange(saves))
    return jnp.concatenate([y0[None], later])
