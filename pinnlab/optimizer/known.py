"""An objective of which only what was computed elsewhere is known."""

from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float

from pinnlab.network import AbstractNetwork
from pinnlab.optimizer.objective import AbstractObjective, Carry, Numbering, Visit


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

    def numbering(self, theta: Float[Array, " P"]) -> Numbering:
        """Not known."""
        raise NotImplementedError("only the value and the gradient are known")

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
