"""What an optimizer is given, and what it is: two abstract classes and a report.

A step has fixed shapes and may be used in `scan` and `while_loop`; what it has to say
is in arrays, so nothing is read back from the device inside a loop.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped


Carry = TypeVar("Carry")
Visit = Callable[
    [Carry, Int[Array, " k"], Float[Array, " k"], Float[Array, "k P"]], Carry
]
"""Takes what was gathered so far, and some rows: their indices, values, gradients."""


@dataclass(frozen=True)
class Numbering:
    """What rows are called, on however many devices: random choices go by it.

    - `size`: all rows, R; `count`: those that are no copies.
    - `number`: of each row its place in the order of one device, [R]; copies, whose
        rows are 0, come last. None where the rows are in that order: a program would
        hold it as a constant.
    """

    size: int
    count: int
    number: np.ndarray | None = None

    def ordered(self, named: Shaped[Array, "R ..."]) -> Shaped[Array, "R ..."]:
        """What belongs to the numbers 0, 1, ..., in the order of the rows."""
        return named if self.number is None else named[self.number]


class AbstractObjective(eqx.Module):
    """A least-squares loss of a flat parameter vector, L = 1/2 |r(theta)|^2.

    Points and weights are array leaves: new points do not retrace a compiled step.
    """

    @abstractmethod
    def residuals(self, theta: Float[Array, " P"]) -> Float[Array, " R"]:
        """The rows r, already scaled."""

    @abstractmethod
    def loss(self, theta: Float[Array, " P"]) -> Float[Array, ""]:
        """L = 1/2 |r|^2."""

    @abstractmethod
    def value_and_grad(
        self, theta: Float[Array, " P"]
    ) -> tuple[Float[Array, ""], Float[Array, " P"]]:
        """L and its gradient J'r."""

    @abstractmethod
    def jacobian(self, theta: Float[Array, " P"]) -> Float[Array, "R P"]:
        """J = dr/dtheta."""

    @abstractmethod
    def numbering(self, theta: Float[Array, " P"]) -> Numbering:
        """What the rows are called."""

    @abstractmethod
    def fold_rows(
        self,
        theta: Float[Array, " P"],
        visit: Visit[Carry],
        carry: Carry,
        most: int,
    ) -> Carry:
        """Visit all rows of r and J, at most `most` at once, and gather the carry.

        Where pieces are padded the index is R or above, and value and gradient are 0.
        """

    @abstractmethod
    def arrays(self, theta: Float[Array, " P"]) -> PyTree[Array]:
        """The parameters as the arrays they stand for: matrices, vectors, numbers."""


class Info(eqx.Module):
    """What a step reports.

    - `loss`, `grad_norm`: after the step (Adam: before it).
    - `step_size`: the factor along the search direction or the learning rate; 1 for
      Levenberg-Marquardt, the radius for the sketched Gauss-Newton method; 0 where the
      step was rejected.
    - `damping`: the lambda that is added to J'J or JJ', 0 where there is none.
    - `evaluations`: losses or residuals evaluated, with or without a gradient.
    - `accepted`: whether the parameters changed.
    - `stalled`: no further step can lower this loss; `refresh` clears it.
    """

    loss: Float[Array, ""]
    grad_norm: Float[Array, ""]
    step_size: Float[Array, ""]
    damping: Float[Array, ""]
    evaluations: Int[Array, ""]
    accepted: Bool[Array, ""]
    stalled: Bool[Array, ""]


State = TypeVar("State", bound=eqx.Module)


class AbstractOptimizer(eqx.Module, Generic[State]):
    """A step rule: `init` once, `step` many times, `refresh` after a redraw."""

    @abstractmethod
    def init(self, objective: AbstractObjective, theta: Float[Array, " P"]) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: State
    ) -> tuple[Float[Array, " P"], State, Info]:
        """One step: never to non-finite parameters."""

    @abstractmethod
    def refresh(
        self, objective: AbstractObjective, theta: Float[Array, " P"], state: State
    ) -> State:
        """The state for an objective whose points changed.

        Value and gradient are computed anew, the curvature is kept.
        """

    @abstractmethod
    def careful(self) -> "AbstractOptimizer[State]":
        """The same with a shorter first step: for a start after a divergence."""
