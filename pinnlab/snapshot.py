"""All that training is at a moment between two steps, as arrays with names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_unflatten
from jaxtyping import Array

from pinnlab.errors import ProblemError
from pinnlab.record import Record


Tree = TypeVar("Tree")
Arrays = Mapping[str, np.ndarray | Array]


@dataclass(frozen=True)
class Position:
    """Where training is: the stage and the iterations done in it.

    - `rollbacks`: in this stage, after losses that were not finite.
    - `stalls`: looks in a row that followed a stall.
    """

    stage: int = 0
    done: int = 0
    rollbacks: int = 0
    stalls: int = 0


@dataclass(frozen=True)
class Snapshot:
    """What training needs to go on as if it had never stopped.

    - `arrays`: parameters, key, best model and measurements, all of the objective
        (points, weights, scales), the optimizer's state.
    - `complete`: whether the optimizer's state is among them.
    """

    position: Position
    arrays: Arrays
    record: Record
    complete: bool = True


def named(tree: object, prefix: str) -> dict[str, Array]:
    """The arrays of a tree by their paths, as in `objective/blocks/0/points`."""
    leaves, _ = tree_flatten_with_path(eqx.filter(tree, eqx.is_array))
    return {_name(prefix, path): leaf for path, leaf in leaves}


def filled(tree: Tree, arrays: Arrays, prefix: str) -> Tree:
    """The tree with its arrays replaced by those of their names.

    Raises `ProblemError` where one is missing or has another shape or type.
    """
    dynamic, static = eqx.partition(tree, eqx.is_array)
    leaves, structure = tree_flatten_with_path(dynamic)
    found = []
    for path, leaf in leaves:
        name = _name(prefix, path)
        array = arrays.get(name)
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ProblemError(
                f"the checkpoint does not fit: '{name}' is missing or of another shape",
                hint="leave --resume away to start anew",
            )
        found.append(jnp.array(array))
    return eqx.combine(tree_unflatten(structure, found), static)


def _name(prefix: str, path: tuple) -> str:
    return "/".join((prefix, keystr(path, simple=True, separator="/"))).rstrip("/")
