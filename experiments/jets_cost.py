"""The cost of one loss gradient with jets, against Taylor propagation by hand.

    python experiments/jets_cost.py [--repeats 30] [--precision float64]

Two cases: Burgers (tanh 3 x 20, 2540 points; u, u_t, u_x, u_xx) and 2-D Navier-Stokes
(tanh 4 x 64, 4096 points; u, v, p with first derivatives, and u_xx, u_yy, v_xx, v_yy).
The hand-written propagation of the same channels is plain `jax.numpy` for a whole
batch, with tanh'' from 1 - tanh^2 (cheaper than ours, and wrong in float32 at saturated
units). It is written in both layouts, points by units and units by points; the faster
one counts. All variants take turns in one run; the table has medians of the times and
of the ratios within a turn, so that other work on the machine does little harm.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from pinnlab.equation.jets import Orders, jets
from pinnlab.network import MLP, make_network


@dataclass(frozen=True)
class Case:
    """A network, points, the channels that are wanted and a loss of them.

    `loss` takes [points, channels, outputs]; `twice` are the coordinates with a second
    derivative.
    """

    name: str
    net: MLP
    points: Array
    wanted: tuple[Orders, ...]
    twice: tuple[int, ...]
    loss: Callable[[Array], Array]


def burgers() -> Case:
    """u_t + u u_x = nu u_xx."""
    net = make_network(
        key=jax.random.key(0), lower=(0.0, -1.0), upper=(1.0, 1.0), outputs=1,
        width=20, depth=3,
    )  # fmt: skip
    assert isinstance(net, MLP)

    def loss(d: Array) -> Array:
        u, ut, ux, uxx = jnp.moveaxis(d[:, :, 0], 1, 0)
        return jnp.mean((ut + u * ux - 0.01 / np.pi * uxx) ** 2)

    points = jax.random.uniform(jax.random.key(1), (2540, 2))
    wanted = ((0, 0), (1, 0), (0, 1), (0, 2))
    return Case("Burgers", net, points, wanted, (1,), loss)


def navier_stokes() -> Case:
    """u_t + (u . grad) u + grad p = nu lap u, div u = 0."""
    net = make_network(
        key=jax.random.key(0), lower=(0.0,) * 3, upper=(1.0,) * 3, outputs=3,
        width=64, depth=4,
    )  # fmt: skip
    assert isinstance(net, MLP)

    def loss(d: Array) -> Array:
        value, dt, dx, dy, dxx, dyy = jnp.moveaxis(d, 1, 0)
        u, v = value[:, :1], value[:, 1:2]
        gradp = jnp.stack([dx[:, 2], dy[:, 2]], axis=1)
        laplacian = (dxx + dyy)[:, :2]
        momentum = dt[:, :2] + u * dx[:, :2] + v * dy[:, :2] + gradp - 0.01 * laplacian
        mass = dx[:, 0] + dy[:, 1]
        return jnp.mean(momentum**2) + jnp.mean(mass**2)

    points = jax.random.uniform(jax.random.key(1), (4096, 3))
    first = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    wanted = (*first, (0, 2, 0), (0, 0, 2))
    return Case("Navier-Stokes", net, points, wanted, (1, 2), loss)


# -------------------------------------------------------------------- the variants


def by_jets(case: Case, net: MLP, points: Array) -> Array:
    """What the library does."""
    return jax.vmap(lambda p: jets(net, p, case.wanted))(points)


def by_jvp(case: Case, net: MLP, points: Array) -> Array:
    """Each derivative by nested `jvp` of the plain call."""

    def derivative(point: Array, orders: Orders) -> Array:
        function = net
        for i, count in enumerate(orders):
            e = jnp.zeros_like(point).at[i].set(1)
            for _ in range(count):
                function = lambda x, f=function, e=e: jax.jvp(f, (x,), (e,))[1]
        return function(point)

    at = lambda p: jnp.stack([derivative(p, o) for o in case.wanted])
    return jax.vmap(at)(points)


def by_hand(case: Case, net: MLP, points: Array) -> Array:
    """Taylor propagation for a batch, points by units."""
    lower, upper = np.array(net.features.lower), np.array(net.features.upper)
    rate = jnp.asarray(2 / (upper - lower), points.dtype)
    first, *rest = net.layers
    z = ((points - jnp.asarray(lower, points.dtype)) * rate - 1) @ first.weight.T
    z = z + first.bias
    z1 = [first.weight[:, i] * rate[i] for i in range(points.shape[1])]
    z2: list[Array] | None = None
    for layer in rest:
        t = jnp.tanh(z)
        s1 = 1 - t * t
        s2 = -2 * t * s1
        a1 = [s1 * d for d in z1]
        a2 = [s2 * z1[i] * z1[i] for i in case.twice]
        if z2 is not None:
            a2 = [a + s1 * d for a, d in zip(a2, z2, strict=True)]
        weight = layer.weight.T
        z = t @ weight + layer.bias
        z1, z2 = [a @ weight for a in a1], [a @ weight for a in a2]
    assert z2 is not None
    return jnp.stack([z, *z1, *z2], axis=1)


def by_hand_transposed(case: Case, net: MLP, points: Array) -> Array:
    """Taylor propagation for a batch, units by points."""
    lower, upper = np.array(net.features.lower), np.array(net.features.upper)
    rate = jnp.asarray(2 / (upper - lower), points.dtype)
    first, *rest = net.layers
    z = first.weight @ ((points - jnp.asarray(lower, points.dtype)) * rate - 1).T
    z = z + first.bias[:, None]
    z1 = [first.weight[:, i : i + 1] * rate[i] for i in range(points.shape[1])]
    z2: list[Array] | None = None
    for layer in rest:
        t = jnp.tanh(z)
        s1 = 1 - t * t
        s2 = -2 * t * s1
        a1 = [s1 * d for d in z1]
        a2 = [s2 * z1[i] * z1[i] for i in case.twice]
        if z2 is not None:
            a2 = [a + s1 * d for a, d in zip(a2, z2, strict=True)]
        z = layer.weight @ t + layer.bias[:, None]
        z1 = [layer.weight @ a for a in a1]
        z2 = [layer.weight @ a for a in a2]
    assert z2 is not None
    return jnp.stack([z, *z1, *z2]).transpose(2, 0, 1)


VARIANTS = {
    "jets": by_jets,
    "by hand, points by units": by_hand,
    "by hand, units by points": by_hand_transposed,
    "nested jvp": by_jvp,
}


# ------------------------------------------------------------------ the measurement


def gradients(case: Case) -> dict[str, Callable[[], tuple[Array, Array]]]:
    """The compiled loss and gradient of each variant; they agree, or it raises."""
    theta, unravel = ravel_pytree(case.net)
    calls, expected = {}, None
    for name, variant in VARIANTS.items():

        def loss(theta: Array, points: Array, variant: Callable = variant) -> Array:
            return case.loss(variant(case, unravel(theta), points))

        compiled = jax.jit(jax.value_and_grad(loss))
        found = compiled(theta, case.points)[1]
        expected = found if expected is None else expected
        scale = float(jnp.max(jnp.abs(expected)))
        tolerance = 1e-3 if theta.dtype == jnp.float32 else 1e-9
        np.testing.assert_allclose(found, expected, atol=tolerance * scale)
        calls[name] = lambda f=compiled: f(theta, case.points)
    return calls


def measured(calls: dict[str, Callable], repeats: int) -> dict[str, np.ndarray]:
    """The seconds of each call, one for each turn."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(s) for name, s in seconds.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument(
        "--precision", choices=["float32", "float64"], default="float64"
    )
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.precision == "float64")
    for case in (burgers(), navier_stokes()):
        seconds = measured(gradients(case), options.repeats)
        by_hand_names = [name for name in seconds if name.startswith("by hand")]
        best = min(by_hand_names, key=lambda name: np.median(seconds[name]))
        ratios = {n: float(np.median(s / seconds[best])) for n, s in seconds.items()}
        print(f"{case.name}, {len(case.points)} points, {options.precision}")
        for name, s in seconds.items():
            print(f"  {name:26s} {1e3 * np.median(s):8.2f} ms  {ratios[name]:5.2f}")
        print(f"  jets / faster by hand: {ratios['jets']:.2f} (goal: at most 1.3)")


if __name__ == "__main__":
    main()
