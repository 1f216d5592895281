"""Devices: a mesh over which collocation points are split; all else is on each.

A mesh of one device runs the same functions, without a map. What belongs to points
(coordinates, values known at them, residuals, rows of a Jacobian) is split along its
first axis; parameters, the optimizer's state and keys are on every device.
"""

import zlib
from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Shaped

from pinnlab.errors import ProblemError


POINTS = "points"
"""The name of the mesh's axis."""

Tree = TypeVar("Tree")
Shared = TypeVar("Shared")
Split = TypeVar("Split")
Found = TypeVar("Found")


def make_mesh(count: int | None = None) -> Mesh:
    """A mesh of so many devices; of all that there are, on all processes, for None.

    Raises `ProblemError` where there are fewer, or where some of those of several
    processes would be left out.
    """
    devices = jax.devices()
    have = len(devices)
    if count is None:
        return _mesh(devices)
    if not 1 <= count <= have:
        kind = devices[0].platform
        raise ProblemError(
            f"{count} devices are asked for, and there {_are(have)} ({kind}): expected "
            + ("1" if have == 1 else f"1 to {have}"),
            hint="see `pinnlab doctor`; a run on CPUs has more with the variable "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
            if kind == "cpu" and count > 1
            else None,
        )
    if jax.process_count() > 1 and count != have:
        raise ProblemError(
            f"{count} devices are asked for, and {jax.process_count()} processes have "
            f"{have}: with several processes all their devices are used"
        )
    return _mesh(devices[:count])


def single() -> Mesh:
    """A mesh of this process's first device alone."""
    return _mesh(jax.local_devices()[:1])


def _mesh(devices: list) -> Mesh:
    return Mesh(np.array(devices), (POINTS,), axis_types=(AxisType.Auto,))


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"


# -------------------------------------------------------------------------- placing


def padded(
    array: Shaped[Array, "rows columns"], mesh: Mesh
) -> Shaped[Array, "more columns"]:
    """With copies of the first row at its end, so that each device has as many rows.

    Whoever uses the rows gives the copies no weight (`real_rows`).
    """
    missing = -array.shape[0] % mesh.size
    if not missing:
        return array
    copies = jnp.broadcast_to(array[:1], (missing, array.shape[1]))
    return jnp.concatenate([array, copies])


def real_rows(count: int, mesh: Mesh) -> Shaped[Array, " rows"] | None:
    """Inside `over_points`: which of this device's rows are not copies.

    **Arguments:**

    - `count`: the rows of all devices that are not copies.

    **Returns:** None where every row on every device is one.
    """
    if count % mesh.size == 0:
        return None
    own = -(-count // mesh.size)
    first = jax.lax.axis_index(POINTS) * own
    return first + jnp.arange(own) < count


def replicated(tree: Tree, mesh: Mesh) -> Tree:
    """The tree with its arrays on every device."""
    return _placed(tree, NamedSharding(mesh, PartitionSpec()))


def split(tree: Tree, mesh: Mesh) -> Tree:
    """The tree with its arrays split along their first axis, which must divide.

    Empty arrays are on every device, as the compiler has them.
    """
    return _placed(tree, NamedSharding(mesh, PartitionSpec(POINTS)))


def _placed(tree: Tree, wanted: NamedSharding) -> Tree:
    empty = NamedSharding(wanted.mesh, PartitionSpec())

    def place(array: Array | np.ndarray) -> Array:
        sharding = wanted if array.size else empty
        if jax.process_count() == 1:
            return jax.device_put(array, sharding)
        if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(place(jax.random.key_data(array)))
        every = fetched(array)
        return jax.make_array_from_callback(every.shape, sharding, lambda i: every[i])

    return jax.tree.map(lambda a: place(a) if eqx.is_array(a) else a, tree)


def fetched(array: Array | np.ndarray) -> np.ndarray:
    """All of an array on this host; every process must ask for it."""
    if isinstance(array, jax.Array) and not (
        array.is_fully_addressable or array.is_fully_replicated
    ):
        return np.asarray(multihost_utils.process_allgather(array, tiled=True))
    return np.asarray(array)


# --------------------------------------------------- inside of compiled programs


def over_points(
    function: Callable[[Shared, Split], Found], mesh: Mesh
) -> Callable[[Shared, Split], Found]:
    """`function(shared, split)` on every device with its own rows of `split`.

    **Returns:** a function whose results are split in the same way.
    """
    return _mapped(function, mesh, PartitionSpec(POINTS))


def summed(
    function: Callable[[Shared, Split], Found], mesh: Mesh
) -> Callable[[Shared, Split], Found]:
    """As `over_points`, and the devices' results are added up.

    A gradient inside of `function` is that of the device's own rows: it must be, and is
    here, added exactly once.
    """

    if mesh.size == 1:
        return function

    def total(shared: Shared, split: Split) -> Found:
        return jax.lax.psum(function(shared, split), POINTS)

    return _mapped(total, mesh, PartitionSpec())


def _mapped(
    function: Callable[[Shared, Split], Found], mesh: Mesh, out: PartitionSpec
) -> Callable[[Shared, Split], Found]:
    if mesh.size == 1:
        # One device needs no map, and may itself be one of another mesh.
        return function
    # Users' own functions know nothing of mesh axes, so their types are not checked:
    # then no sum is added to a gradient behind one's back either.
    return jax.shard_map(
        function,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(POINTS)),
        out_specs=out,
        check_vma=False,
    )


def everywhere(tree: Tree, mesh: Mesh) -> Tree:
    """The tree's arrays, kept on every device by the compiler."""
    return _kept(tree, NamedSharding(mesh, PartitionSpec()))


def spread(tree: Tree, mesh: Mesh) -> Tree:
    """The tree's arrays, kept split along their first axis by the compiler."""
    return _kept(tree, NamedSharding(mesh, PartitionSpec(POINTS)))


def _kept(tree: Tree, sharding: NamedSharding) -> Tree:
    if sharding.mesh.size == 1:
        return tree

    def keep(leaf: object) -> object:
        if not eqx.is_array(leaf):
            return leaf
        return jax.lax.with_sharding_constraint(leaf, sharding)

    return jax.tree.map(keep, tree)


# --------------------------------------------------------------------------- checks


def disagreement(tree: object, prefix: str) -> str | None:
    """The first array whose copies on this process's devices differ; None is good."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if isinstance(leaf, jax.Array) and not _copies_agree(leaf):
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            return f"{prefix}/{name}".rstrip("/")
    return None


def fingerprint(tree: object) -> int:
    """A checksum of this process's copies of all that is on every device."""
    total = 0
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and leaf.is_fully_replicated:
            total = zlib.crc32(np.asarray(leaf).tobytes(), total)
    return total


def _copies_agree(array: Array) -> bool:
    """Whether all shards of the same part of an array hold the same bytes."""
    known: dict[str, bytes] = {}
    for shard in array.addressable_shards:
        found = np.asarray(shard.data).tobytes()
        if known.setdefault(str(shard.index), found) != found:
            return False
    return True
