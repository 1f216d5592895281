"""The value of a residual on a set of points, and its derivative by the unknowns.

A residual is differentiated pointwise by the partial derivatives and integrals in it;
what these are in terms of the unknowns is a matrix that is computed once for each set
of points.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from pinnlab.equation.expression import Coordinate, Integral, Partial, walk
from pinnlab.reference.steady_basis import Space
from pinnlab.reference.steady_pointwise import Columns, Pointwise


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
    """Part of a Jacobian: `coefficients` [n, places] times a site's matrix."""

    site: Site
    coefficients: sp.csr_array


@dataclass(frozen=True)
class Panel:
    """A rule of integration for each of n points: weights [n, q], values at n q."""

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
        atoms, inner = self._atoms(unknowns)
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

    def residual(
        self, unknowns: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values [n], the atoms [n, atoms] and the derivatives by them."""
        atoms, _ = self._atoms(unknowns)
        values, slopes = self.form.value_and_slopes(self.columns, atoms)
        return values, atoms, slopes

    def _atoms(
        self, unknowns: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, list[list[Piece]]]:
        """The partials and integrals [n, atoms], and the integrals' Jacobians."""
        count = len(next(iter(self.columns.values())))
        atoms = np.zeros((count, len(self.sites) + len(self.panels)))
        for k, site in enumerate(self.sites):
            atoms[:, k] = (site.matrix @ unknowns[site.field])[site.index]
        inner: list[list[Piece]] = []
        for k, panel in enumerate(self.panels, len(self.sites)):
            values, pieces = panel.body.linearize(unknowns)
            atoms[:, k] = np.sum(panel.weights * values.reshape(count, -1), axis=1)
            inner.append(pieces)
        return atoms, inner


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
    nodes: int,
) -> Located:
    """The residual on points given by columns [n].

    **Arguments:**

    - `nodes`: Gauss-Legendre nodes on each element that an integral runs over.
    """
    sites = tuple(_site(form, p, columns, spaces) for p in form.partials)
    panels = tuple(
        _panel(form, i, body, columns, spaces, nodes)
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
    nodes: int,
) -> Panel:
    """Gauss-Legendre panels between the limits, cut where elements meet."""
    lower, upper = form.numbers((node.lower, node.upper), columns)
    every_cut = next(iter(spaces.values())).cuts
    cuts = sorted({cut for axis in _traced(node) for cut in every_cut[axis]})
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
    return Panel(weights, locate(body, every, spaces, nodes))


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
