"""Waves beyond the modes that are marched: free in the mean of what they cross.

A mode that turns fast, y' = L y + sum over q of J_q(t) y_(k-q) with the derivative J of
the rest, averages its couplings. In eigenvectors of L, and to first order in them,

    y = (1 + S(t)) z,  z_b(t) = exp(lambda_b t + int J_0,bb dt) z_b(0),
    S_q,bb' = J_q,bb' / (lambda_b'(k - q) - lambda_b(k))

(a normal form; Arnold, 1988). J_q(t) is found from the low modes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex, Float


@dataclass(frozen=True, eq=False)
class Branches:
    """The eigenvectors of consecutive modes, and couplings in their terms.

    Coupling number m turns a component of a mode into the rate of another one.

    - `rates`: [branches, modes], the eigenvalues.
    - `vectors`: [components, branches, modes].
    - `inverse`: [branches, components, modes].
    - `left`, `right`: [couplings, branches, modes], of the mode that is changed and of
        the one that changes it.
    """

    rates: np.ndarray
    vectors: np.ndarray
    inverse: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix of one mode."""
        return len(self.rates), len(self.rates)

    @cached_property
    def shift(self) -> Complex[np.ndarray, "couplings branches modes"]:
        """What the mean of a coupling adds to the rates."""
        return self.left * self.right


def branches(
    linear: Complex[np.ndarray, "modes components components"],
    pairs: list[tuple[int, int]],
    symbols: Complex[np.ndarray, "couplings modes"],
) -> Branches:
    """The eigenvectors of the linear part.

    **Arguments:**

    - `pairs`: for each coupling the component whose rate it changes, and the one it is
        a multiple of.
    - `symbols`: the derivative of the latter.
    """
    rates, vectors = np.linalg.eig(linear)
    vectors, inverse = (
        np.moveaxis(m, 0, -1) for m in (vectors, np.linalg.inv(vectors))
    )
    left = np.stack([inverse[:, to] for to, _ in pairs])
    right = np.stack([vectors[of] for _, of in pairs]) * symbols[:, None]
    return Branches(rates.T, vectors, inverse, left, right)


@dataclass(frozen=True, eq=False)
class Tail:
    """The modes from `first` on.

    - `branches`, `start`: those of the modes from `lowest` on, which are the sources
        of the first ones, and their amplitudes at the time 0, [branches, modes].
    - `dressed`: the number of modes in which S is taken along.
    - `reach`: the largest |q| of a coupling.
    """

    branches: Branches
    start: Complex[np.ndarray, "branches modes"]
    first: int
    dressed: int
    reach: int

    @property
    def lowest(self) -> int:
        """The lowest mode in the arrays."""
        return self.first - 2 * self.reach

    def begun(self, couplings: np.ndarray) -> "Tail":
        """With z in the place of y at the start: z = (1 - S) y."""
        start = self.start[None].copy()
        first = self.first - self.reach
        count = self.dressed + 2 * self.reach
        change = self._dressing(couplings, start, first, count)
        start[:, :, self._range(first, count)] -= change
        return Tail(self.branches, start[0], self.first, self.dressed, self.reach)

    def at(
        self,
        spent: Float[np.ndarray, " times"],
        couplings: Complex[np.ndarray, "times couplings q"],
        integrals: Float[np.ndarray, "times couplings"],
    ) -> Complex[np.ndarray, "times components modes"]:
        """The modes from `first` on, after a time.

        **Arguments:**

        - `couplings`: J_q of each coupling, q from -reach to reach.
        - `integrals`: those of J_0 from the start on.
        """
        b = self.branches
        turned = np.multiply.outer(spent, b.rates)
        turned += np.tensordot(integrals, b.shift, 1)
        waves = np.exp(turned) * self.start
        change = self._dressing(couplings, waves, self.first, self.dressed)
        waves[:, :, self._range(self.first, self.dressed)] += change
        here = slice(self.first - self.lowest, None)
        return _applied(b.vectors[:, :, here], waves[:, :, here])

    def _range(self, first: int, count: int) -> slice:
        return slice(first - self.lowest, first - self.lowest + count)

    def _dressing(
        self, couplings: np.ndarray, waves: np.ndarray, first: int, count: int
    ) -> np.ndarray:
        """S z for `count` modes: [times, branches, modes]."""
        total = np.zeros((*waves.shape[:2], count), complex)
        for place, q in enumerate(range(-self.reach, self.reach + 1)):
            matrix = couplings[:, :, place] @ self._weights(first, count, q)
            matrix = matrix.reshape(len(waves), *self.branches.shape, count)
            total += _applied(matrix, waves[:, :, self._range(first - q, count)])
        return total

    def _weights(self, first: int, count: int, q: int) -> np.ndarray:
        """S_q for each coupling: [couplings, branches * branches * modes]."""
        b, here = self.branches, self._range(first, count)
        there = self._range(first - q, count)
        gap = b.rates[None, :, there] - b.rates[:, None, here]
        found = b.left[:, :, None, here] * b.right[:, None, :, there]
        found /= np.where(gap == 0, np.inf, gap)
        return found.reshape(len(found), -1)


def _applied(matrix: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """Matrices [..., b, c, modes] times [times, c, modes]."""
    total = matrix[..., 0, :] * waves[:, None, 0]
    for i in range(1, waves.shape[1]):
        total += matrix[..., i, :] * waves[:, None, i]
    return total
