"""A solved model as a function of one point that other JAX code can use."""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Expression
from pinnlab.fields import Model, partials_by_jvp
from pinnlab.system.system import System


PointFunction = Callable[[ArrayLike], dict[str, Array]]


def point_function(
    system: System, model: Model, wanted: Mapping[str, Expression]
) -> PointFunction:
    """The values of expressions in the fields at one point, by name.

    The function may be differentiated, mapped and compiled. It computes in 64-bit
    arithmetic, whatever the caller's; what comes back has the type of the point.
    """
    expressions = tuple(system.imposed(e) for e in wanted.values())
    # NumPy, because JAX arrays would be rounded where 64-bit arithmetic is off.
    arrays, rest = eqx.partition(model, eqx.is_array)
    arrays = jax.tree.map(np.asarray, arrays)

    def values(point: ArrayLike) -> dict[str, Array]:
        inside = eqx.combine(jax.tree.map(jnp.asarray, arrays), rest)
        place = jnp.asarray(point)
        at = dict(zip(system.coordinates, place, strict=True))
        partials = partials_by_jvp(inside.network, system.fields)
        found = evaluate(expressions, Surroundings(at, inside.parameters, partials))
        numbers = (jnp.asarray(v, place.dtype) for v in found)
        return dict(zip(wanted, numbers, strict=True))

    return in_double(values)


def in_double(function: PointFunction) -> PointFunction:
    """The function, and all its derivatives, computed in 64-bit arithmetic.

    A linear solution is a sum of large terms of both signs: with the 7 digits of
    32-bit arithmetic nothing of it would be left. Without the rule the backward pass
    of `jax.grad` would run in the caller's arithmetic.
    """

    @jax.custom_jvp
    def wide(point: ArrayLike) -> dict[str, Array]:
        kind = jnp.promote_types(jnp.asarray(point).dtype, jnp.float32)
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            found = function(jax.lax.convert_element_type(point, jnp.float64))
            return jax.tree.map(lambda v: jax.lax.convert_element_type(v, kind), found)

    @wide.defjvp
    def rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[dict, dict]:
        slopes = in_double(jax.jacfwd(function))(*primals)
        change = jax.tree.map(lambda s: s @ tangents[0], slopes)
        return wide(*primals), change

    return wide
