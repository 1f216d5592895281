"""The value of a residual on a set of points, and its derivative by the unknowns.

A residual is a function of the point, of partial derivatives of the fields and of
integrals over fields. It is differentiated pointwise by these; what they are in terms
of the unknowns is a matrix that is computed once for each set of points.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float

from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    Coordinate,
    Expression,
    Integral,
    Partial,
    children,
    walk,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.reference.reference import NoReference
from pinnlab.reference.steady_basis import Space


CHUNK = 256
Breaks = tuple[tuple[float, ...], ...]
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Pointwise:
    """An expanded expression as a function of the point, of partials and of integrals.

    - `variables`: the coordinates and bound variables, in order.
    - `bodies`: the integrands of `integrals`, in the same form.
    """

    expression: Expression
    variables: tuple[str, ...]
    partials: tuple[Partial, ...]
    integrals: tuple[Integral, ...]
    bodies: tuple["Pointwise", ...]
    tangent: Callable[[Array, Array], tuple[Array, Array]]
    numbers: Callable[[tuple[Expression, ...], Columns], list[np.ndarray]]

    def value_and_slopes(
        self, columns: Columns, atoms: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The value [n] and its derivative by the atoms [n, atoms].

        The atoms are the partials and then the integrals. Points are handled in equal
        chunks, so that the compiled program serves every resolution.
        """
        point = np.stack([columns[v] for v in self.variables], axis=1)
        values, slopes = np.zeros(len(point)), np.zeros(atoms.shape)
        for start in range(0, len(point), CHUNK):
            part = slice(start, start + CHUNK)
            left = len(point[part])
            found = self.tangent(_padded(point[part]), _padded(atoms[part]))
            values[part] = np.asarray(found[0])[:left]
            slopes[part] = np.asarray(found[1])[:left]
        return values, slopes


def pointwise(
    expression: Expression, variables: tuple[str, ...], parameters: Mapping[str, float]
) -> Pointwise:
    """The expression in this form. Raises `NoReference` for a place that moves."""
    partials, integrals = _atoms(expression)
    for node in (*(a for p in partials for a in p.at), *_limits(integrals)):
        if uses_fields(node):
            raise NoReference("a place or a limit of an integral depends on a field")
    constants = {k: jnp.asarray(v, float) for k, v in parameters.items()}
    atoms = (*partials, *integrals)

    def value(point: Float[Array, " v"], values: Float[Array, " atoms"]) -> Array:
        named = dict(zip(variables, point, strict=True))
        known = dict(zip(atoms, values, strict=True))
        around = Surroundings(named, constants, None, known)
        return jnp.asarray(evaluate((expression,), around)[0], float)

    def numbers(
        expressions: tuple[Expression, ...], columns: Columns
    ) -> list[np.ndarray]:
        return _numbers(expressions, columns, constants)

    return Pointwise(
        expression,
        variables,
        partials,
        integrals,
        tuple(
            pointwise(i.body, (*variables, i.variable), parameters) for i in integrals
        ),
        jax.jit(jax.vmap(jax.value_and_grad(value, argnums=1))),
        numbers,
    )


def _padded(rows: np.ndarray) -> np.ndarray:
    """The rows with the last one repeated up to the length of a chunk."""
    return np.pad(rows, ((0, CHUNK - len(rows)), (0, 0)), mode="edge")


def _atoms(
    expression: Expression,
) -> tuple[tuple[Partial, ...], tuple[Integral, ...]]:
    """The outermost partials and integrals over fields."""
    found: dict[Expression, None] = {}
    seen: set[Expression] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Partial) or (
            isinstance(node, Integral) and uses_fields(node.body)
        ):
            found[node] = None
        else:
            stack.extend(children(node))
    return (
        tuple(n for n in found if isinstance(n, Partial)),
        tuple(n for n in found if isinstance(n, Integral)),
    )


def _limits(integrals: tuple[Integral, ...]) -> tuple[Expression, ...]:
    return tuple(e for i in integrals for e in (i.lower, i.upper))


def _numbers(
    expressions: tuple[Expression, ...], columns: Columns, constants: Mapping
) -> list[np.ndarray]:
    """Expressions without fields on [n] points each, [n]."""
    count = len(next(iter(columns.values())))
    if all(isinstance(e, Coordinate) for e in expressions):
        return [columns[e.name] for e in expressions if isinstance(e, Coordinate)]
    one = lambda values: [
        jnp.asarray(v, float)
        for v in evaluate(expressions, Surroundings(values, constants))
    ]
    found = jax.vmap(one)({k: jnp.asarray(v) for k, v in columns.items()})
    return [np.broadcast_to(np.asarray(f), (count,)) for f in found]


@dataclass(frozen=True)
class Site:
    """A partial derivative of one field on points: `matrix[index]` in its unknowns.

    - `matrix`: [different points, unknowns of the field].
    - `index`: [n], which row belongs to each point.
    """

    field: str
    matrix: np.ndarray
    index: np.ndarray


