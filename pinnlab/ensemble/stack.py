"""Members of an ensemble as one tree: every array has the members as its first axis."""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from pinnlab.residual import LeastSquares
from pinnlab.rows import Rows


Tree = TypeVar("Tree")


def stacked(trees: Sequence[Tree]) -> Tree:
    """One tree with the arrays of all; what is no array is taken from the first.

    Raises `ValueError` where the arrays of two members differ in number, shape or type.
    """
    every = [jax.tree.leaves(eqx.filter(t, eqx.is_array)) for t in trees]
    kinds = [[(a.shape, a.dtype) for a in leaves] for leaves in every]
    if any(k != kinds[0] for k in kinds):
        raise ValueError("members differ in the shapes of their arrays")
    dynamic, static = eqx.partition(trees[0], eqx.is_array)
    columns = [jnp.stack(column) for column in zip(*every, strict=True)]
    structure = jax.tree.structure(dynamic)
    return eqx.combine(jax.tree.unflatten(structure, columns), static)


def member(tree: Tree, index: int) -> Tree:
    """One member of a stacked tree."""
    return jax.tree.map(lambda a: a[index] if eqx.is_array(a) else a, tree)


def difference(first: LeastSquares, other: LeastSquares) -> str:
    """Why two objectives cannot share a compiled program; "" where they can."""
    if len(first.blocks) != len(other.blocks):
        return "the conditions that enter the loss differ"
    for a, b in zip(first.blocks, other.blocks, strict=True):
        if (a.moving, a.adaptive) != (b.moving, b.adaptive) or not _same(
            a.rows, b.rows
        ):
            names = ", ".join(dict.fromkeys(a.rows.names))
            return f"the compiled equations of '{names}' differ"
    if jax.tree.structure(first.fixed) != jax.tree.structure(other.fixed):
        return "the networks differ in more than their weights and sizes"
    shapes = [
        [(a.shape, a.dtype) for a in jax.tree.leaves(eqx.filter(o, eqx.is_array))]
        for o in (first, other)
    ]
    return "" if shapes[0] == shapes[1] else "the numbers of points or weights differ"


def _same(a: Rows, b: Rows) -> bool:
    """Whether the programs are the same, whatever the values of the parameters."""
    alike = (a.names, a.functions, a.nodes) == (b.names, b.functions, b.nodes)
    return alike and (a.system is b.system or a.system.ansatz == b.system.ansatz)
