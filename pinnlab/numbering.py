"""Where rows are among those of all devices, what they are called, and pieces of them.

Rows are in the order of devices, then of blocks of terms that share points. Random
choices of an optimizer go by their order on one device instead (`Numbering`), so that
they do not depend on the number of devices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.optimizer.objective import Carry, Numbering, Visit


Points = TypeVar("Points", np.ndarray, Array)
Row = Callable[[Array, Array], tuple[Float[Array, "terms P"], Float[Array, " terms"]]]
"""The gradients and the values of a point's rows, from it and what is known there."""


@dataclass(frozen=True)
class Extent:
    """The size of a block.

    - `count`: its points without copies; `total`: with them, on all devices.
    - `terms`: the rows of a point.
    """

    count: int
    total: int
    terms: int


@dataclass(frozen=True)
class Place:
    """Where a block's rows are: on each of the devices, after those of earlier blocks.

    - `first`: rows before them on a device; `rows`: of a device altogether.
    """

    extent: Extent
    first: int
    rows: int
    devices: int

    @property
    def size(self) -> int:
        """The rows of all blocks on all devices."""
        return self.rows * self.devices

    def of(self, point: Points) -> Points:
        """The index of the first row of a point, which counts all devices' points."""
        own = self.extent.total // self.devices
        device, local = point // own, point % own
        return device * self.rows + self.first + local * self.extent.terms


def places(extents: Sequence[Extent], devices: int) -> tuple[Place, ...]:
    """The places of blocks, which are split evenly over the devices."""
    sizes = [e.total // devices * e.terms for e in extents]
    starts = np.cumsum([0, *sizes])
    return tuple(
        Place(extent, int(first), sum(sizes), devices)
        for extent, first in zip(extents, starts, strict=False)
    )


def numbering(places: Sequence[Place]) -> Numbering:
    """What the rows are called: their place without copies on one device."""
    size = places[0].size
    if places[0].devices == 1:
        return Numbering(size, size)
    number, start = np.full(size, -1), 0
    for place in places:
        points, terms = np.arange(place.extent.count), np.arange(place.extent.terms)
        own = start + points[:, None] * terms.size + terms
        number[place.of(points)[:, None] + terms] = own
        start += own.size
    copies = number < 0
    number[copies] = start + np.arange(np.sum(copies))
    return Numbering(size, start, number)


def fold(
    place: Place,
    row: Row,
    data: tuple[Float[Array, "total dim"], Float[Array, "total nodes"]],
    factor: Float[Array, " terms"],
    visit: Visit[Carry],
    carry: Carry,
    most: int,
) -> Carry:
    """Visit the rows of a block, times a factor, at most `most` at once.

    **Arguments:**

    - `data`: the block's points and what is known there.
    """
    total, terms = place.extent.total, place.extent.terms
    size = min(total, max(1, most // terms))

    def piece(carry: Carry, which: Array) -> tuple[Carry, None]:
        safe = jnp.minimum(which, total - 1)
        gradients, values = jax.vmap(row)(*(a[safe] for a in data))
        inside = (which < place.extent.count)[:, None]
        own = jnp.where(inside, factor, 0)
        index = place.of(safe)[:, None] + jnp.arange(terms)
        index = jnp.where(inside, index, place.size)
        gradients = (gradients * own[..., None]).reshape(-1, gradients.shape[-1])
        found = visit(carry, index.ravel(), (values * own).ravel(), gradients)
        return found, None

    pieces = jnp.arange(-(-total // size) * size).reshape(-1, size)
    return jax.lax.scan(piece, carry, pieces)[0]
