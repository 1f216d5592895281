"""A solution as a StableHLO program, which needs JAX to run but not pinnlab."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array, Float

from pinnlab.atomic import replacing
from pinnlab.export.extras import needed
from pinnlab.solution import Solution


PLATFORMS = ("cpu", "cuda")
DERIVATIVES = 2
"""How often the program may be differentiated after it is read."""


def write_stablehlo(solution: Solution, path: Path, *, force: bool = False) -> None:
    """Write the fields and outputs as a serialized `jax.export` program.

    It takes the coordinates by name, [n] each for any n, in 64-bit arithmetic, and
    gives a dict of [n] arrays; a complex field is `<name>_real` and `<name>_imag`.
    To read it takes JAX and the package flatbuffers; `jax.export` keeps a program
    readable for at least six months of JAX versions.

    !!! example
        ```python
        import jax
        jax.config.update("jax_enable_x64", True)
        program = jax.export.deserialize(open("burgers.stablehlo", "rb").read())
        program.call(t=t, x=x)["u"]
        ```
    """
    needed("flatbuffers", "export")
    with jax.enable_x64(True):
        content = exported(solution).serialize(vjp_order=DERIVATIVES)
    with replacing(path, force=force) as draft:
        draft.write_bytes(content)


def exported(solution: Solution) -> export.Exported:
    """The program for every platform, with a symbolic number of points."""
    with jax.enable_x64(True):
        (count,) = export.symbolic_shape("n")
        names = solution.system.coordinates
        column = jax.ShapeDtypeStruct((count,), jnp.float64)
        lowered = export.export(jax.jit(_program(solution)), platforms=PLATFORMS)
        return lowered(**dict.fromkeys(names, column))


def _program(solution: Solution) -> Callable[..., dict[str, Array]]:
    function, names = solution.all_values, solution.system.coordinates

    def fields(**columns: Float[Array, " n"]) -> dict[str, Array]:
        return jax.vmap(function)(jnp.stack([columns[n] for n in names], axis=1))

    return fields
