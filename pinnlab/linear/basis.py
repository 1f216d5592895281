"""Sine features on pieces of the domain together with singular functions."""

from dataclasses import dataclass

import numpy as np

from pinnlab.linear.features import Features
from pinnlab.linear.partition import Partition
from pinnlab.singular.around import Around
from pinnlab.singular.corners import Corner
from pinnlab.system.forms import LinearForm, Piece


@dataclass(frozen=True)
class Basis:
    """Functions of which each lives on one piece: sine features, then corners'.

    - `features`: of every piece.
    - `corners`: with the piece that each belongs to.
    """

    features: tuple[Features, ...]
    partition: Partition
    corners: tuple[Corner | Around, ...]

    @property
    def count(self) -> int:
        """The number of functions."""
        return len(self.singular)

    @property
    def singular(self) -> np.ndarray:
        """Which functions are singular somewhere, [count]."""
        smooth = sum(f.count for f in self.features)
        extra = sum(int(c.kept.sum()) for c in self.corners)
        return np.arange(smooth + extra) >= smooth

    def matrix(self, form: LinearForm, fields: tuple[str, ...]) -> np.ndarray:
        """The rows of a form, [n, fields * count]."""
        blocks = [
            f.matrix(self.partition.restricted(form, i), fields)
            for i, f in enumerate(self.features)
        ]
        for corner in self.corners:
            i = int(self.partition.piece(corner.place))
            blocks.append(_rows(corner, self.partition.restricted(form, i), fields))
        shape = (len(form.rest), len(fields), -1)
        rows = np.concatenate([b.reshape(shape) for b in blocks], axis=2)
        return rows.reshape(len(rows), -1)

    def columns(self, points: np.ndarray, orders: tuple[int, ...]) -> np.ndarray:
        """A derivative of every function at [n, dim] points, [n, count]."""
        one = Piece("", orders, np.ones((len(points), 1)), points[:, None])
        return self.matrix(LinearForm((one,), np.zeros(len(points))), ("",))

    def summands(
        self, form: LinearForm, fields: tuple[str, ...], coefficients: np.ndarray
    ) -> np.ndarray:
        """The values of every piece of a form, [n, pieces].

        `coefficients`: [fields * count].
        """
        alone = (LinearForm((p,), form.rest) for p in form.pieces)
        columns = [self.matrix(f, fields) @ coefficients for f in alone]
        return np.stack(columns, axis=1)

    def size(self, form: LinearForm) -> float:
        """About the RMS of the form's largest piece over the sine features alone:
        singular functions have none."""
        parts = enumerate(self.features)
        return max(f.size(self.partition.restricted(form, i)) for i, f in parts)

    def values(self, points: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The fields at [n, dim] points from [fields, count] coefficients."""
        return self.columns(points, (0,) * points.shape[1]) @ coefficients.T


def _rows(
    corner: Corner | Around, form: LinearForm, fields: tuple[str, ...]
) -> np.ndarray:
    rows = np.zeros((len(form.rest), len(fields), int(corner.kept.sum())))
    for piece in form.pieces:
        found = corner.columns(piece.location, piece.orders)
        j = fields.index(piece.field)
        rows[:, j] += np.einsum("nq,nqs->ns", piece.coefficient, found)
    return rows
