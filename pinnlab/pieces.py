"""How many points are computed at one time: as many as are fast, and as fit.

More than stay in the cache are not faster, and fewer are taken where a network is so
large that the derivatives at them would need too much of the memory there is.
"""

from dataclasses import dataclass


RESIDUALS, GRADIENTS, JACOBIANS = 8192, 1024, 512
"""The most points at one time for each."""

SHARE = 1 / 8
"""The part of all memory that one piece may need."""

KEPT, FORWARD = 6, 3
"""Copies of a layer's derivatives that reverse mode keeps, and that the residual needs:
measured as XLA plans them, roughly."""


@dataclass(frozen=True)
class Pieces:
    """Points at one time, of residuals, of the loss's gradient and of Jacobians."""

    residuals: int = RESIDUALS
    gradient: int = GRADIENTS
    jacobian: int = JACOBIANS


@dataclass(frozen=True)
class Sizes:
    """What a network needs at one point, in numbers.

    `layer`: width times partial derivatives; `depth` layers; `row` numbers in the
    Jacobian's rows.
    """

    layer: int
    depth: int
    row: int
    bytes: int = 8

    @property
    def residual(self) -> int:
        """Bytes that the residual needs at a point."""
        return self.bytes * FORWARD * self.layer

    @property
    def gradient(self) -> int:
        """Bytes that the gradient needs at a point."""
        return self.bytes * KEPT * self.depth * self.layer


def pieces_for(sizes: Sizes, memory: int | None) -> Pieces:
    """The pieces that fit into a part of `memory` bytes; None: any do.

    Give all memory, not what is free now: the last bits of sums depend on pieces, and a
    run that goes on at another time should end at the same bits.
    """
    if memory is None:
        return Pieces()
    most = SHARE * memory
    return Pieces(
        max(1, min(RESIDUALS, int(most / sizes.residual))),
        max(1, min(GRADIENTS, int(most / sizes.gradient))),
        max(1, min(JACOBIANS, int(most / (sizes.gradient + sizes.bytes * sizes.row)))),
    )
