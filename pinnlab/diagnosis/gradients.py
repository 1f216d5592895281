"""How much each term pulls on the network's parameters, and whether terms conflict."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from pinnlab.residual import LeastSquares
from pinnlab.result import TermGradient
from pinnlab.weighting.terms import alone


def term_gradients(
    objective: LeastSquares, theta: Float[Array, " P"]
) -> tuple[TermGradient, ...]:
    """The share of each term's gradient, and its cosine with that of all others.

    A cosine near -1 with a similar size means that what serves the one term harms the
    others: training has found a compromise between them (Wang et al., 2021).
    """
    gradient = eqx.filter_jit(lambda o, th: o.value_and_grad(th)[1])
    names: list[str] = []
    found: list[np.ndarray] = []
    for i, block in enumerate(objective.blocks):
        for j, name in enumerate(block.rows.names):
            names.append(name)
            found.append(np.asarray(gradient(alone(objective, i, j), theta), float))
    sizes = [float(np.linalg.norm(g)) for g in found]
    total = np.sum(found, axis=0)
    whole = sum(sizes) or 1.0
    return tuple(
        TermGradient(name, size / whole, _cosine(g, total - g))
        for name, size, g in zip(names, sizes, found, strict=True)
    )


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0
