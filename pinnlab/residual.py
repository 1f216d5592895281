"""Residuals of a model: blocks of terms that share points, and the least squares."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Orders, Surroundings, Wanted, evaluate
from pinnlab.equation.expression import Expression
from pinnlab.equation.jets import jets
from pinnlab.equation.structure import static_nodes
from pinnlab.network import AbstractNetwork
from pinnlab.optimizer.objective import AbstractObjective, Carry, Visit
from pinnlab.system.system import System
from pinnlab.system.terms import Term


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


class Rows(eqx.Module):
    """The residuals of several terms at one point, as a function of the model.

    `functions` are the terms' expressions in network outputs, or the user's callables;
    `nodes` the sub-expressions whose values are computed once per point. Where they are
    `weighted`, a last known number, 1 at first, multiplies the point's rows.
    """

    system: System = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    functions: tuple[Expression | Callable, ...] = eqx.field(static=True)
    nodes: tuple[Expression, ...] = eqx.field(static=True)
    weighted: bool = eqx.field(static=True, default=False)

    @property
    def width(self) -> int:
        """How many numbers are known at a point."""
        return len(self.nodes) + self.weighted

    def known(
        self, parameters: dict[str, Array], point: Float[Array, " dim"]
    ) -> Float[Array, " nodes"]:
        """The values of `nodes` at the point."""
        values = dict(zip(self.system.coordinates, point, strict=True))
        found = evaluate(self.nodes, Surroundings(values, parameters))
        found = [*found, 1.0] if self.weighted else found
        return jnp.array([jnp.asarray(v, point.dtype) for v in found], point.dtype)

    def __call__(
        self, model: Model, point: Float[Array, " dim"], known: Float[Array, " nodes"]
    ) -> Float[Array, " terms"]:
        """The residuals at the point."""
        values = dict(zip(self.system.coordinates, point, strict=True))
        partials = partials_by_jets(model.network, self.system.fields)
        memory = dict(zip(self.nodes, known[: len(self.nodes)], strict=True))
        around = Surroundings(values, model.parameters, partials, memory)
        written = [f for f in self.functions if isinstance(f, Expression)]
        found = iter(evaluate(written, around) if written else ())
        rows = []
        for function in self.functions:
            if isinstance(function, Expression):
                value = next(found)
            else:
                value = function(Fields(self.system, model), point)
            rows.append(jnp.asarray(value, point.dtype).reshape(()))
        return jnp.stack(rows) * known[-1] if self.weighted else jnp.stack(rows)


def make_rows(
    system: System, terms: Sequence[Term | Expression], weighted: bool = False
) -> Rows:
    """The rows of terms (or of expressions in the fields)."""
    functions = []
    names = tuple(t.name if isinstance(t, Term) else "" for t in terms)
    for term in terms:
        residual = term.residual if isinstance(term, Term) else term
        if isinstance(residual, Expression):
            residual = system.imposed(residual)
        functions.append(residual)
    written = [f for f in functions if isinstance(f, Expression)]
    nodes = dict.fromkeys(n for f in written for n in static_nodes(f))
    return Rows(system, names, tuple(functions), tuple(nodes), weighted)


class Block(eqx.Module):
    """Terms that share points: rows r / scale * sqrt(weight / number of points).

    Points that are `moving` are drawn from the box between `lower` and `upper`; if
    `adaptive`, by residual.
    """

    rows: Rows
    moving: bool = eqx.field(static=True)
    adaptive: bool = eqx.field(static=True)
    lower: Float[Array, " dim"]
    upper: Float[Array, " dim"]
    points: Float[Array, "points dim"]
    known: Float[Array, "points nodes"]
    scale: Float[Array, " terms"]
    weight: Float[Array, " terms"]

    def raw(self, model: Model) -> Float[Array, "points terms"]:
        """The unscaled residuals at the block's points."""
        return jax.vmap(self.rows, in_axes=(None, 0, 0))(model, self.points, self.known)

    @property
    def factor(self) -> Float[Array, " terms"]:
        """What a raw residual is multiplied with."""
        return jnp.sqrt(self.weight / self.points.shape[0]) / self.scale

    def moved(self, model: Model, points: Float[Array, "points dim"]) -> "Block":
        """The block on other points."""
        known = jax.vmap(self.rows.known, in_axes=(None, 0))(model.parameters, points)
        return eqx.tree_at(lambda b: (b.points, b.known), self, (points, known))


