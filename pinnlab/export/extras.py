"""Packages that only some users need, imported when they are used."""

from importlib import import_module
from types import ModuleType

from pinnlab.errors import ProblemError


def needed(module: str, extra: str) -> ModuleType:
    """The module; `ProblemError` that names the extra where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise ProblemError(
            f"this needs the package {package}, which is not installed",
            hint=f"pip install 'pinnlab-jax[{extra}]'",
        ) from error
