"""Weights of terms and points that follow training, one rule a file.

A rule is a function of the objective and the parameters that gives the objective with
other weights. It is applied where training looks at its state, after new points were
drawn.
"""

from collections.abc import Callable

from jaxtyping import Array

from pinnlab.residual import LeastSquares
from pinnlab.weighting.attention import attention
from pinnlab.weighting.causal import causal
from pinnlab.weighting.gradient_norm import gradient_norm
from pinnlab.weighting.ntk import ntk


Weighting = Callable[[LeastSquares, Array], LeastSquares]

WEIGHTINGS: dict[str, Weighting] = {
    "gradient_norm": gradient_norm,
    "ntk": ntk,
    "causal": causal,
    "attention": attention,
}
POINTWISE = ("causal", "attention")
"""Rules that weigh the points of the equations."""

__all__ = ["POINTWISE", "WEIGHTINGS", "Weighting", "attention", "causal"]
__all__ += ["gradient_norm", "ntk"]
