"""Classical solutions of gallery problems without a closed form, in plain NumPy.

They share nothing with the library but the problem: Fourier modes in space with
exponential time differencing (Kassam and Trefethen, 2005), DOP853 for systems of
ordinary differential equations, the Cole-Hopf integral for Burgers' equation. Each
comes with its own error, from a second solution at another resolution.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp


Symbol = Callable[[np.ndarray], np.ndarray]
Nonlinear = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Reference:
    """Values of a solution on a grid and the relative L2 error estimated for them."""

    values: np.ndarray
    error: float


@dataclass(frozen=True)
class Evolution:
    """u_t = L u + N(u), periodic on [lower, upper], up to the time `end`.

    `linear` is the symbol of L as a function of the wave number k; `nonlinear` maps
    (u, k) to the transform of N(u). `modes` and `steps` resolve the solution
    to about 1e-8 where its initial values are smooth.
    """

    lower: float
    upper: float
    end: float
    initial: Callable[[np.ndarray], np.ndarray]
    linear: Symbol
    nonlinear: Nonlinear
    modes: int
    steps: int
    complex: bool = False


def _transport(speed: float) -> Nonlinear:
    """N(u) = -speed u u_x, in conservative form."""
    return lambda u, k: -0.5j * speed * k * np.fft.fft(u**2)


def _schrodinger(u: np.ndarray, k: np.ndarray) -> np.ndarray:
    return 1j * np.fft.fft(np.abs(u) ** 2 * u)


NU = 0.01 / np.pi
"""The viscosity of the gallery's Burgers problem."""

EVOLUTIONS: Mapping[str, Evolution] = {
    "burgers": Evolution(
        lower=-1, upper=1, end=1, modes=2048, steps=2000,
        initial=lambda x: -np.sin(np.pi * x),
        linear=lambda k: -NU * k**2,
        nonlinear=_transport(1.0),
    ),
    "allen_cahn": Evolution(
        lower=-1, upper=1, end=1, modes=4096, steps=800,
        initial=lambda x: x**2 * np.cos(np.pi * x),
        linear=lambda k: 5 - 1e-4 * k**2,
        nonlinear=lambda u, k: -5 * np.fft.fft(u**3),
    ),
    "kdv": Evolution(
        lower=-1, upper=1, end=1, modes=512, steps=10000,
        initial=lambda x: np.cos(np.pi * x),
        linear=lambda k: 0.022**2 * 1j * k**3,
        nonlinear=_transport(1.0),
    ),
    "kuramoto_sivashinsky": Evolution(
        lower=0, upper=2 * np.pi, end=1, modes=512, steps=20000,
        initial=lambda x: np.cos(x) * (1 + np.sin(x)),
        linear=lambda k: 100 / 16**2 * k**2 - 100 / 16**4 * k**4,
        nonlinear=_transport(100 / 16),
    ),
    "cahn_hilliard": Evolution(
        lower=-1, upper=1, end=1, modes=128, steps=1000,
        initial=lambda x: (
            0.2 + 0.4 * np.cos(np.pi * x) + 0.1 * np.sin(2 * np.pi * x)
        ),
        linear=lambda k: 0.1 * (k**2 - 0.2**2 * k**4),
        nonlinear=lambda u, k: -0.1 * k**2 * np.fft.fft(u**3),
    ),
    "schrodinger": Evolution(
        lower=-5, upper=5, end=np.pi / 2, modes=1024, steps=10000,
        initial=lambda x: 2 / np.cosh(x) + 0j,
        linear=lambda k: -0.5j * k**2,
        nonlinear=_schrodinger,
        complex=True,
    ),
}  # fmt: skip


