"""The best model of a run so far, and what was measured last."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.programs import Programs
from pinnlab.residual import LeastSquares
from pinnlab.snapshot import Arrays


class Best:
    """The parameters with the smallest held-out residual.

    - `heldout`: every term's held-out RMS residual at `theta`; `last` at the last look.
    - `error`: the known relative error at the last look, None where there is no truth.
    """

    def __init__(
        self,
        theta: Float[Array, " P"] | np.ndarray,
        error_of: Callable[[Array], Array] | None = None,
    ):
        self.theta = np.array(theta)
        self.heldout = np.full(1, np.inf)
        self.last = self.heldout
        self.error: float | None = None
        self._error_of = error_of

    @property
    def size(self) -> float:
        """The RMS of the last look over all terms."""
        return _rms(self.last)

    @property
    def worst(self) -> float:
        """The largest held-out residual of a term at `theta`."""
        return float(np.max(self.heldout))

    @property
    def known(self) -> bool:
        """Whether any model was measured to be finite."""
        return bool(np.isfinite(self.heldout).all())

    def look(
        self,
        programs: Programs,
        objective: LeastSquares,
        theta: Float[Array, " P"],
        key: Array,
    ) -> LeastSquares:
        """Measure parameters on fresh points, and keep them if they are the best.

        **Returns:** the objective on new training points.
        """
        fresh, heldout = programs.look(objective, theta, key)
        error = None if self._error_of is None else float(self._error_of(theta))
        self.measured(theta, np.asarray(heldout), error)
        return fresh

    def measured(
        self,
        theta: Float[Array, " P"] | np.ndarray,
        heldout: np.ndarray,
        error: float | None,
    ) -> None:
        """Take note of a look at parameters, and keep them if they are the best."""
        self.last = heldout
        if self.size < _rms(self.heldout):
            self.keep(theta)
        self.error = error

    def keep(self, theta: Float[Array, " P"] | np.ndarray) -> None:
        """Take the parameters that were measured last as the best."""
        self.theta, self.heldout = np.array(theta), self.last

    def met(self, heldout: float, error: float) -> bool:
        """Whether the error, or where it is not known the residual, is below these."""
        if self.error is not None:
            return self.error < error
        return self.size < heldout

    def renewed(
        self,
        theta: Float[Array, " P"],
        error_of: Callable[[Array], Array] | None,
    ) -> "Best":
        """The same model in other parameters, as it was measured."""
        found = Best(theta, error_of)
        found.heldout, found.last, found.error = self.heldout, self.heldout, self.error
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything of this, by name."""
        return {
            "best/theta": self.theta,
            "best/heldout": self.heldout,
            "best/last": self.last,
            "best/error": np.array(np.nan if self.error is None else self.error),
        }

    def restore(self, arrays: Arrays) -> None:
        """The inverse of `arrays`."""
        self.theta = np.array(arrays["best/theta"])
        self.heldout = np.array(arrays["best/heldout"])
        self.last = np.array(arrays["best/last"])
        error = float(jnp.asarray(arrays["best/error"]))
        self.error = None if np.isnan(error) else error


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
