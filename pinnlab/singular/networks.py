"""Networks of the functions at corners and around holes."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from pinnlab.network import (
    AbstractNetwork,
    HeatCorners,
    LaplaceCorners,
    PlaneFunctions,
)
from pinnlab.singular.around import Around
from pinnlab.singular.corners import Corner


def corner_words(corners: Sequence[Corner]) -> str:
    """How many functions there are, and where."""
    count = sum(int(c.kept.sum()) for c in corners)
    places = " and ".join(f"({c.text})" for c in corners)
    return f"{count} singular functions at {places}"


def split_by_corner(
    corners: Sequence[Corner], coefficients: np.ndarray
) -> list[tuple[Corner, np.ndarray]]:
    """Coefficients [outputs, functions of all corners that are kept] by corner; those
    of the others are zero."""
    ends = np.cumsum([int(c.kept.sum()) for c in corners])[:-1]
    found = []
    for corner, some in zip(corners, np.split(coefficients, ends, axis=1), strict=True):
        every = np.zeros((len(coefficients), len(corner.kept)))
        every[:, corner.kept] = some
        found.append((corner, every))
    return found


def joined_corners(
    corners: Sequence[Corner], network: HeatCorners | LaplaceCorners
) -> np.ndarray:
    """The coefficients of a `corners_network`, [outputs, functions that are kept]."""
    places, powers, coefficients = (
        np.asarray(a) for a in (network.places, network.powers, network.coefficients)
    )
    outputs = coefficients.shape[1]
    found = [np.zeros((outputs, 0))]
    for corner in corners:
        at = np.linalg.norm(places - corner.place, axis=1).argmin()
        where = (corner.powers[:, None] == powers).all(axis=2).argmax(axis=1)
        mine = coefficients[at].reshape(outputs, -1, len(powers))[:, :, where]
        found.append(mine.reshape(outputs, -1)[:, corner.kept])
    return np.concatenate(found, axis=1)


def corners_network(
    found: list[tuple[Corner, np.ndarray]], blank: HeatCorners | LaplaceCorners
) -> AbstractNetwork:
    """Singular functions with their coefficients [outputs, functions], in the place
    of `blank`'s numbers."""
    if not found:
        return blank
    rows = [tuple(row) for c, _ in found for row in c.powers.tolist()]
    powers = np.array(list(dict.fromkeys(rows)))
    parts, outputs = 1 if isinstance(blank, HeatCorners) else 2, len(found[0][1])
    coefficients = np.zeros((len(found), outputs, parts, len(powers)))
    for i, (corner, mine) in enumerate(found):
        same = (corner.powers[:, None] == powers).all(axis=2)
        where = np.argmax(same, axis=1)
        coefficients[i][:, :, where] = mine.reshape(outputs, parts, -1)
    arrays = (
        np.array([c.place for c, _ in found]),
        np.array([c.slopes for c, _ in found]),
        powers,
        coefficients.reshape(len(found), outputs, -1),
    )
    return eqx.tree_at(
        lambda n: (n.places, n.slopes, n.powers, n.coefficients),
        blank,
        tuple(jnp.asarray(a) for a in arrays),
    )


def plane_network(
    found: list[tuple[Around, np.ndarray]], blank: PlaneFunctions
) -> AbstractNetwork:
    """The same for functions around holes and corners of a shape."""
    most = max(len(a.powers) for a, _ in found)
    outputs = len(found[0][1])
    powers = np.zeros((len(found), most, 3))
    coefficients = np.zeros((len(found), outputs, 2, most))
    for i, (around, mine) in enumerate(found):
        count = len(around.powers)
        powers[i, :count] = around.powers
        coefficients[i, :, :, :count] = mine.reshape(outputs, 2, count)
    arrays = (
        np.array([a.place for a, _ in found]),
        np.array([a.size for a, _ in found]),
        np.array([a.turn for a, _ in found]),
        powers,
        coefficients.reshape(len(found), outputs, -1),
    )
    return eqx.tree_at(
        lambda n: (n.places, n.sizes, n.turns, n.powers, n.coefficients),
        blank,
        tuple(jnp.asarray(a) for a in arrays),
    )
