"""Data with a kink in a dispersive equation: low modes marched, the others free.

The modes of such data decay like a low power of the wave number and turn fast: to
march all that are seen would take as many steps. See `tail`.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float
from scipy.integrate import cumulative_simpson

from pinnlab.reference.evolution import Evolution
from pinnlab.reference.exponential import phi_functions
from pinnlab.reference.fourier import Fourier
from pinnlab.reference.grid import Grid, Line
from pinnlab.reference.tail import Tail, branches
from pinnlab.reference.trajectory import Samples, lost


FINER, FINEST = 256, 2**18
"""How many times as many nodes have the modes of the tail, and at most how many."""
DRESSED = 4
"""Up to how many times the marched modes the tail is taken to second order."""
FAINT = 1e-3
"""Couplings below this part of the largest are left out."""
FEWEST, PERIOD = 3200, 2.02 * np.pi
"""No two waves of the marched modes turn by more than this in so many steps."""
CHUNK = 16
"""Times at once."""
LATTICE = 4096
"""The most points of a period that are evaluated by one transform."""


@dataclass(frozen=True, eq=False)
class Waves:
    """One resolution: what `Fourier` marches, and the tail of its modes."""

    fourier: Fourier

    def label(self, steps: int) -> str:
        """One line for people."""
        return f"{self.fourier.label(steps * self.substeps)}, free waves"

    @cached_property
    def wide(self) -> Fourier:
        """The grid with the modes of the tail."""
        (line,) = self.fourier.lines
        finer = max(1, min(FINER, FINEST // line.count))
        return replace(self.fourier, lines=(replace(line, count=finer * line.count),))

    @cached_property
    def substeps(self) -> int:
        """Into how many each step is divided.

        Two waves meet the square of a slow field once in a step of just a period of
        their sum: Lawson's method would take them for resonant (as splittings do:
        Weideman and Herbst, 1986).
        """
        fourier, evolution = self.fourier, self.fourier.evolution
        rates = np.linalg.eigvals(fourier.linear[fourier.keep(False)])
        step = abs(evolution.end - evolution.start) / FEWEST
        return max(1, math.ceil(2 * np.abs(rates).max() * step / PERIOD))

    def run(self, steps: int, coarse: bool) -> "WaveTrajectory":
        """March in a multiple of the saved steps."""
        fourier, wide = self.fourier, self.wide
        (line,), count = fourier.nodes(coarse).lines, fourier.shape[0]
        fine = Grid((replace(line, count=wide.shape[0]),))
        hat = wide.initial(fine, 4 // (1 + coarse)) / wide.shape[0]
        low = hat[:, : count // 2 + 1] * count
        states = fourier.states(low, steps * self.substeps, coarse)
        kept = int(np.flatnonzero(fourier.keep(coarse))[-1])
        couplings, mean = self._couplings(states, coarse, kept // 4)
        tail = self._tail(hat, kept, couplings.shape[-1] // 2)
        times = fourier.times
        forward = slice(None, None, 1 if times[-1] > times[0] else -1)
        return WaveTrajectory(
            fourier.evolution,
            times[forward],
            line,
            states[forward, :, : tail.first] / count,
            fourier.linear[: tail.first],
            tail.begun(couplings[:1]),
            couplings[forward],
            mean[forward],
        )

    def _couplings(
        self, states: np.ndarray, coarse: bool, most: int
    ) -> tuple[
        Complex[np.ndarray, "times couplings q"], Float[np.ndarray, "times couplings"]
    ]:
        """The modes of the rest's derivatives, and the integrals of their means."""
        times = self.fourier.times
        points = jnp.asarray(self.fourier.nodes(coarse).points)
        arrays = (points, jnp.asarray(times), jnp.asarray(states))
        found = np.asarray(self._derivatives(*arrays))
        index = np.arange(found.shape[-1])
        size = np.abs(found).max(axis=(0, 1)) / np.maximum(index, 1)
        reach = min(np.flatnonzero(size > FAINT * size.max())[-1], most)
        both = [found[..., reach:0:-1].conj(), found[..., : reach + 1]]
        mean = cumulative_simpson(np.real(found[..., 0]), x=times, axis=0, initial=0)
        return np.concatenate(both, axis=-1), mean

    def _tail(self, hat: np.ndarray, kept: int, reach: int) -> Tail:
        """The tail with these transforms; it takes over a reach below the last kept."""
        fourier, wide = self.fourier, self.wide
        first, finer = kept + 1 - reach, wide.shape[0] // fourier.shape[0]
        here = slice(first - 2 * reach, finer // 2 * kept)
        components = fourier.evolution.components
        split = [fourier.evolution.split_key(key) for key in fourier.wanted]
        pairs = [(top, components.index(c)) for c, _ in split for top in fourier.tops]
        one = np.ones(len(hat[0]))
        symbols = [(wide.multiplier(orders) * one)[here] for _, orders in split]
        symbols = np.repeat(symbols, len(fourier.tops), axis=0)
        found = branches(wide.linear[here], pairs, symbols)
        start = np.einsum("bck,ck->bk", found.inverse, hat[:, here])
        return Tail(found, start, first, (DRESSED - 1) * kept, reach)

    @cached_property
    def _derivatives(self):
        fourier = self.fourier

        def one(points: Array, t: Array, hat: Array) -> Array:
            jets = fourier.jets(jnp.stack([hat.real, hat.imag]))
            still = jax.tree.map(jnp.zeros_like, jets)
            rest = lambda values: fourier.pointwise(points, t, values)
            found = [
                jax.jvp(rest, (jets,), (still | {key: jnp.ones_like(jets[key])},))[1]
                for key in fourier.wanted
            ]
            return jnp.fft.rfft(jnp.concatenate(found)) / fourier.shape[0]

        @eqx.filter_jit
        def every(points: Array, times: Array, states: Array) -> Array:
            return jax.lax.map(lambda a: one(points, *a), (times, states))

        return every


@dataclass(frozen=True, eq=False)
class WaveTrajectory:
    """Modes at saved times; in between, interpolated where free waves are at rest.

    - `low`: the amplitudes of the first modes, [times, components, modes].
    - `linear`: the matrix of each of them.
    - `tail`: the other modes.
    - `couplings`, `means`: what it is to be given at the saved times.
    """

    evolution: Evolution
    times: Float[np.ndarray, " times"]
    line: Line
    low: Complex[np.ndarray, "times components modes"]
    linear: Complex[np.ndarray, "modes components components"]
    tail: Tail
    couplings: Complex[np.ndarray, "times couplings q"]
    means: Float[np.ndarray, "times couplings"]

    @property
    def values(self) -> Complex[np.ndarray, "fields times modes"]:
        """The amplitudes of the fields' first modes."""
        return np.moveaxis(self.low[:, self.evolution.rows], 1, 0)

    def missed(
        self, points: Float[np.ndarray, "m dim"]
    ) -> Float[np.ndarray, " fields"]:
        """The part of the norm of the initial values that the modes have lost."""
        places = np.unique(np.delete(points, self.evolution.time, axis=1), axis=0)
        start = np.array([self.evolution.start])
        found = self._on_tensor(start, places[:, 0])[:, 0]
        return lost(found, self.evolution.initial_fields(places))

    def at(self, points: Float[np.ndarray, "m dim"]) -> Float[np.ndarray, "m fields"]:
        """The fields at points, coordinates in the problem's order."""
        evolution, points = self.evolution, np.asarray(points, float)
        when, where = points[:, evolution.time], points[:, 1 - evolution.time]
        times, row = np.unique(when, return_inverse=True)
        places, column = np.unique(where, return_inverse=True)
        if len(times) * len(places) <= 4 * len(points):
            found = self._on_tensor(times, places)[:, row.ravel(), column.ravel()]
        else:
            found = np.zeros((len(evolution.fields), len(points)))
            for i, t in enumerate(times):
                mine = row.ravel() == i
                found[:, mine] = self._on_tensor(np.array([t]), where[mine])[:, 0]
        first = when == evolution.start
        if first.any():
            found[:, first] = evolution.initial_fields(where[first, None])
        return found.T

    def _on_tensor(
        self, times: Float[np.ndarray, " t"], places: Float[np.ndarray, " x"]
    ) -> Float[np.ndarray, "fields t x"]:
        found: list[np.ndarray] = []
        for begin in range(0, len(times), CHUNK):
            part = self._modes(times[begin : begin + CHUNK])[:, self.evolution.rows]
            found.append(sum_of_waves(part, self.line, places))
        return np.moveaxis(np.concatenate(found), 1, 0)

    def _modes(
        self, times: Float[np.ndarray, " t"]
    ) -> Complex[np.ndarray, "t components modes"]:
        """The amplitudes of all modes."""
        rows = Samples(self.times).interpolation(times)
        spent = times - self.evolution.start
        couplings = np.tensordot(rows, self.couplings, 1)
        high = self.tail.at(spent, couplings, rows @ self.means)
        low = np.stack([self._low(t, row) for t, row in zip(times, rows, strict=True)])
        return np.concatenate([low, high], axis=-1)

    def _low(
        self, time: float, row: Float[np.ndarray, " times"]
    ) -> Complex[np.ndarray, "components modes"]:
        """The mean of the states of nearby times, each turned on to this one."""
        total = np.zeros(self.low.shape[1:], complex)
        for i in np.flatnonzero(row):
            state = self.low[i]
            if time != self.times[i]:
                turn = phi_functions((time - self.times[i]) * self.linear)[0]
                state = np.einsum("kbc,ck->bk", turn, state)
            total += row[i] * state
        return total


def sum_of_waves(
    modes: Complex[np.ndarray, "t fields modes"],
    line: Line,
    places: Float[np.ndarray, " x"],
) -> Float[np.ndarray, "t fields x"]:
    """The real functions with these amplitudes of the modes 0, 1, ... at places.

    Places on a lattice see the modes folded, by one transform.
    """
    index = np.arange(modes.shape[-1])
    modes = np.where(index == 0, 1, 2) * modes
    phase = lambda x: np.exp(2j * np.pi / line.length * (x - line.lower) * index)
    nodes = (places - places.min()) / line.length
    gaps = np.diff(np.unique(nodes))
    count = round(1 / gaps.min()) if len(gaps) else 1
    if count > LATTICE or np.abs(nodes * count - np.rint(nodes * count)).max() > 1e-7:
        return np.stack([(modes @ phase(x)).real for x in places], axis=-1)
    modes = np.pad(
        modes * phase(places.min()), ((0, 0), (0, 0), (0, -len(index) % count))
    )
    folded = modes.reshape(*modes.shape[:2], -1, count).sum(axis=-2)
    onto = np.rint(nodes * count).astype(int) % count
    return (np.fft.ifft(folded) * count).real[..., onto]
