"""The sizes of fields and residuals, so that users' units do not matter.

The network's output for a field is multiplied by the field's size, and a residual is
divided by the size of its largest summand. Both are measured, not asked for.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pinnlab.equation.expression import Expression, Partial, terms
from pinnlab.equation.structure import affine
from pinnlab.fields import Model
from pinnlab.network import AbstractNetwork
from pinnlab.rows import Rows, make_rows
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import System
from pinnlab.system.terms import Term


SAMPLE = 256
MakeNetwork = Callable[[tuple[float, ...], PRNGKeyArray], AbstractNetwork]
"""A network with the given output scales, from a key."""


def field_scales(
    system: System, make: MakeNetwork, key: PRNGKeyArray
) -> tuple[float, ...]:
    """The size that each field's network output should have.

    With the network at zero the equations leave a residual F0; a network of size one
    answers with R. Their ratio is the size at which the network can balance the
    residual. Data of penalty conditions give a lower bound.
    """
    count = len(system.fields)
    data = [_data_size(system, f) for f in system.fields]
    zero = (0.0,) * count
    at_rest = _equation_sizes(system, make(zero, key))
    found: list[float] = []
    for i in range(count):
        unit = tuple(1.0 if j == i else 0.0 for j in range(count))
        both = _equation_values(system, make(unit, key))
        rest = _equation_values(system, make(zero, key))
        answer = np.sqrt(np.mean((both - rest) ** 2, axis=0))
        ratios = [
            float(r / a)
            for r, a in zip(at_rest, answer, strict=True)
            if a > 0 and r > 0
        ]
        size = max([*ratios, data[i]]) if ratios or data[i] else 1.0
        found.append(size if np.isfinite(size) and size > 0 else 1.0)
    return tuple(found)


def _equation_sizes(system: System, network: AbstractNetwork) -> np.ndarray:
    return np.sqrt(np.mean(_equation_values(system, network) ** 2, axis=0))


def _equation_values(system: System, network: AbstractNetwork) -> np.ndarray:
    """The equations' residuals at sample points, [points, equations]."""
    rows = make_rows(system, system.equations)
    return values_of(system, rows, network, system.equations[0], SAMPLE)


def values_of(
    system: System, rows: Rows, network: AbstractNetwork, term: Term, count: int
) -> np.ndarray:
    """The rows at `count` points of the term's place."""
    points = jnp.asarray(sample(system.problem, term.place, count, seed=1))
    return np.asarray(_values(rows, Model(network, parameters_of(system)), points))


@eqx.filter_jit
def _values(rows: Rows, model: Model, points: Array) -> Array:
    def one(point: Array) -> Array:
        return rows(model, point, rows.known(model.parameters, point))

    return jax.vmap(one)(points)


def parameters_of(system: System) -> dict[str, Array]:
    """The problem's parameters as arrays."""
    return {k: jnp.asarray(v, float) for k, v in system.problem.parameters.items()}


def _data_size(system: System, field: str) -> float:
    """The largest value that the penalty conditions ask of the field."""
    largest = 0.0
    for term in system.penalties:
        if not isinstance(term.residual, Expression):
            continue
        form = affine(term.residual)
        if form is None:
            continue
        atoms = [a for a in form.coefficients if isinstance(a, Partial)]
        values = [p for p in atoms if p.field == field]
        if len(values) != 1 or any(values[0].orders):
            continue
        asked = form.rest / form.coefficients[values[0]]
        points = sample(system.problem, term.place, SAMPLE, seed=0)
        size = np.abs(array_values(system.problem, (asked,), points))
        largest = max(largest, float(np.max(size[np.isfinite(size)], initial=0.0)))
    return largest


def term_scale(system: System, term: Term, network: AbstractNetwork) -> float:
    """The RMS of a term's largest summand for a network of the right size."""
    if not isinstance(term.residual, Expression):
        summands: Sequence[Term | Expression] = (term,)
    else:
        summands = terms(term.residual)
    values = values_of(system, make_rows(system, summands), network, term, SAMPLE)
    size = float(np.max(np.sqrt(np.mean(values**2, axis=0))))
    return size if np.isfinite(size) and size > 0 else 1.0
