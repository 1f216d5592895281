"""A kernel K = JJ' seen through a few random directions (Nystrom's approximation).

    K ~ Y (Omega' Y)^-1 Y',   Y = K Omega

(Frangella, Tropp and Udell 2023; for physics-informed networks Guzman-Cordero, Dangel,
Goldshlager and Zeinhofer 2025). For R rows, P parameters and l directions it costs
2 l products with J and R l^2, where the exact kernel costs R^2 P + R^3/3.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pinnlab.optimizer.objective import Numbering


class Nystrom(eqx.Module):
    """K ~ U diag(values) U' with orthonormal columns in U."""

    vectors: Float[Array, "R l"]
    values: Float[Array, " l"]

    @property
    def trace(self) -> Float[Array, ""]:
        """That of the approximation, at most that of K."""
        return jnp.sum(self.values)

    def solve(self, shift: Array, z: Float[Array, " R"]) -> Float[Array, " R"]:
        """(K + shift I)^-1 z."""
        inside = self.vectors.T @ z
        outside = z - self.vectors @ inside
        return self.vectors @ (inside / (self.values + shift)) + outside / shift


def nystrom(
    multiply: Callable[[Float[Array, "R l"]], Float[Array, "R l"]],
    rows: Numbering,
    rank: int,
    dtype: jnp.dtype,
) -> Nystrom:
    """The approximation from `multiply`, which is K times several vectors.

    **Arguments:**

    - `rows`: those of K; the directions have zeros at copies.
    - `rank`: the number l of random directions; always the same ones.
    """
    shape = rows.size, min(rank, rows.count)
    raw = jax.random.normal(jax.random.key(0), shape, dtype)
    raw = jnp.where(jnp.arange(rows.size)[:, None] < rows.count, raw, 0)
    directions, _ = jnp.linalg.qr(rows.ordered(raw))
    image = multiply(directions)
    # A small multiple of the identity keeps the Cholesky factor real; it is taken
    # from the values again.
    tiny = jnp.finfo(dtype).eps * jnp.linalg.norm(image)
    tiny = jnp.where(tiny > 0, tiny, 1)
    image = image + tiny * directions
    middle = directions.T @ image
    factor = jnp.linalg.cholesky((middle + middle.T) / 2)
    root = jax.scipy.linalg.solve_triangular(factor, image.T, lower=True).T
    vectors, scales, _ = jnp.linalg.svd(root, full_matrices=False)
    return Nystrom(vectors, jnp.maximum(scales**2 - tiny, 0))
