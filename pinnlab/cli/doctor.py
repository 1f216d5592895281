"""`doctor`: what pinnlab runs on, for a bug report or a puzzled user."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import typer

from pinnlab.cli.terminal import friendly


PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "h5py", "matplotlib")


@friendly
def doctor() -> None:
    """Show versions, devices and precision."""
    import jax
    import jax.numpy as jnp

    import pinnlab
    from pinnlab.cli.gallery import gallery, gallery_folder

    lines = {"pinnlab": pinnlab.__version__, "python": platform.python_version()}
    lines |= {name: _version(name) for name in PACKAGES}
    lines["system"] = f"{platform.system()} {platform.machine()}"
    lines["cores"] = str(_cores())
    devices = (f"{d.platform} ({d.device_kind})" for d in jax.devices())
    lines["devices"] = ", ".join(devices)
    with jax.enable_x64(True):
        # The gap above 1: 2.2e-16 where float64 is real.
        gap = float(jnp.nextafter(jnp.ones(()), 2.0) - 1.0)
    answer = "yes" if gap < 1e-15 else "NO"
    lines["float64"] = f"{answer} (gap above 1: {gap:.1e})"
    lines["gallery"] = f"{len(gallery())} problems in {gallery_folder()}"
    for name, value in lines.items():
        typer.echo(f"{name:<11} {value}")


def _cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):  # Those that this process may use.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
