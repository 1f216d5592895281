"""Errors of arrays against a truth."""

import numpy as np


def relative_l2(found: np.ndarray, truth: np.ndarray) -> float:
    """|found - truth| / |truth| in the Euclidean norm; absolute (RMS) for a zero truth.

    Raises `ValueError` where the shapes differ: `(N,)` against `(N, 1)` would broadcast
    silently.
    """
    _same_shape(found, truth)
    size = float(np.linalg.norm(truth))
    difference = float(np.linalg.norm(found - truth))
    return difference / size if size > 0 else difference / max(1, found.size) ** 0.5


def maximum_error(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest absolute difference."""
    _same_shape(found, truth)
    return float(np.max(np.abs(found - truth), initial=0.0))


def _same_shape(found: np.ndarray, truth: np.ndarray) -> None:
    if found.shape != truth.shape:
        raise ValueError(f"shapes differ: {found.shape} and {truth.shape}")
