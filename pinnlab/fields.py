"""A model's fields as functions of a point, with their derivatives."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Orders, Surroundings, Wanted, evaluate
from pinnlab.equation.jets import jets
from pinnlab.network import AbstractNetwork
from pinnlab.system.system import System


class Model(eqx.Module):
    """What is trained (the network) and what the equations' parameters are."""

    network: AbstractNetwork
    parameters: dict[str, Array]


def partials_by_jets(
    network: AbstractNetwork, fields: tuple[str, ...]
) -> Callable[[Float[Array, " dim"], Wanted], Sequence[Array]]:
    """The network's partial derivatives by jets: for training, reverse mode only."""

    def at(place: Float[Array, " dim"], wanted: Wanted) -> Sequence[Array]:
        orders = tuple(dict.fromkeys(o for _, o in wanted))
        found = jets(network, place, orders)
        return [found[orders.index(o)][fields.index(f)] for f, o in wanted]

    return at


def partials_by_jvp(
    network: AbstractNetwork, fields: tuple[str, ...]
) -> Callable[[Float[Array, " dim"], Wanted], Sequence[Array]]:
    """The same by nested `jvp` of the plain call: any further derivative may pass."""

    def at(place: Float[Array, " dim"], wanted: Wanted) -> Sequence[Array]:
        found = {o: _nested(network, place, o) for o in {o for _, o in wanted}}
        return [found[o][fields.index(f)] for f, o in wanted]

    return at


def _nested(
    function: Callable[[Array], Array], place: Float[Array, " dim"], orders: Orders
) -> Float[Array, " out"]:
    for i, count in enumerate(orders):
        direction = jnp.zeros_like(place).at[i].set(1)
        for _ in range(count):
            function = _along(function, direction)
    return function(place)


def _along(
    function: Callable[[Array], Array], direction: Array
) -> Callable[[Array], Array]:
    return lambda x: jax.jvp(function, (x,), (direction,))[1]


class Fields:
    """The fields as scalar functions of a point, for equations given as callables.

    `u.T(point)` or `u["T"](point)`; where there is one field, also `u(point)`.
    """

    def __init__(self, system: System, model: Model):
        self._system = system
        self._model = model

    def __getitem__(self, name: str) -> Callable[[Float[Array, " dim"]], Array]:
        system, model = self._system, self._model
        n = len(system.coordinates)
        expression = system.ansatz[name].derivative((0,) * n, system.coordinates)

        def field(point: Float[Array, " dim"]) -> Array:
            partials = partials_by_jvp(model.network, system.fields)
            values = dict(zip(system.coordinates, point, strict=True))
            around = Surroundings(values, model.parameters, partials)
            return jnp.asarray(evaluate((expression,), around)[0])

        return field

    def __getattr__(self, name: str) -> Callable[[Float[Array, " dim"]], Array]:
        if name.startswith("_") or name not in self._system.fields:
            raise AttributeError(
                f"no field '{name}' ({', '.join(self._system.fields)})"
            )
        return self[name]

    def __call__(self, point: Float[Array, " dim"]) -> Array:
        if len(self._system.fields) != 1:
            raise TypeError("several fields: write u.name(point)")
        return self[self._system.fields[0]](point)
