"""Residuals at points: the rows of terms at one point, and blocks of points."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import static_nodes
from pinnlab.fields import Fields, Model, partials_by_jets
from pinnlab.pieces import Pieces
from pinnlab.problem.shape import Shape
from pinnlab.system.system import System
from pinnlab.system.terms import Term


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

    Points that are `moving` are drawn from the box between `lower` and `upper`, as far
    as it belongs to the `shape` (if one is given); if `adaptive`, by residual. There
    are `count` points; those that may follow them are copies, without weight, so that
    every device has as many. `pieces` says how many are computed at one time.
    """

    rows: Rows
    moving: bool = eqx.field(static=True)
    adaptive: bool = eqx.field(static=True)
    count: int = eqx.field(static=True)
    lower: Float[Array, " dim"]
    upper: Float[Array, " dim"]
    points: Float[Array, "points dim"]
    known: Float[Array, "points nodes"]
    scale: Float[Array, " terms"]
    weight: Float[Array, " terms"]
    pieces: Pieces = eqx.field(static=True, default=Pieces())
    shape: Shape | None = eqx.field(static=True, default=None)

    def raw(self, model: Model) -> Float[Array, "points terms"]:
        """The unscaled residuals at the block's points, a piece of many at a time."""

        def row(data: tuple[Array, Array]) -> Array:
            return self.rows(model, *data)

        data = self.points, self.known
        if self.points.shape[0] <= self.pieces.residuals:
            return jax.vmap(row)(data)
        return jax.lax.map(row, data, batch_size=self.pieces.residuals)

    @property
    def factor(self) -> Float[Array, " terms"]:
        """What a raw residual is multiplied with."""
        return jnp.sqrt(self.weight / self.count) / self.scale

    def at(
        self, points: Float[Array, "points dim"], known: Float[Array, "points nodes"]
    ) -> "Block":
        """The block with other points and what is known there."""
        return eqx.tree_at(lambda b: (b.points, b.known), self, (points, known))

    def moved(
        self, parameters: dict[str, Array], points: Float[Array, "points dim"]
    ) -> "Block":
        """The block on other points."""
        known = jax.vmap(self.rows.known, in_axes=(None, 0))(parameters, points)
        return self.at(points, known)
