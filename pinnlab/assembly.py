"""A system and settings put together: the network and the least-squares problem."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.memory import device_memory
from pinnlab.network import (
    AbstractNetwork,
    Corrected,
    Scaled,
    Sum,
    blank_corners,
    blank_pieces,
    blank_separable,
    make_network,
    trainable,
)
from pinnlab.pieces import Pieces, Sizes, pieces_for
from pinnlab.residual import LeastSquares
from pinnlab.rows import Block, make_rows
from pinnlab.sampling import sample
from pinnlab.scaling import parameters_of, term_scale
from pinnlab.settings import FEATURES, NetworkSettings, Settings
from pinnlab.system.reflected import reflected
from pinnlab.system.system import System
from pinnlab.system.terms import Term
from pinnlab.weighting import POINTWISE


def network_of(
    system: System,
    settings: Settings,
    scales: tuple[float, ...],
    key: PRNGKeyArray,
) -> AbstractNetwork:
    """The network that the settings describe."""
    axes, names = system.problem.axes, system.coordinates
    if settings.strategy == "separable":
        return _separable(system, settings.network)
    net = settings.network
    if net.corrected:
        alone = dataclasses.replace(
            settings, network=dataclasses.replace(net, corrected=False)
        )
        base = network_of(system, alone, scales, key)
        return Corrected(base, correction_of(system, settings, key), jnp.array(scales))
    # Features of the linear route are periodic by their frequencies.
    periodic = () if settings.strategy in FEATURES else system.problem.periodic
    network = make_network(
        key=key,
        lower=tuple(a.lower for a in axes),
        upper=tuple(a.upper for a in axes),
        outputs=len(system.fields),
        width=net.width,
        depth=net.depth,
        kind=net.kind,
        activation=net.activation,
        periodic=tuple(names.index(p) for p in periodic),
        harmonics=net.harmonics,
        fourier=net.fourier,
        fourier_scale=net.fourier_scale,
        factorized=net.factorized,
        separate=net.separate,
        frequency=net.frequency,
        degree=net.degree,
        windows=net.windows,
        scales=scales,
    )
    if net.pieces == 1 and not (net.singular or net.around):
        return network
    time = names.index("t") if "t" in names else None
    around = net.around > 0
    return blank_pieces(network, len(names), len(system.fields), time, around)


def correction_of(
    system: System, settings: Settings, key: PRNGKeyArray
) -> AbstractNetwork:
    """A plain network, zero at first, of the width and depth in the settings."""
    net = NetworkSettings(
        width=settings.network.width,
        depth=settings.network.depth,
        activation=settings.network.activation,
        harmonics=settings.network.harmonics,
    )
    plain = dataclasses.replace(settings, strategy="nonlinear", network=net)
    ones = (1.0,) * len(system.fields)
    network = network_of(system, plain, ones, jax.random.fold_in(key, 1))
    last = lambda n: (n.layers[-1].weight, n.layers[-1].bias)
    return eqx.tree_at(last, network, [jnp.zeros_like(a) for a in last(network)])


def parted(
    network: AbstractNetwork, dtype: jnp.dtype
) -> tuple[Array, Callable[[Array], AbstractNetwork], AbstractNetwork]:
    """The vector of what is trained, its inverse, and the rest of the network."""
    moving, fixed = eqx.partition(network, trainable(network))
    theta, unravel = ravel_pytree(jax.tree.map(lambda a: a.astype(dtype), moving))
    return theta, unravel, fixed


def _separable(system: System, net: NetworkSettings) -> AbstractNetwork:
    """A separable network with the fewest numbers: those of a solution replace them."""
    if net.mirrored:
        system = reflected(system)
    axes, names = system.problem.axes, system.coordinates
    time = names.index("t") if "t" in names else None
    blank = blank_separable(
        tuple(a.lower for a in axes),
        tuple(a.upper for a in axes),
        system.joined,
        outputs=len(system.fields),
        modes=(1,) * len(axes),
        slabs=1,
        march=time or 0,
    )
    if not net.singular:
        return blank
    return Sum((blank, blank_corners(len(system.fields), time)))


def scaled_network_of(
    system: System,
    settings: Settings,
    scales: tuple[float, ...],
    key: PRNGKeyArray,
) -> Scaled:
    """The same function with its sizes as arrays: seeds share compiled programs."""
    ones = (1.0,) * len(system.fields)
    return Scaled(network_of(system, settings, ones, key), jnp.asarray(scales, float))


def least_squares(
    system: System, settings: Settings, network: AbstractNetwork, seed: int
) -> tuple[LeastSquares, Array]:
    """The training objective and the first parameter vector."""
    dtype = jnp.dtype(settings.precision)
    theta, unravel, fixed = parted(network, dtype)
    parameters = {k: v.astype(dtype) for k, v in parameters_of(system).items()}
    pieces = pieces_for(sizes_of(system, settings, theta.size), device_memory())
    make = lambda terms: _block(system, settings, terms, network, seed, dtype, pieces)
    blocks = [make(system.equations), *(make((t,)) for t in system.penalties)]
    return LeastSquares(tuple(blocks), parameters, unravel, fixed), theta


def sizes_of(system: System, settings: Settings, parameters: int) -> Sizes:
    """What the network and its derivatives need at one point."""
    net = settings.network
    return Sizes(
        layer=net.width * math.prod(net.windows) * _channels(system),
        depth=net.depth,
        row=len(system.equations) * parameters,
        bytes=jnp.dtype(settings.precision).itemsize,
    )


def _channels(system: System) -> int:
    """The number of partial derivatives that the network propagates."""
    closed: set[tuple[int, ...]] = set()
    for term in system.equations:
        if isinstance(term.residual, Expression):
            for p in partials(term.residual):
                shape = tuple(n + 1 for n in p.orders)
                closed.update(tuple(int(i) for i in k) for k in np.ndindex(shape))
    return max(1, len(closed))


def _moves(term: Term) -> bool:
    """Whether new points can be drawn on the device: from a box, or a shape in it."""
    return term.place.where is None and term.place.curve is None


def _block(
    system: System,
    settings: Settings,
    terms: Sequence[Term],
    network: AbstractNetwork,
    seed: int,
    dtype: jnp.dtype,
    pieces: Pieces,
) -> Block:
    problem, first = system.problem, terms[0]
    is_equation = first.kind == "equation"
    count = settings.points if is_equation else settings.condition_points
    if not is_equation and first.free is not None and not first.free:
        count = 1
    fixed = dict(first.place.fixed)
    lower = [fixed.get(a.name, a.lower) for a in problem.axes]
    upper = [fixed.get(a.name, a.upper) for a in problem.axes]
    points = sample(problem, first.place, count, seed, settings.sampler)
    weighted = is_equation and settings.weighting in POINTWISE
    rows = make_rows(system, terms, weighted)
    scale = [term_scale(system, t, network) for t in terms]
    weight = 1.0 if is_equation else settings.condition_weight
    shape = problem.shape if first.place.inside else None
    block = Block(
        rows,
        _moves(first) and (settings.redraw > 0 or weighted),
        is_equation and settings.adaptive,
        count,
        jnp.asarray(lower, dtype),
        jnp.asarray(upper, dtype),
        jnp.zeros((count, len(lower)), dtype),
        jnp.zeros((count, rows.width), dtype),
        jnp.asarray(scale, dtype),
        jnp.full(len(terms), weight, dtype),
        pieces,
        shape,
    )
    parameters = {k: v.astype(dtype) for k, v in parameters_of(system).items()}
    return block.moved(parameters, jnp.asarray(points, dtype))
