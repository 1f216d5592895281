"""The least squares of all blocks of rows, on the devices that share their points."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float

from pinnlab.devices import (
    fetched,
    over_points,
    padded,
    real_rows,
    replicated,
    single,
    split,
    spread,
    summed,
)
from pinnlab.fields import Model
from pinnlab.network import AbstractNetwork
from pinnlab.numbering import Extent, Place, Row, fold, numbering, places
from pinnlab.optimizer.objective import AbstractObjective, Carry, Numbering, Visit
from pinnlab.rows import Block


class LeastSquares(AbstractObjective):
    """loss(theta) = 1/2 sum of the squares of all blocks' rows.

    `theta` is the flat vector of the network's trainable arrays. Points are split over
    the devices of `mesh`; rows are in the order of devices, then of blocks.
    """

    blocks: tuple[Block, ...]
    parameters: dict[str, Array]
    unravel: Callable[[Array], AbstractNetwork] = eqx.field(static=True)
    fixed: AbstractNetwork
    mesh: Mesh = eqx.field(static=True, default_factory=single)

    def model(self, theta: Float[Array, " P"]) -> Model:
        """The model of a parameter vector."""
        return Model(eqx.combine(self.unravel(theta), self.fixed), self.parameters)

    def residuals(self, theta: Float[Array, " P"]) -> Float[Array, " R"]:
        """All rows, scaled."""
        return _on_devices(over_points, LeastSquares._own_residuals, self, theta)

    def loss(self, theta: Float[Array, " P"]) -> Float[Array, ""]:
        """1/2 |residuals|^2."""
        return 0.5 * jnp.sum(self.residuals(theta) ** 2)

    def value_and_grad(
        self, theta: Float[Array, " P"]
    ) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """The loss and its gradient, a cache-sized piece of the points at a time."""
        return _on_devices(summed, LeastSquares._own_value_and_grad, self, theta)

    def jacobian(self, theta: Float[Array, " P"]) -> Float[Array, "R P"]:
        """The rows' gradients: reverse mode per point, in chunks of points."""
        return _on_devices(over_points, LeastSquares._own_jacobian, self, theta)

    def relative(
        self, block: Block, theta: Float[Array, " P"]
    ) -> Float[Array, "points terms"]:
        """The block's residuals relative to its scale, at copies of points too."""
        return _on_devices(over_points, _own_relative, self._with(block), theta)

    def moved(self, block: Block, points: Float[Array, "count dim"]) -> Block:
        """The block on other points, with copies so that they can be split."""
        points = spread(padded(points, self.mesh), self.mesh)
        # What is known at the old points has another number of rows perhaps.
        block = block.at(points, points[:, :0])
        known = _on_devices(over_points, _own_known, self._with(block))
        return block.at(points, known)

    def on(self, mesh: Mesh) -> "LeastSquares":
        """The same problem with its points split over another mesh.

        Every process must ask for it.
        """
        arrays = jax.tree.map(lambda a: fetched(a) if eqx.is_array(a) else a, self)
        blocks = []
        for block in arrays.blocks:
            own = (padded(a[: block.count], mesh) for a in (block.points, block.known))
            points, known = split(tuple(own), mesh)
            blocks.append(replicated(block, mesh).at(points, known))
        parameters, fixed = replicated((arrays.parameters, arrays.fixed), mesh)
        return dataclasses.replace(
            self, blocks=tuple(blocks), parameters=parameters, fixed=fixed, mesh=mesh
        )

    def fold_rows(
        self,
        theta: Float[Array, " P"],
        visit: Visit[Carry],
        carry: Carry,
        most: int,
    ) -> Carry:
        """Rows and their gradients piece by piece: no Jacobian is kept."""
        for block, place in zip(self.blocks, self._places(), strict=True):
            row, data = self._row(block, theta), (block.points, block.known)
            carry = fold(place, row, data, block.factor, visit, carry, most)
        return carry

    def numbering(self, theta: Float[Array, " P"]) -> Numbering:
        """What the rows are called: their place without copies on one device."""
        return numbering(self._places())

    def _places(self) -> tuple[Place, ...]:
        extents = [
            Extent(b.count, b.points.shape[0], b.scale.size) for b in self.blocks
        ]
        return places(extents, self.mesh.size)

    def _row(self, block: Block, theta: Float[Array, " P"]) -> Row:
        def row(point: Array, known: Array) -> tuple[Array, Array]:
            def both(th: Array) -> tuple[Array, Array]:
                found = block.rows(self.model(th), point, known)
                return found, found

            return jax.jacrev(both, has_aux=True)(theta)

        return row

    def arrays(self, theta: Float[Array, " P"]) -> AbstractNetwork:
        """The network with nothing but its trainable arrays."""
        return self.unravel(theta)

    def _with(self, block: Block) -> "LeastSquares":
        return eqx.tree_at(lambda o: o.blocks, self, (block,))

    def _own_residuals(self, theta: Float[Array, " P"]) -> Float[Array, " own"]:
        model = self.model(theta)
        found = [self._scaled(b, b.raw(model), self._real(b)) for b in self.blocks]
        return jnp.concatenate([f.ravel() for f in found])

    def _own_value_and_grad(
        self, theta: Float[Array, " P"]
    ) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        value, gradient = jnp.zeros((), theta.dtype), jnp.zeros_like(theta)
        for block in self.blocks:
            data = (block.points, block.known, self._real(block))
            total = block.points.shape[0]
            size = piece_size(total, block.pieces.gradient)
            count, rest = divmod(total, size)

            def add(sums, piece, block=block):
                part = jax.value_and_grad(lambda t: self._partial_loss(block, t, piece))
                return jax.tree.map(jnp.add, sums, part(theta)), None

            equal = jax.tree.map(
                lambda a, k=count, n=size: a[: k * n].reshape(k, n, *a.shape[1:]), data
            )
            (value, gradient), _ = jax.lax.scan(add, (value, gradient), equal)
            if rest:
                last = jax.tree.map(lambda a, n=total - rest: a[n:], data)
                (value, gradient), _ = add((value, gradient), last)
        return value, gradient

    def _partial_loss(
        self,
        block: Block,
        theta: Float[Array, " P"],
        piece: tuple[Array, Array, Array | None],
    ) -> Float[Array, ""]:
        points, known, real = piece
        raw = block.at(points, known).raw(self.model(theta))
        return 0.5 * jnp.sum(self._scaled(block, raw, real) ** 2)

    def _own_jacobian(self, theta: Float[Array, " P"]) -> Float[Array, "own P"]:
        return jnp.concatenate([self._block_jacobian(b, theta) for b in self.blocks])

    def _block_jacobian(self, block: Block, theta: Array) -> Array:
        def row(data: tuple[Array, Array]) -> Array:
            point, known = data
            return jax.jacrev(lambda th: block.rows(self.model(th), point, known))(
                theta
            )

        found = jax.lax.map(
            row,
            (block.points, block.known),
            batch_size=min(block.pieces.jacobian, block.points.shape[0]),
        )
        found = found * block.factor[:, None]
        return _without_copies(found, self._real(block)).reshape(-1, theta.size)

    def _real(self, block: Block) -> Bool[Array, " points"] | None:
        return real_rows(block.count, self.mesh)

    def _scaled(
        self, block: Block, raw: Array, real: Bool[Array, " points"] | None
    ) -> Float[Array, "points terms"]:
        return _without_copies(raw * block.factor, real)