def evolution_reference(name: str, nt: int, x: np.ndarray) -> Reference:
    """The solution at `nt` uniform times from 0 to the end, at the points `x`.

    The error is the distance to the solution with half the modes and half the steps.
    """
    problem = EVOLUTIONS[name]
    fine = evolve(problem, nt, x, problem.modes, problem.steps)
    coarse = evolve(problem, nt, x, problem.modes // 2, problem.steps // 2)
    return Reference(fine, relative_l2(coarse, fine))


def evolve(
    problem: Evolution, nt: int, x: np.ndarray, modes: int, steps: int
) -> np.ndarray:
    """Values of shape (nt, len(x)); takes at least `steps` steps in all."""
    length = problem.upper - problem.lower
    k = 2 * np.pi / length * np.fft.fftfreq(modes, 1 / modes)
    nodes = problem.lower + length * np.arange(modes) / modes
    k[modes // 2] = 0 if not problem.complex else k[modes // 2]
    waves = np.exp(1j * np.outer(x - problem.lower, k)) / modes
    inner = -(-steps // (nt - 1))
    step = etdrk4(problem, k, problem.end / ((nt - 1) * inner))
    u_hat = np.fft.fft(problem.initial(nodes))
    rows = [problem.initial(x)]
    for _ in range(nt - 1):
        for _ in range(inner):
            u_hat = step(u_hat)
        rows.append(waves @ u_hat if problem.complex else (waves @ u_hat).real)
    return np.stack(rows)


def etdrk4(
    problem: Evolution, k: np.ndarray, h: float
) -> Callable[[np.ndarray], np.ndarray]:
    """One step of size h of the fourth-order exponential Runge-Kutta scheme.

    Its coefficients are means over 64 points of a circle around h L, which avoids the
    cancellation in (e^z - 1)/z near 0.
    """
    z = h * problem.linear(k).astype(complex)
    full, half = np.exp(z), np.exp(z / 2)
    r = z[:, None] + np.exp(2j * np.pi * (np.arange(64) + 0.5) / 64)
    e = np.exp(r)
    q = h * np.mean((np.exp(r / 2) - 1) / r, 1)
    f1 = h * np.mean((-4 - r + e * (4 - 3 * r + r**2)) / r**3, 1)
    f2 = h * np.mean((2 + r + e * (-2 + r)) / r**3, 1)
    f3 = h * np.mean((-4 - 3 * r - r**2 + e * (4 - r)) / r**3, 1)

    def slope(u_hat: np.ndarray) -> np.ndarray:
        u = np.fft.ifft(u_hat)
        return problem.nonlinear(u if problem.complex else u.real, k)

    def step(v: np.ndarray) -> np.ndarray:
        n0 = slope(v)
        a = half * v + q * n0
        n1 = slope(a)
        n2 = slope(half * v + q * n1)
        n3 = slope(half * a + q * (2 * n2 - n0))
        return full * v + f1 * n0 + 2 * f2 * (n1 + n2) + f3 * n3

    return step


def cole_hopf(
    t: np.ndarray, x: np.ndarray, nu: float = NU, nodes: int = 600
) -> np.ndarray:
    """Burgers' equation with u = -sin(pi x) at t = 0, of shape (len(t), len(x)).

    u = -int sin(pi y) g dy / int g dy with y = x - sqrt(4 nu t) s and
    g = exp(-s^2 - cos(pi y)/(2 pi nu)); the trapezoidal rule in s converges
    geometrically. |u| <= 1 bounds the saddle point by |s| <= sqrt(t/(4 nu)).
    """
    reach = 6.5 + np.sqrt(np.max(t) / (4 * nu))
    s = np.linspace(-reach, reach, nodes)
    y = x[:, None] - np.sqrt(4 * nu * t)[:, None, None] * s
    exponent = -(s**2) - np.cos(np.pi * y) / (2 * np.pi * nu)
    g = np.exp(exponent - exponent.max(-1, keepdims=True))
    return -np.sum(np.sin(np.pi * y) * g, -1) / np.sum(g, -1)


@dataclass(frozen=True)
class System:
    """y' = slope(t, y), y(0) = initial, up to the time `end`."""

    initial: tuple[float, ...]
    end: float
    slope: Callable[[float, np.ndarray], list[float]]


SYSTEMS: Mapping[str, System] = {
    "lotka_volterra": System(
        (100.0, 15.0), 10.0,
        lambda t, y: [
            2 * y[0] - 0.04 * y[0] * y[1], 0.02 * y[0] * y[1] - 1.06 * y[1]
        ],
    ),
    "van_der_pol": System(
        (2.0, 0.0), 6.0, lambda t, y: [y[1], (1 - y[0] ** 2) * y[1] - y[0]]
    ),
    "lorenz": System(
        (-8.0, 7.0, 27.0), 1.0,
        lambda t, y: [
            10 * (y[1] - y[0]), y[0] * (15 - y[2]) - y[1],
            y[0] * y[1] - 8 / 3 * y[2],
        ],
    ),
}  # fmt: skip


def system_reference(name: str, t: np.ndarray) -> Reference:
    """The solution at the times `t`, of shape (len(t), number of unknowns).

    Van der Pol's unknowns are u and u_t. The error is the distance to the solution
    with a hundred times the tolerance.
    """
    fine, coarse = (_integrate(SYSTEMS[name], t, rtol) for rtol in (1e-13, 1e-11))
    return Reference(fine, relative_l2(coarse, fine))


def _integrate(system: System, t: np.ndarray, rtol: float) -> np.ndarray:
    solution = solve_ivp(
        system.slope, (0, system.end), system.initial, method="DOP853", t_eval=t,
        rtol=rtol, atol=rtol,
    )  # fmt: skip
    return solution.y.T


def relative_l2(values: np.ndarray, truth: np.ndarray) -> float:
    """|values - truth| / |truth| in the unweighted L2 norm of the grid."""
    if values.shape != truth.shape:
        raise ValueError(f"shapes differ: {values.shape} and {truth.shape}")
    return float(np.linalg.norm(values - truth) / np.linalg.norm(truth))
