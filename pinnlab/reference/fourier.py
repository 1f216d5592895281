"""Semilinear evolution on a periodic box: Fourier modes and exponential steps.

Constant-coefficient linear terms are exact, a small matrix for each wave number; the
rest is evaluated at the nodes and its transform cut off at two thirds of the modes
(Orszag, 1971).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pinnlab.equation.expression import ZERO, Expression, Integral, walk
from pinnlab.equation.structure import partials
from pinnlab.reference.evolution import Evolution, Key
from pinnlab.reference.exponential import ETDRK4, Coefficients, Lawson, coefficients
from pinnlab.reference.grid import Grid, Line
from pinnlab.reference.reference import NoReference
from pinnlab.reference.semilinear import depends_on, number, semilinear, space_order
from pinnlab.reference.steps import march
from pinnlab.reference.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class ConstantForm:
    """w = sum over keys of linear[key] * (derivative key) + solve @ rest.

    - `linear`: for each derivative, its coefficient in the rate of each field [fields].
    - `solve`: minus the inverse of the mass matrix, [fields, equations].
    - `rest`: what is left of each equation.
    """

    linear: dict[Key, np.ndarray]
    solve: np.ndarray
    rest: tuple[Expression, ...]


def constant_form(evolution: Evolution) -> ConstantForm | None:
    """The equations with their constant-coefficient linear part; None if they are not
    semilinear in this sense."""
    names, problem = evolution.names, evolution.problem
    admitted = lambda c: not depends_on(c, names)
    parts = [semilinear(e, admitted) for e in evolution.equations]
    rest = tuple(p.rest for p in parts)
    late = {(q.field, q.orders) for e in rest for q in partials(e)}
    if late & set(evolution.highest):
        return None
    if any(isinstance(n, Integral) for e in rest for n in walk(e)):
        return None
    columns: dict[Key, np.ndarray] = {}
    for i, part in enumerate(parts):
        for atom, coefficient in part.linear.items():
            column = columns.setdefault((atom.field, atom.orders), np.zeros(len(rest)))
            column[i] += number(problem, coefficient)
    mass = np.stack([columns.pop(k, np.zeros(len(rest))) for k in evolution.highest], 1)
    if np.linalg.cond(mass) > 1e12:
        raise NoReference("the time derivatives are not determined by the equations")
    solve = -np.linalg.inv(mass)
    linear = {key: solve @ column for key, column in columns.items()}
    highest = max((sum(_space(evolution, k)) for k in linear), default=0)
    stiff = space_order(rest, evolution.time)
    if stiff > 1 and stiff >= highest:
        return None
    return ConstantForm(linear, solve, rest)


def _space(evolution: Evolution, key: Key) -> tuple[int, ...]:
    return evolution.split_key(key)[1]


@dataclass(frozen=True, eq=False)
class Fourier:
    """One resolution in space; `run` marches in any number of steps.

    The state is the real and the imaginary part of the transforms of the components,
    [2, components, *modes]. The coarse resolution runs in the same compiled program:
    with fewer modes, and with nodes half a cell further, which turns the sign of the
    largest aliasing error of data that are not smooth.
    """

    evolution: Evolution
    form: ConstantForm
    lines: tuple[Line, ...]
    method: type[ETDRK4] | type[Lawson] = ETDRK4

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes in each direction."""
        return tuple(line.count for line in self.lines)

    @cached_property
    def waves(self) -> tuple[np.ndarray, ...]:
        """The signed indices of the modes in each direction, to be broadcast."""
        found: list[np.ndarray] = []
        for i, n in enumerate(self.shape):
            last = i == len(self.shape) - 1
            index = np.arange(n // 2 + 1) if last else np.fft.fftfreq(n, 1 / n)
            shape = [1] * len(self.shape)
            shape[i] = -1
            found.append(index.reshape(shape))
        return tuple(found)

    def keep(self, coarse: bool) -> np.ndarray:
        """The modes that are kept, [*modes]; two thirds of them if coarse."""
        part = (1 / 3 if self.nonlinear else 1 / 2) * (2 / 3 if coarse else 1)
        pairs = zip(self.waves, self.shape, strict=True)
        inside = [np.abs(k) < part * n for k, n in pairs]
        return np.logical_and.reduce(np.broadcast_arrays(*inside))

    @property
    def nonlinear(self) -> bool:
        """Whether anything is left beside the linear part."""
        return any(e != ZERO for e in self.form.rest)

    def multiplier(self, orders: tuple[int, ...]) -> np.ndarray:
        """The symbol of a derivative in space, [*modes]."""
        total = np.ones([1] * len(self.shape), complex)
        for k, line, order in zip(self.waves, self.lines, orders, strict=True):
            total = total * (2j * np.pi / line.length * k) ** order
        return total

    @cached_property
    def linear(self) -> np.ndarray:
        """The matrix of each mode, [*modes, components, components]."""
        components = self.evolution.components
        modes = np.broadcast_shapes(*(k.shape for k in self.waves))
        matrix = np.zeros((*modes, len(components), len(components)), complex)
        for i, (field, k) in enumerate(components):
            if (field, k + 1) in components:
                matrix[..., i, components.index((field, k + 1))] = 1
        for key, column in self.form.linear.items():
            component, orders = self.evolution.split_key(key)
            j = components.index(component)
            for f, value in enumerate(column):
                matrix[..., self.tops[f], j] += value * self.multiplier(orders)
        return matrix

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """The component of each field whose rate is its highest time derivative."""
        evolution = self.evolution
        pairs = zip(evolution.fields, evolution.orders, strict=True)
        return tuple(evolution.components.index((f, order - 1)) for f, order in pairs)

    def rest(
        self,
        points: Array,
        keep: Array,
        t: Array,
        state: Float[Array, "2 components *modes"],
    ) -> Array:
        """The part of the rates that is not in `linear`, as a state."""
        if not self.nonlinear:
            return jnp.zeros_like(state)
        values = self.pointwise(points, t, self.jets(state))
        found = jnp.fft.rfftn(values.reshape(-1, *self.shape), axes=self._axes)
        found = jnp.stack([found.real, found.imag]) * keep
        return jnp.zeros_like(state).at[:, np.array(self.tops)].set(found)

    @cached_property
    def wanted(self) -> tuple[Key, ...]:
        """The derivatives that the rest is made of."""
        found = [(p.field, p.orders) for e in self.form.rest for p in partials(e)]
        return tuple(dict.fromkeys(found))

    def jets(self, state: Float[Array, "2 components *modes"]) -> dict[Key, Array]:
        """The wanted derivatives at the nodes."""
        hat = state[0] + 1j * state[1]
        found: dict[Key, Array] = {}
        for key in self.wanted:
            component, orders = self.evolution.split_key(key)
            spectrum = hat[self.evolution.components.index(component)]
            found[key] = self._nodes(spectrum * self.multiplier(orders)).ravel()
        return found

    def pointwise(
        self, points: Array, t: Array, jets: dict[Key, Array]
    ) -> Float[Array, "fields n"]:
        """The part of the fields' highest rates that is not in `linear`."""
        values = self.evolution.values(self.form.rest, t, points, jets, {})
        return jnp.asarray(self.form.solve) @ values

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-len(self.shape), 0))

    def _nodes(self, spectrum: Array) -> Array:
        return jnp.fft.irfftn(spectrum, self.shape, axes=self._axes)

    def nodes(self, coarse: bool) -> Grid:
        """The grid; half a cell further in all directions if coarse."""
        if not coarse:
            return Grid(self.lines)
        shifts = [line.length / line.count / 2 for line in self.lines]
        pairs = zip(self.lines, shifts, strict=True)
        return Grid(
            tuple(replace(a, lower=a.lower + s, upper=a.upper + s) for a, s in pairs)
        )

    def initial(self, grid: Grid, finer: int) -> np.ndarray:
        """Transforms of the initial values, [components, *modes].

        They are sampled on a grid that is `finer` times as fine: data with a kink have
        long tails, which would be added to the modes that are kept.
        """
        fine = Grid(tuple(replace(a, count=finer * a.count) for a in grid.lines))
        lower = np.array([a.lower for a in self.lines])
        length = np.array([a.length for a in self.lines])
        inside = lower + np.mod(fine.points - lower, length)
        values = self.evolution.initial_values(inside).reshape(-1, *fine.shape)
        hat = np.fft.rfftn(values, axes=self._axes) / finer ** len(self.shape)
        for axis, n in zip(self._axes, self.shape, strict=True):
            last = axis == -1
            modes = np.arange(n // 2 + 1) if last else np.fft.fftfreq(n, 1 / n)
            hat = np.take(hat, modes.astype(int), axis=axis)
        return hat

    @cached_property
    def _march(self):
        saves = SAVES[len(self.shape)]
        start = jnp.asarray(self.evolution.start)

        @eqx.filter_jit
        def whole(
            weights: Coefficients,
            points: Array,
            keep: Array,
            y0: Array,
            step: Array,
            each: Array,
        ) -> Array:
            rest = lambda n, y: step * self.rest(points, keep, start + n * step, y)
            return march(self.method(weights, _multiply), rest, y0, saves, each)

        return whole

    def label(self, steps: int) -> str:
        """One line for people."""
        name = self.method.__name__
        return f"Fourier {self.lines[0].count}, {name}, {steps} steps"

    def states(self, hat: np.ndarray, steps: int, coarse: bool) -> np.ndarray:
        """March in a multiple of the saved steps.

        **Arguments:**

        - `hat`: the initial transforms, [components, *modes].

        **Returns:** transforms at the saved times, [saves + 1, components, *modes].
        """
        evolution, grid, keep = self.evolution, self.nodes(coarse), self.keep(coarse)
        saves = SAVES[len(self.shape)]
        step = (evolution.end - evolution.start) / steps
        weights = jax.tree.map(
            lambda c: jnp.asarray(np.moveaxis(c, (-2, -1), (0, 1))),
            coefficients(step * self.linear),
        )
        hat = hat * keep
        y0 = jnp.asarray(np.stack([np.real(hat), np.imag(hat)]))
        points, size = jnp.asarray(grid.points), jnp.asarray(step)
        each = jnp.asarray(steps / saves)
        packed = self._march(weights, points, jnp.asarray(keep), y0, size, each)
        return np.asarray(packed[:, 0] + 1j * packed[:, 1])

    @property
    def times(self) -> Float[np.ndarray, " saves_and_one"]:
        """The saved times, from the start on."""
        saves = SAVES[len(self.shape)]
        return np.linspace(self.evolution.start, self.evolution.end, saves + 1)

    def run(self, steps: int, coarse: bool) -> Trajectory:
        """March in a multiple of the saved steps."""
        evolution, grid = self.evolution, self.nodes(coarse)
        hat = self.initial(grid, OVERSAMPLE[len(self.shape)] // (1 + coarse))
        states = self.states(hat, steps, coarse)
        hat = np.moveaxis(states[:, evolution.rows], 0, 1)
        values, times = np.fft.irfftn(hat, self.shape, axes=self._axes), self.times
        if evolution.end < evolution.start:
            times, values = times[::-1], values[:, ::-1]
        return Trajectory(
            times,
            grid.lines,
            evolution.time,
            values,
            evolution.start,
            evolution.initial_fields,
        )


ROUGH = 1e-8
"""Initial values have a kink, or are not resolved, where the highest amplitudes are
above this part of the largest."""


def method_for(first: Fourier) -> type[ETDRK4] | type[Lawson]:
    """The better method in time, for a first resolution.

    Waves that are free and do not decay are sent out by data with kinks. Whether the
    high modes are such waves, or follow the low ones, is seen by trying.
    """
    if not first.nonlinear:
        return ETDRK4
    hat = np.abs(first.initial(first.nodes(False), 1))
    highest = hat * (first.keep(False) & ~first.keep(True))
    smooth = highest.max() <= ROUGH * hat.max()
    if smooth:
        return ETDRK4
    rates = np.linalg.eigvals(first.linear[first.keep(False)])
    if np.abs(rates.real).max() > 1e-9 * np.abs(rates).max():
        return ETDRK4
    errors: dict[type, float] = {}
    for method in (ETDRK4, Lawson):
        tried, saves = replace(first, method=method), SAVES[len(first.shape)]
        fine, half = (tried.run(steps, False).values for steps in (2 * saves, saves))
        errors[method] = float(np.linalg.norm(fine - half))
    return Lawson if errors[Lawson] < errors[ETDRK4] else ETDRK4


OVERSAMPLE = {1: 16, 2: 4, 3: 2}
"""How much finer initial values are sampled, by the dimension of space."""
SAVES = {1: 800, 2: 192, 3: 96}
"""Saved times by the dimension of space: multiples of those of the result grid."""


def _multiply(matrix: Array | np.ndarray, state: Array) -> Array:
    """Matrices [c, c, *modes] times a packed state [2, c, *modes]."""
    found = jnp.sum(matrix * (state[0] + 1j * state[1]), axis=1)
    return jnp.stack([found.real, found.imag])
