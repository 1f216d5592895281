"""When a result was made, and with what."""

import datetime
import platform

import equinox as eqx
import jax
import numpy as np

import pinnlab
from pinnlab.problem.problem import Problem


def provenance(problem: Problem) -> dict[str, str | int | float]:
    """The attributes of a result file that say where it comes from."""
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
        "title": problem.title,
        "pinnlab_version": pinnlab.__version__,
        "jax_version": jax.__version__,
        "equinox_version": eqx.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }
