"""Slabs by Newton and GMRES over harmonics, and how many modes slabs take."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab import Solution, loads_problem, solve
from pinnlab.assembly import network_of
from pinnlab.network import Separable
from pinnlab.network.basis import decay, harmonics
from pinnlab.newton import harmonic, route
from pinnlab.newton.collocation import Collocation
from pinnlab.newton.harmonic import (
    Average,
    Harmonic,
    Rest,
    Rows,
    amplitudes,
    coefficients,
)
from pinnlab.newton.mirror import mirrored
from pinnlab.newton.numbers import Range
from pinnlab.newton.pointwise import Compiled
from pinnlab.newton.resolution import Resolution
from pinnlab.newton.space import Space
from pinnlab.newton.structure import evolution_of
from pinnlab.settings import Settings
from pinnlab.strategy import separable_settings
from pinnlab.system.system import build_system


WAVES = """
coordinates = { COORDINATES }
fields = ["u", "v"]
periodic = ["x"]
[equations]
first = "dt(u) + u*dx(v) - 0.1*dxx(u) = 0"
second = "dt(v) + dx(u) + dxxx(v) = v^2*sin(t)"
[conditions]
initial = { on = "t = 0", equation = ["u = cos(x)", "v = sin(x) + 0.5"] }
"""

KINK = """
coordinates = { t = [0, 1], x = [-1, 1] }
fields = ["u"]
periodic = ["x"]
[equations]
heat = "dt(u) = 0.01*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = 1 - x^2" }
"""

LOGISTIC = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
periodic = ["x"]
[equations]
growth = "dt(u) = 5*u*(1 - u)"
[conditions]
initial = { on = "t = 0", equation = "u = (1 + x)/4" }
"""


MIRRORS = """
coordinates = { t = [0, 0.5], x = [0, 1] }
fields = ["u"]
[equations]
flow = "dt(u) + FLUX = 0.1*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = INITIAL" }
walls = { on = ["x = 0", "x = 1"], equation = "WALL" }
[solver]
strategy = "separable"
"""


STRING = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[equations]
wave = "dtt(u) = dxx(u)"
[conditions]
initial = { on = "t = 0", equation = ["u = sin(pi*x)", "dt(u) = pi*sin(pi*x)"] }
walls = { on = ["x = 0", "x = 1"], equation = "u = 0" }
"""


def a_flow(flux: str, initial: str, wall: str):
    text = MIRRORS.replace("FLUX", flux).replace("INITIAL", initial)
    return loads_problem(text.replace("WALL", wall), "flow")


def a_slab(coordinates, march, modes):
    """WAVES, a space for it, and the first slab with its lift [fields, modes...]."""
    text = WAVES.replace("COORDINATES", coordinates)
    system = build_system(loads_problem(text, "waves"), "rows")
    space = Space(modes, (1 - march,), march, (1, 1))
    lift = np.zeros((2, *modes))
    first = np.moveaxis(lift, 1 + march, 1)
    first[0, 0, 1], first[1, 0, 0], first[1, 0, 2] = -1, 0.5, -1
    upper = np.array([0.2, 2 * np.pi] if march == 0 else [2 * np.pi, 0.2])
    return system, space, Range(np.zeros(2), upper), lift


def harmonic_of(system, space):
    rows = Rows(system.equations, space.nodes(space.march), (space.unknown(0),) * 2)
    return Harmonic(system, space, rows, Compiled(system))


@pytest.mark.parametrize(
    "coordinates, march, modes",
    [
        ("t = [0, 1], x = [0, '2*pi']", 0, (8, 41)),
        ("x = [0, '2*pi'], t = [0, 1]", 1, (41, 8)),
    ],
)
def test_gmres_over_harmonics_finds_what_the_dense_matrix_does(
    coordinates, march, modes
):
    system, space, box, lift = a_slab(coordinates, march, modes)
    solvers = (
        harmonic_of(system, space),
        Collocation(system, space, [system.equations], Compiled(system)),
    )
    found = [s.solve(box, lift, 1e-11) for s in solvers]
    assert all(f.converged for f in found)
    fast, dense = (f.coefficients for f in found)
    # Both hold the equations at the same times; they differ by what 20 harmonics lack.
    assert np.linalg.norm(fast - dense) < 1e-9 * np.linalg.norm(dense)


def test_the_preconditioner_of_one_slab_serves_the_next(monkeypatch):
    system, space, box, lift = a_slab("t = [0, 1], x = [0, '2*pi']", 0, (8, 41))
    made = list[Range]()
    whole = Average.__init__

    def counted(self, harmonic, box, mean):
        made.append(box)
        whole(self, harmonic, box, mean)

    monkeypatch.setattr(Average, "__init__", counted)
    monkeypatch.setattr(harmonic, "FEW_INNER", 60)
    solver = harmonic_of(system, space)
    first = solver.solve(box, lift, 1e-11)
    shift = np.array([0.2, 0.0])
    later, other = Range(box.lower + shift, box.upper + shift), 1.5 * lift
    again = solver.solve(later, other, 1e-11)
    fresh = harmonic_of(system, space).solve(later, other, 1e-11)
    assert made == [box, later]
    assert first.converged and again.converged
    size = np.linalg.norm(fresh.coefficients)
    assert np.linalg.norm(again.coefficients - fresh.coefficients) < 1e-10 * size
    # Another length, or one that takes many iterations, has its own.
    longer = Range(box.lower, box.upper + shift)
    solver.solve(longer, lift, 1e-11)
    monkeypatch.setattr(harmonic, "FEW_INNER", 0)
    solver.solve(longer, lift, 1e-11)
    solver.solve(longer, lift, 1e-11)
    assert made == [box, later, longer, longer]


def test_amplitudes_are_those_of_the_harmonics():
    given = np.random.default_rng(0).normal(size=(2, 7, 3))
    found = amplitudes(given, 1)
    z = np.linspace(-1, 1, 11)
    waves = np.exp(1j * np.pi * np.arange(4) * (z[:, None] + 1))
    waves[:, 1:] *= 2
    values = np.einsum("zk,fmk->fmz", waves, found).real
    expected = np.einsum("zn,fnm->fmz", harmonics(z, 7, 0), given)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(coefficients(found, 1), given, atol=1e-14)


def test_constant_coefficients_leave_nothing_to_gmres():
    text = KINK.replace("0.01*dxx(u)", "0.01*dxx(u) - dx(u) + u")
    system = build_system(loads_problem(text, "constant"), "rows")
    space = Space((8, 21), (1,), 0, (1,))
    rows = Rows(system.equations, space.nodes(0), (space.unknown(0),) * 2)
    solver = Harmonic(system, space, rows, Compiled(system))
    box = Range(np.array([0.0, -1.0]), np.array([0.3, 1.0]))
    slopes = np.ones((7, solver.count, 1, 1)) * [[[[1.0, -0.01, 1.0, -1.0]]]]
    assert len(solver.pointwise.partials) == 4
    rest = Rest(Average(solver, box, slopes.mean(axis=1)), slopes)
    move = np.random.default_rng(0).normal(size=rest.shape[0])
    assert rest.varying == {}
    np.testing.assert_array_equal(rest @ move, move)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("periodic", [False, True])
def test_what_is_missing_follows_from_an_algebraic_decay(order, periodic):
    degrees = np.arange(1, 200_000.0)
    every = degrees**-order
    kept = 300
    part = np.repeat(every[:kept], 2) / np.sqrt(2) if periodic else every[:kept]
    found = decay(np.concatenate([[0.0], part]), 0, periodic)
    missing = np.linalg.norm(every[kept:]) / np.linalg.norm(every[:kept])
    assert found.missing == pytest.approx(missing, rel=0.05)
    assert found.order == pytest.approx(order, abs=0.1)


def test_what_is_missing_of_a_smooth_function_is_its_next_degrees():
    found = decay(0.5 ** np.arange(40), 0, False)
    assert 0.5**41 < found.missing < 0.5**38
    assert found.order > 10
    assert decay(np.zeros(40), 0, False).missing == 0.0


def test_modes_grow_until_enough_and_shrink_when_half_will_do():
    resolution = Resolution(0, (1,), 1e-6, 10_000, 2.0)
    wave = 0.9 ** (np.arange(1, 141) // 2)
    few, many = wave[None, None, :41], np.pad(wave, (0, 401))[None, None]
    assert resolution.wider(few, (8, 41)) == (8, 83)
    assert resolution.wider(many, (8, 541)) is None
    assert resolution.fewer(many, (8, 541)) == (8, 271)
    assert resolution.missing == 0.0


def test_a_kink_is_accepted_near_the_tolerance_and_what_it_lacks_is_kept():
    resolution = Resolution(0, (1,), 1e-5, 100_000, 2.0)
    kink = (1.0 + np.arange(2001) // 2) ** -2
    assert resolution.wider(kink[None, None, :401], (8, 401)) == (8, 803)
    assert resolution.wider(kink[None, None], (8, 2001)) is None
    assert 1e-5 < resolution.missing < 1e-4
    capped = Resolution(0, (1,), 1e-9, 4_000, 2.0)
    assert capped.wider(kink[None, None, :401], (8, 401)) is None
    assert capped.missing > 1e-5


def march(text, target):
    """The system, what the route found, and its values at t (column) and x (row)."""
    with jax.enable_x64(True):
        system = build_system(loads_problem(text, "evolution"), "rows")
        found = route.solve_separable(system, target, 60.0, lambda row: None)
        assert found.network is not None
        t, x = np.meshgrid([0.01, 0.1, 1.0], np.linspace(0, 1, 33), indexing="ij")
        points = np.stack([t.ravel(), x.ravel()], axis=1)
        values = jax.vmap(found.network)(jnp.asarray(points))[:, 0]
    return system, found, t, x, np.asarray(values).reshape(t.shape)


def test_a_kink_across_the_period_is_solved_with_an_honest_estimate():
    system, found, t, x, values = march(KINK, 1e-3)
    evolution = evolution_of(system)
    assert evolution is not None and harmonic.suits(system, evolution)
    n = np.arange(1, 1000)[:, None, None]
    waves = 4 * (-1.0) ** (n + 1) / (n * np.pi) ** 2 * np.cos(n * np.pi * x)
    exact = 2 / 3 + np.sum(waves * np.exp(-0.01 * (n * np.pi) ** 2 * t), axis=0)
    assert np.linalg.norm(values - exact) < found.estimate * np.linalg.norm(exact)
    assert found.estimate < 1e-3


@pytest.mark.slow
def test_waves_too_fast_for_a_slab_are_in_the_estimate():
    text = KINK.replace('"u"', '{ name = "u", complex = true }')
    text = text.replace("dt(u) = 0.01*dxx(u)", "1j*dt(u) + 0.001*dxx(u) = 0")
    _, found, t, x, values = march(text, 3e-3)
    n = np.arange(1, 1000)[:, None, None]
    waves = 4 * (-1.0) ** (n + 1) / (n * np.pi) ** 2 * np.cos(n * np.pi * x)
    turned = waves * np.cos(0.001 * (n * np.pi) ** 2 * t)
    exact = 2 / 3 + np.sum(turned, axis=0)
    assert np.linalg.norm(values - exact) < found.estimate * np.linalg.norm(exact)
    assert found.estimate < 6e-3


def test_points_that_know_nothing_of_each_other_need_no_period():
    system, found, t, x, values = march(LOGISTIC, 1e-8)
    # The data jump from x = 1 to x = 0: of harmonics 1e-2 would be missing.
    exact = (1 + x) * np.exp(5 * t) / ((1 + x) * np.exp(5 * t) + 3 - x)
    np.testing.assert_allclose(values, exact, rtol=1e-8)
    assert system.joined == ()
    assert build_system(loads_problem(KINK, "kink"), "rows").joined == (1,)
    # A file has the coefficients; the functions are those of the problem.
    settings = separable_settings(Settings(), False)
    again = network_of(system, settings, (1.0,), jax.random.key(0))
    assert isinstance(again, Separable) and isinstance(found.network, Separable)
    assert again.periodic == found.network.periodic == ()


@pytest.mark.parametrize(
    ("flux", "initial", "wall"),
    [
        ("u*dx(u)", "sin(pi*x) + sin(2*pi*x)/2", "u = 0"),
        ("u^2*(1 - u)", "cos(pi*x)/2 + cos(3*pi*x)", "dn(u) = 0"),
    ],
)
def test_walls_that_are_mirrors_make_a_period(tmp_path, flux, initial, wall):
    problem = a_flow(flux, initial, wall)
    system = build_system(problem, "rows")
    longer = mirrored(system)
    assert longer is not None
    assert longer.joined == (1,)
    assert [a.upper for a in longer.problem.axes] == [0.5, 2.0]
    solution = solve(problem, target=1e-7, budget=30)
    assert "a period with mirrors" in solution.report.strategy
    assert solution.report.verdict == "pass"
    assert all(c.violation < 1e-9 for c in solution.report.conditions)
    solution.save(tmp_path / "flow.h5")
    again = Solution.load(tmp_path / "flow.h5")
    at = {"t": np.linspace(0, 0.5, 7), "x": np.linspace(0, 1, 7)}
    np.testing.assert_array_equal(again(**at), solution(**at))


@pytest.mark.parametrize(
    ("flux", "initial", "wall"),
    [
        ("u*dx(u)", "sin(pi*x)^2", "u = 0"),  # The data are even.
        ("dx(u)", "sin(pi*x)", "u = 0"),  # It flows into the wall.
        ("u^2", "sin(pi*x)", "u = 0"),  # An even force on an odd function.
        ("u*dx(u)", "1 + cos(pi*x)/2", "dn(u) = 0"),
        ("u^3", "cos(pi*x)", "dn(u) = u"),
        ("u^3*x", "sin(pi*x)", "u = 0"),
    ],
)
def test_walls_that_are_no_mirrors_stay_walls(flux, initial, wall):
    assert mirrored(build_system(a_flow(flux, initial, wall), "rows")) is None


def test_what_has_no_two_walls_has_no_mirrors():
    for text in (
        KINK,
        MIRRORS.replace('"x = 0", "x = 1"', '"x = 0"'),
        MIRRORS.replace("FLUX", "integral(u, x)"),
    ):
        text = text.replace("FLUX", "u^3").replace("INITIAL", "sin(pi*x)")
        problem = loads_problem(text.replace("WALL", "u = 0"), "flow")
        assert mirrored(build_system(problem, "rows")) is None


def test_waves_between_mirrors_are_marched_from_place_and_velocity():
    problem = loads_problem(STRING, "string")
    system = build_system(problem, "rows")
    longer = mirrored(system)
    assert longer is not None
    found = route.solve_separable(longer, 1e-6, 60.0, lambda row: None, longer)
    assert found.network is not None
    t, x = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9)))
    points = jnp.asarray(np.stack([t, x], axis=1))
    values = np.asarray(jax.vmap(found.network)(points))[:, 0]
    exact = np.sin(np.pi * x) * (np.cos(np.pi * t) + np.sin(np.pi * t))
    np.testing.assert_allclose(values, exact, atol=1e-6)
