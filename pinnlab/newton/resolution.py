"""How many modes the coordinates of space need: told by the decay of amplitudes."""

from dataclasses import dataclass, field

import numpy as np

from pinnlab.network.basis import decay
from pinnlab.newton.space import MORE, more_modes, odd


ROUGH_ORDER, ALLOWED = 4.0, 5.0
"""Where amplitudes fall with at most this order, a remainder so many tolerances large
is accepted: data with kinks would need too many modes."""
JUMP_ORDER, PATIENCE = 1.3, 3
"""Modes are added only so many times while amplitudes fall no faster than a jump's."""
FEWER = 0.1
"""Half the modes are enough where the rest is below this part of the tolerance."""


@dataclass
class Resolution:
    """Modes of the coordinates other than the marching one.

    - `most`: modes of a slab, in all; `growth`: the factor of each step.
    - `missing`: the largest remainder above the tolerance that was accepted.
    """

    axis: int
    periodic: tuple[int, ...]
    tolerance: float
    most: int
    growth: float = MORE
    missing: float = 0.0
    ended: set[int] = field(default_factory=set)
    jumps: dict[int, int] = field(default_factory=dict)

    def wider(
        self, coefficients: np.ndarray, modes: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """More modes for coefficients [fields, modes...]; None where they suffice.

        `modes`: those of a slab.
        """
        accepted = [0.0]
        for i in range(len(modes)):
            if i == self.axis:
                continue
            found = decay(coefficients, i + 1, i in self.periodic)
            rough = found.order < ROUGH_ORDER
            allowed = (ALLOWED if rough else 1.0) * self.tolerance
            if found.missing <= allowed or i in self.ended:
                accepted.append(found.missing)
                continue
            more = list(modes)
            more[i] = more_modes(modes[i], i in self.periodic, self.growth)
            if not self._hopeless(i, found.order) and np.prod(more) <= self.most:
                return tuple(more)
            self.ended.add(i)
            accepted.append(found.missing)
        self.jumps.clear()
        if max(accepted) > self.tolerance:
            self.missing = max(self.missing, *accepted)
        return None

    def fewer(
        self, coefficients: np.ndarray, modes: tuple[int, ...]
    ) -> tuple[int, ...]:
        """The modes, halved where the higher half is not needed."""
        found = list(modes)
        whole = float(np.linalg.norm(coefficients))
        for i in range(len(modes)):
            half = odd(modes[i] // 2)
            lower, beyond = np.split(np.moveaxis(coefficients, i + 1, 0), [half])
            if (
                i == self.axis
                or np.linalg.norm(beyond) > FEWER * self.tolerance * whole
            ):
                continue
            # They must also look enough, or they would be more again at once.
            if decay(lower, 0, i in self.periodic).missing <= self.tolerance:
                found[i] = half
        return tuple(found)

    def _hopeless(self, i: int, order: float) -> bool:
        """Whether more modes in a row of coordinate i have shown no decay."""
        self.jumps[i] = self.jumps.get(i, 0) + 1 if order < JUMP_ORDER else 0
        return self.jumps[i] > PATIENCE