@dataclass(frozen=True)
class Piece:
    """Part of a Jacobian: `coefficients` [n, different points] times a site's matrix."""

    site: Site
    coefficients: sp.csr_array


@dataclass(frozen=True)
class Panel:
    """A rule of integration for each of n points: weights [n, q]; body at n q places."""

    weights: np.ndarray
    body: "Located"


@dataclass(frozen=True)
class Located:
    """A residual on given points, ready to be evaluated for any unknowns."""

    form: Pointwise
    columns: Columns
    sites: tuple[Site, ...]
    panels: tuple[Panel, ...]

    def linearize(
        self, unknowns: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, list[Piece]]:
        """The values [n] and the pieces whose sum is the Jacobian."""
        count = len(next(iter(self.columns.values())))
        atoms = np.zeros((count, len(self.sites) + len(self.panels)))
        for k, site in enumerate(self.sites):
            atoms[:, k] = (site.matrix @ unknowns[site.field])[site.index]
        inner: list[list[Piece]] = []
        for k, panel in enumerate(self.panels, len(self.sites)):
            values, pieces = panel.body.linearize(unknowns)
            atoms[:, k] = np.sum(panel.weights * values.reshape(count, -1), axis=1)
            inner.append(pieces)
        values, slopes = self.form.value_and_slopes(self.columns, atoms)
        found = [
            Piece(site, _scatter(slopes[:, k], site))
            for k, site in enumerate(self.sites)
        ]
        for k, (panel, pieces) in enumerate(zip(self.panels, inner, strict=True)):
            every = slopes[:, len(self.sites) + k, None] * panel.weights
            gather = _sums(every)
            found += [Piece(p.site, gather @ p.coefficients) for p in pieces]
        return values, found


def _scatter(slope: np.ndarray, site: Site) -> sp.csr_array:
    rows = np.arange(len(slope))
    shape = (len(slope), len(site.matrix))
    return sp.coo_array((slope, (rows, site.index)), shape=shape).tocsr()


def _sums(weights: np.ndarray) -> sp.csr_array:
    """[n, n q]: the sum over each point's q places."""
    count, places = weights.shape
    rows = np.repeat(np.arange(count), places)
    columns = np.arange(count * places)
    shape = (count, count * places)
    return sp.coo_array((weights.ravel(), (rows, columns)), shape=shape).tocsr()


def locate(
    form: Pointwise,
    columns: Columns,
    spaces: Mapping[str, Space],
    breaks: Breaks,
    nodes: int,
) -> Located:
    """The residual on points given by columns [n].

    **Arguments:**

    - `breaks`: where coefficients jump, for each coordinate.
    - `nodes`: Gauss-Legendre nodes on each panel of an integral.
    """
    sites = tuple(_site(form, p, columns, spaces) for p in form.partials)
    panels = tuple(
        _panel(form, i, body, columns, spaces, breaks, nodes)
        for i, body in zip(form.integrals, form.bodies, strict=True)
    )
    return Located(form, columns, sites, panels)


def _site(
    form: Pointwise, partial: Partial, columns: Columns, spaces: Mapping[str, Space]
) -> Site:
    places = np.stack(form.numbers(partial.at, columns), axis=1)
    different, index = np.unique(places, axis=0, return_inverse=True)
    matrix = spaces[partial.field].matrix(different, partial.orders)
    return Site(partial.field, matrix, index.ravel())


def _panel(
    form: Pointwise,
    node: Integral,
    body: Pointwise,
    columns: Columns,
    spaces: Mapping[str, Space],
    breaks: Breaks,
    nodes: int,
) -> Panel:
    """Gauss-Legendre panels between the limits, cut where coefficients jump."""
    lower, upper = form.numbers((node.lower, node.upper), columns)
    cuts = sorted({b for axis in _traced(node) for b in breaks[axis]})
    least, most = np.minimum(lower, upper), np.maximum(lower, upper)
    inner = [np.clip(cut, least, most) for cut in cuts]
    edges = np.stack([lower, *inner, upper], axis=1)
    if cuts:
        edges = np.where((lower > upper)[:, None], -np.sort(-edges), np.sort(edges))
    unit, unit_weights = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    variable = edges[:, :-1, None] + half * (1 + unit)
    weights = (half * unit_weights).reshape(len(lower), -1)
    places = weights.shape[1]
    every = {name: np.repeat(column, places) for name, column in columns.items()}
    every[node.variable] = variable.ravel()
    return Panel(weights, locate(body, every, spaces, breaks, nodes))


def _traced(node: Integral) -> set[int]:
    """The indices of the coordinates in whose place the bound variable stands."""
    variable = Coordinate(node.variable)
    return {
        i
        for p in walk(node.body)
        if isinstance(p, Partial)
        for i, place in enumerate(p.at)
        if place == variable
    }