class LeastSquares(AbstractObjective):
    """loss(theta) = 1/2 sum of the squares of all blocks' rows.

    `theta` is the flat vector of the network's trainable arrays.
    """

    blocks: tuple[Block, ...]
    parameters: dict[str, Array]
    unravel: Callable[[Array], AbstractNetwork] = eqx.field(static=True)
    fixed: AbstractNetwork
    chunk: int = eqx.field(static=True, default=512)

    def model(self, theta: Float[Array, " P"]) -> Model:
        """The model of a parameter vector."""
        return Model(eqx.combine(self.unravel(theta), self.fixed), self.parameters)

    def residuals(self, theta: Float[Array, " P"]) -> Float[Array, " R"]:
        """All rows, scaled."""
        model = self.model(theta)
        return jnp.concatenate([(b.raw(model) * b.factor).ravel() for b in self.blocks])

    def loss(self, theta: Float[Array, " P"]) -> Float[Array, ""]:
        """1/2 |residuals|^2."""
        return 0.5 * jnp.sum(self.residuals(theta) ** 2)

    def value_and_grad(
        self, theta: Float[Array, " P"]
    ) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """The loss and its gradient, a cache-sized piece of the points at a time."""
        value, gradient = jnp.zeros((), theta.dtype), jnp.zeros_like(theta)
        for block in self.blocks:
            count = pieces(block.points.shape[0])
            data = jax.tree.map(
                lambda a, n=count: a.reshape(n, a.shape[0] // n, a.shape[1]),
                (block.points, block.known),
            )

            def add(total, piece, block=block):
                part = jax.value_and_grad(lambda t: self._partial_loss(block, t, piece))
                return jax.tree.map(jnp.add, total, part(theta)), None

            (value, gradient), _ = jax.lax.scan(add, (value, gradient), data)
        return value, gradient

    def _partial_loss(
        self, block: Block, theta: Float[Array, " P"], piece: tuple[Array, Array]
    ) -> Float[Array, ""]:
        model = self.model(theta)
        raw = jax.vmap(block.rows, in_axes=(None, 0, 0))(model, *piece)
        return 0.5 * jnp.sum((raw * block.factor) ** 2)

    def jacobian(self, theta: Float[Array, " P"]) -> Float[Array, "R P"]:
        """The rows' gradients: reverse mode per point, in chunks of points."""
        return jnp.concatenate([self._jacobian(b, theta) for b in self.blocks])

    def _jacobian(self, block: Block, theta: Float[Array, " P"]) -> Array:
        def row(data: tuple[Array, Array]) -> Array:
            point, known = data
            return jax.jacrev(lambda th: block.rows(self.model(th), point, known))(
                theta
            )

        found = jax.lax.map(
            row,
            (block.points, block.known),
            batch_size=min(self.chunk, block.points.shape[0]),
        )
        return (found * block.factor[:, None]).reshape(-1, theta.size)

    def fold_rows(
        self,
        theta: Float[Array, " P"],
        visit: Visit[Carry],
        carry: Carry,
        most: int,
    ) -> Carry:
        """Rows and their gradients piece by piece: no Jacobian is kept."""
        start, end = 0, sum(b.points.shape[0] * b.scale.size for b in self.blocks)
        for block in self.blocks:
            carry = self._fold_block(block, theta, visit, carry, most, start, end)
            start += block.points.shape[0] * block.scale.size
        return carry

    def _fold_block(
        self,
        block: Block,
        theta: Float[Array, " P"],
        visit: Visit[Carry],
        carry: Carry,
        most: int,
        start: int,
        end: int,
    ) -> Carry:
        total, terms = block.points.shape[0], block.scale.size
        size = min(total, max(1, most // terms))

        def row(point: Array, known: Array) -> tuple[Array, Array]:
            def both(th: Array) -> tuple[Array, Array]:
                found = block.rows(self.model(th), point, known)
                return found, found

            return jax.jacrev(both, has_aux=True)(theta)

        def piece(carry: Carry, which: Array) -> tuple[Carry, None]:
            safe = jnp.minimum(which, total - 1)
            gradients, values = jax.vmap(row)(block.points[safe], block.known[safe])
            inside = (which < total)[:, None]
            factor = jnp.where(inside, block.factor, 0)
            index = start + which[:, None] * terms + jnp.arange(terms)
            index = jnp.where(inside, index, end)
            gradients = (gradients * factor[..., None]).reshape(-1, theta.size)
            found = visit(carry, index.ravel(), (values * factor).ravel(), gradients)
            return found, None

        pieces_of = jnp.arange(-(-total // size) * size).reshape(-1, size)
        return jax.lax.scan(piece, carry, pieces_of)[0]

    def arrays(self, theta: Float[Array, " P"]) -> AbstractNetwork:
        """The network with nothing but its trainable arrays."""
        return self.unravel(theta)


class Known(AbstractObjective):
    """An objective whose value and gradient were computed elsewhere.

    Optimizers start and refresh on it, so that the gradient is compiled once only.
    """

    value: Float[Array, ""]
    gradient: Float[Array, " P"]
    unravel: Callable[[Array], AbstractNetwork] = eqx.field(static=True)

    def residuals(self, theta: Float[Array, " P"]) -> Float[Array, " R"]:
        """Not known."""
        raise NotImplementedError("only the value and the gradient are known")

    def jacobian(self, theta: Float[Array, " P"]) -> Float[Array, "R P"]:
        """Not known."""
        raise NotImplementedError("only the value and the gradient are known")

    def loss(self, theta: Float[Array, " P"]) -> Float[Array, ""]:
        """The value."""
        return self.value

    def value_and_grad(
        self, theta: Float[Array, " P"]
    ) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """Both."""
        return self.value, self.gradient

    def fold_rows(
        self,
        theta: Float[Array, " P"],
        visit: Visit[Carry],
        carry: Carry,
        most: int,
    ) -> Carry:
        """Not known."""
        raise NotImplementedError("only the value and the gradient are known")

    def arrays(self, theta: Float[Array, " P"]) -> AbstractNetwork:
        """The network with nothing but its trainable arrays."""
        return self.unravel(theta)


def pieces(count: int, most: int = 1024) -> int:
    """The smallest number of equal pieces of at most `most` points; 1 if none is near.

    Measured on Burgers (3 x 30, 6000 points): the gradient in pieces of 1000 points,
    which stay in the cache, takes 0.36 of the time in one piece.
    """
    few = range(1, 8 * (count // most) + 2)
    return next((k for k in few if count % k == 0 and count // k <= most), 1)