@eqx.filter_jit
def _on_devices(how: Callable, own: Callable, objective: LeastSquares, *shared: Array):
    """`own(objective, *shared)` on each device for the objective on its points."""
    arrays, static = eqx.partition(objective, eqx.is_array)
    data = _data(arrays)
    rest = eqx.tree_at(_data, arrays, [None] * len(data))

    def local(everywhere: tuple, data: list):
        rest, shared = everywhere
        arrays = eqx.tree_at(_data, rest, data, is_leaf=lambda a: a is None)
        return own(eqx.combine(arrays, static), *shared)

    return how(local, objective.mesh)((rest, shared), data)


def _own_relative(objective: LeastSquares, theta: Array) -> Array:
    block = objective.blocks[0]
    return block.raw(objective.model(theta)) / block.scale


def _own_known(objective: LeastSquares) -> Array:
    block = objective.blocks[0]
    return block.moved(objective.parameters, block.points).known


def _data(objective: LeastSquares) -> list[Array]:
    """What is split over the devices."""
    return [a for b in objective.blocks for a in (b.points, b.known)]


def _without_copies(rows: Array, real: Bool[Array, " points"] | None) -> Array:
    """Zero in the rows of points that are copies."""
    if real is None:
        return rows
    return jnp.where(jnp.expand_dims(real, tuple(range(1, rows.ndim))), rows, 0)


def piece_size(count: int, most: int) -> int:
    """The points of a piece: few equal pieces of at most `most`, if `count` has such.

    Measured on Burgers (3 x 30, 6000 points): the gradient in pieces of 1000 points,
    which stay in the cache, takes 0.36 of the time in one piece.
    """
    few = range(1, 8 * (count // most) + 2)
    equal = (count // k for k in few if count % k == 0 and count // k <= most)
    return next(equal, most)
