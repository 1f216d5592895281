"""Constant steps of a diffrax solver, some of the states saved."""

from collections.abc import Callable

import diffrax as dfx
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

    **Arguments:**

    - `field`: the vector field for a time that counts steps. Such a time has no
        rounding, and every step has exactly the length that the solver's coefficients
        are for.
    """
    times = each * jnp.arange(saves + 1)
    solution = dfx.diffeqsolve(
        dfx.ODETerm(lambda n, y, args: field(jnp.asarray(n), y)),
        solver,
        t0=0.0,
        t1=times[-1],
        dt0=1.0,
        y0=y0,
        saveat=dfx.SaveAt(ts=times),
        stepsize_controller=dfx.ConstantStepSize(),
        max_steps=None,
        adjoint=dfx.ForwardMode(),
        throw=False,
    )
    assert solution.ys is not None
    return solution.ys
