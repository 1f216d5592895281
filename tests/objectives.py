"""Small least-squares problems that the optimizers' tests share."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from pinnlab.optimizer import AbstractObjective, AbstractOptimizer, Info, Numbering
from pinnlab.optimizer.objective import Carry, Visit


class Objective(AbstractObjective):
    """Rows as a function of the parameters and of `data`, which may be redrawn."""

    rows: Callable[[Array, Array], Array] = eqx.field(static=True)
    data: Array

    def residuals(self, theta: Array) -> Array:
        return self.rows(theta, self.data)

    def loss(self, theta: Array) -> Array:
        return 0.5 * jnp.sum(self.residuals(theta) ** 2)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        return jax.value_and_grad(self.loss)(theta)

    def jacobian(self, theta: Array) -> Array:
        return jax.jacfwd(self.residuals)(theta)

    def numbering(self, theta: Array) -> Numbering:
        count = jax.eval_shape(self.residuals, theta).size
        return Numbering(count, count)

    def fold_rows(
        self, theta: Array, visit: Visit[Carry], carry: Carry, most: int
    ) -> Carry:
        rows, gradients = self.residuals(theta), self.jacobian(theta)
        short = -rows.size % most
        data = (
            jnp.arange(rows.size + short).reshape(-1, most),
            jnp.pad(rows, (0, short)).reshape(-1, most),
            jnp.pad(gradients, ((0, short), (0, 0))).reshape(-1, most, theta.size),
        )
        return jax.lax.scan(lambda c, d: (visit(c, *d), None), carry, data)[0]

    def arrays(self, theta: Array) -> list[Array]:
        """Pairs as a matrix, and what is left."""
        half = theta.size // 2
        return [theta[: 2 * half].reshape(half, 2), theta[2 * half :]]


def rosenbrock(theta: Array, data: Array) -> Array:
    """Zero at theta = 1."""
    valley = 10 * (theta[1:] - theta[:-1] ** 2)
    return jnp.concatenate([valley, data - theta[:-1]])


def linear(theta: Array, data: Array) -> Array:
    return data * (theta - 1)


def pit(theta: Array, data: Array) -> Array:
    """log has no value below 0; zero at theta = data, next to that region."""
    return jnp.log(theta) - jnp.log(data)


def fit(theta: Array, data: Array) -> Array:
    """A network of four tanh units against sin(3x) at the points `data`."""
    a, w, b = theta[:4], theta[4:8], theta[8:]
    return (jnp.tanh(data[:, None] * w + b) @ a - jnp.sin(3 * data)) / data.size**0.5


FIT_START = 0.5 * jax.random.normal(jax.random.key(1), (12,), jnp.float32)
POINTS = jnp.linspace(-1.0, 1.0, 40)
CONDITION = jnp.sqrt(jnp.geomspace(1.0, 1e6, 10))


def advance(
    optimizer: AbstractOptimizer, objective: AbstractObjective, theta: Array, steps: int
) -> tuple[Array, Any, Info]:
    """Many steps in one scan, each one's report kept."""

    def body(carry: tuple, _: None) -> tuple:
        theta, state, info = optimizer.step(objective, *carry)
        return (theta, state), info

    def run(theta: Array) -> tuple:
        carry = (theta, optimizer.init(objective, theta))
        return jax.lax.scan(body, carry, None, length=steps)

    (theta, state), info = jax.jit(run)(theta)
    return theta, state, info


ROSENBROCK = Objective(rosenbrock, jnp.asarray(1.0))
CLASSIC_START = jnp.array([-1.2, 1.0])
