"""The programs of a stage for all members: compiled once, each member on its own.

A member's program is that of a run alone. It is mapped over the members, some together
(`vmap`) or one after another; a loop ends for each member where it would end alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from pinnlab.ensemble.stack import stacked
from pinnlab.optimizer import AbstractOptimizer
from pinnlab.optimizer.known import Known
from pinnlab.points import look
from pinnlab.programs import Stage, advanced, compiled
from pinnlab.residual import LeastSquares


AXIS = "member"
ON_A_CPU = 8
"""Members together at most: each looks at a pool of ten times its points."""
Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Layout:
    """How the members are spread.

    - `together`: members that are computed at one time on a device; 0: all.
    - `mesh`: devices with an axis "member" that divides the number of members.
    """

    together: int = 0
    mesh: Mesh | None = None

    def over(self, function: Callable) -> Callable:
        """The function of one member as a function of all, tree by tree."""

        def every(*trees: PyTree) -> PyTree:
            dynamic, static = eqx.partition(trees, eqx.is_array)
            count = jax.tree.leaves(dynamic)[0].shape[0]

            def one(arrays: PyTree) -> PyTree:
                return function(*eqx.combine(arrays, static))

            if self.mesh is None:
                return self._mapped(one, dynamic, count)
            spec = PartitionSpec(AXIS)
            here = count // self.mesh.shape[AXIS]
            return jax.shard_map(
                lambda arrays: self._mapped(one, arrays, here),
                mesh=self.mesh,
                in_specs=spec,
                out_specs=spec,
                check_vma=False,
            )(dynamic)

        return every

    def _mapped(self, one: Callable, arrays: PyTree, count: int) -> PyTree:
        if self.together in (0, count):
            return jax.vmap(one)(arrays)
        if self.together == 1:
            return jax.lax.map(one, arrays)
        return jax.lax.map(one, arrays, batch_size=min(self.together, count))

    def placed(self, tree: Tree) -> Tree:
        """A stacked tree with its members on the devices of the mesh."""
        if self.mesh is None:
            return tree
        sharding = jax.NamedSharding(self.mesh, PartitionSpec(AXIS))
        return jax.tree.map(
            lambda a: jax.device_put(a, sharding) if eqx.is_array(a) else a, tree
        )


def default_layout(members: int) -> Layout:
    """All devices that there are; on CPUs a few members at a time, for the memory."""
    devices = jax.local_devices()
    count = int(np.gcd(members, len(devices)))
    mesh = Mesh(np.array(devices[:count]), (AXIS,)) if count > 1 else None
    if devices[0].platform != "cpu":
        return Layout(mesh=mesh)
    here = members // count
    together = max(n for n in range(1, ON_A_CPU + 1) if here % n == 0)
    return Layout(together, mesh)


class Members(eqx.Module):
    """What the members' programs need besides their parameters, members first.

    - `optimizers`: those of a stage; what `careful` changes is an array in them.
    """

    objectives: LeastSquares
    optimizers: AbstractOptimizer


class Progress(eqx.Module):
    """What a call of `advance` did, for each member: steps, last loss, stalls."""

    steps: Int[Array, " members"]
    loss: Float[Array, " members"]
    stalled: Bool[Array, " members"]


class Programs(eqx.Module):
    """The compiled programs of a stage for all members.

    - `value_and_grad(members, thetas)` and `init(members, thetas, known)`: the first
      states.
    - `advance(members, thetas, states, counts)`: so many steps, or fewer.
    - `look(members, thetas, keys, who, redraw)`: of the members `who`, held-out
      residuals (NaN for the others), new points or weights where `redraw`, and the
      next keys.
    - `resume(members, thetas, known, states, who)`: their states on new points.
    """

    value_and_grad: Callable
    init: Callable
    resume: Callable
    advance: Callable
    look: Callable

    def start(self, members: Members, thetas: Float[Array, "members P"]) -> PyTree:
        """The optimizers' first states."""
        return self.init(members, thetas, self.value_and_grad(members, thetas))

    def refresh(
        self,
        members: Members,
        thetas: Float[Array, "members P"],
        states: PyTree,
        who: Bool[Array, " members"],
    ) -> PyTree:
        """The states after the points of some members have changed."""
        known = self.value_and_grad(members, thetas)
        return self.resume(members, thetas, known, states, who)


def optimizers(
    stage: Stage, rollbacks: Sequence[int], dtype: jnp.dtype
) -> AbstractOptimizer:
    """The stage's optimizer for each member, made more careful so many times."""
    once = stage.careful(1).optimizer
    changes = jax.tree.map(lambda a, b: a != b, stage.optimizer, once)

    def of(times: int) -> AbstractOptimizer:
        varying, same = eqx.partition(stage.careful(times).optimizer, changes)
        arrays = jax.tree.map(lambda v: jnp.asarray(v, dtype), varying)
        return eqx.combine(arrays, same)

    return stacked([of(times) for times in rollbacks])


def compile_members(
    stage: Stage,
    members: Members,
    thetas: Float[Array, "members P"],
    keys: PRNGKeyArray,
    layout: Layout,
) -> Programs:
    """Compile a stage's programs for all members ahead of time."""

    def value_and_grad(m: Members, theta: Array) -> Known:
        value, gradient = m.objectives.value_and_grad(theta)
        return Known(value, gradient, m.objectives.unravel)

    def init(m: Members, theta: Array, known: Known):
        return m.optimizers.init(known, theta)

    def resume(m: Members, theta: Array, known: Known, state, who: Array):
        return chosen(who, m.optimizers.refresh(known, theta, state), state)

    def advance(m: Members, theta: Array, state, count: Array) -> tuple:
        start = theta, state
        carry, info, steps = advanced(m.objectives, start, count, m.optimizers)
        return *carry, Progress(steps, info.loss, info.stalled)

    def measure(m: Members, theta: Array, key: Array, who: Array, redraw: Array):
        """`cond`: a member that needs no look costs none where members are apart."""

        def now() -> tuple:
            after, own = jax.random.split(key)
            fresh, heldout = look(m.objectives, theta, own, stage.pool)
            if stage.weighting is not None:
                given = fresh if stage.redraw else m.objectives
                fresh = stage.weighting(given, theta)
            return chosen(redraw, fresh, m.objectives), heldout, after

        terms = sum(b.scale.size for b in m.objectives.blocks)
        unknown = jnp.full(terms, jnp.nan, theta.dtype)
        return jax.lax.cond(who, now, lambda: (m.objectives, unknown, key))

    count, over = len(thetas), layout.over
    yes, one = layout.placed((jnp.ones(count, bool), jnp.ones(count, int)))
    both = compiled(over(value_and_grad), members, thetas)
    known = both(members, thetas)
    began = compiled(over(init), members, thetas, known)
    states = began(members, thetas, known)
    return Programs(
        both,
        began,
        compiled(over(resume), members, thetas, known, states, yes),
        compiled(over(advance), members, thetas, states, one, donate=True),
        compiled(over(measure), members, thetas, keys, yes, yes),
    )


def chosen(which: Bool[Array, "*members"], new: Tree, old: Tree) -> Tree:
    """The arrays of one tree where `which`, else those of the other."""

    def pick(a: Array, b: Array) -> Array:
        shape = which.shape + (1,) * (a.ndim - which.ndim)
        return jnp.where(which.reshape(shape), a, b)

    return jax.tree.map(lambda a, b: pick(a, b) if eqx.is_array(a) else a, new, old)
