"""Classical evolution: right values, known orders, an error that bounds the truth."""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_solutions import (
    EVOLUTIONS,
    SYSTEMS,
    Reference,
    cole_hopf,
    evolution_reference,
    evolve,
    system_reference,
)

from pinnlab import load_problem, loads_problem
from pinnlab.grids import result_grid
from pinnlab.problem.problem import Problem
from pinnlab.reference.boundary import eliminate, face_rows
from pinnlab.reference.exponential import (
    ETDRK4,
    Coefficients,
    Lawson,
    coefficients,
    phi_functions,
)
from pinnlab.reference.fourier import Fourier, constant_form, method_for
from pinnlab.reference.grid import Line
from pinnlab.reference.initial_value import read_evolution
from pinnlab.reference.marched import march_evolution
from pinnlab.reference.radau import Radau, inverses
from pinnlab.reference.reference import NoReference
from pinnlab.reference.reference import Reference as Found
from pinnlab.reference.reflection import periodic_box
from pinnlab.reference.solve import solve_reference
from pinnlab.reference.steps import march
from pinnlab.reference.trajectory import Samples
from pinnlab.system.arrays import array_values
from pinnlab.system.terms import exact_solution


GALLERY = Path(__file__).parent.parent / "problems"


def gallery(name: str) -> Problem:
    return load_problem(GALLERY / f"{name}.toml")


def relative(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """One relative L2 error for each column."""
    gap = np.linalg.norm(found - truth, axis=0)
    return gap / np.linalg.norm(truth, axis=0)


def check_against_exact(problem: Problem, error: float, seconds: float) -> Found:
    """The true error is below the one asked for, and the stated one bounds it."""
    reference = solve_reference(problem, error=error, seconds=seconds)
    points = result_grid(problem).points
    exact = exact_solution(problem)
    truth = array_values(problem, tuple(exact.values()), points)
    true = relative(reference.at(points), truth)
    stated = np.array([reference.errors[f] for f in exact])
    assert np.all(true <= error)
    assert np.all(stated <= error)
    assert np.all(true <= 3 * stated + 1e-12)
    return reference


# ------------------------------------------------------------------ steps in time


@pytest.mark.parametrize("z", [-40.0, -1e6, 37j, -700 + 500j, 5.0, 1e3j])
def test_phi_functions_of_numbers(z: complex):
    exponential = np.exp(z)
    phi1 = (exponential - 1) / z
    phi2 = (phi1 - 1) / z
    phi3 = (phi2 - 0.5) / z
    found = phi_functions(np.array([[[z]]]))
    for value, exact in zip(found, (exponential, phi1, phi2, phi3), strict=True):
        assert np.isclose(value[0, 0, 0], exact, rtol=1e-12, atol=1e-300)


def test_phi_functions_near_zero_and_of_a_matrix_with_far_eigenvalues():
    assert np.isclose(phi_functions(np.array([[1e-9]]))[3][0, 0], 1 / 6, rtol=1e-9)
    values, vectors = np.array([-1e5, -1.0]), np.array([[1.0, 1.0], [0.5, -1.0]])
    matrix = vectors @ np.diag(values) @ np.linalg.inv(vectors)
    phi2 = (np.exp(values) - 1 - values) / values**2
    exact = vectors @ np.diag(phi2) @ np.linalg.inv(vectors)
    assert np.allclose(phi_functions(matrix)[2], exact, rtol=1e-11, atol=0)


def test_exponential_steps_are_of_fourth_order():
    # y = tanh(t) solves y' = -30 y + 30 tanh(t) + sech(t)^2 + y^2 - tanh(t)^2.
    known = lambda t: 30 * jnp.tanh(t) + 1 / jnp.cosh(t) ** 2 - jnp.tanh(t) ** 2

    @jax.jit
    def end(weights: Coefficients, steps: jax.Array) -> jax.Array:
        field = lambda n, y: (known(n / steps) + y**2) / steps
        solver = ETDRK4(weights, lambda m, y: jnp.dot(m, y))
        return march(solver, field, jnp.zeros(1), 1, steps)[-1, 0]

    errors = [
        abs(
            float(end(coefficients(np.array([[-30 / n]])), jnp.asarray(n))) - np.tanh(1)
        )
        for n in (20.0, 40.0, 80.0)
    ]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all((orders > 3.6) & (orders < 4.6))


def test_free_waves_are_at_rest_for_lawson_however_fast_they_turn():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])

    @jax.jit
    def end(weights: Coefficients, steps: jax.Array) -> jax.Array:
        field = lambda n, y: jnp.sum(y**2) * (turn @ y) / steps
        solver = Lawson(weights, lambda m, y: jnp.dot(m, y))
        return march(solver, field, jnp.array([1.0, 0.0]), 1, steps)[-1]

    def error(rate: float, steps: float) -> float:
        """Of z' = i rate z + i |z|^2 z, which is exp(i (rate + 1) t)."""
        found = end(coefficients(rate / steps * turn), jnp.asarray(steps))
        angle = rate + 1
        return float(np.hypot(found[0] - np.cos(angle), found[1] - np.sin(angle)))

    slow = error(1.0, 20.0), error(1.0, 40.0)
    assert 3.6 < np.log2(slow[0] / slow[1]) < 5.4
    assert error(2000.0, 20.0) == pytest.approx(slow[0], rel=1e-3)


def first_resolution(name: str) -> Fourier:
    evolution = read_evolution(gallery(name))
    box, form = periodic_box(evolution), constant_form(evolution)
    assert box is not None and form is not None
    return Fourier(evolution, form, tuple(i.line(256) for i in box))


def test_smooth_data_are_marched_by_exponential_differencing():
    assert method_for(first_resolution("kdv")) is ETDRK4
    assert method_for(first_resolution("allen_cahn")) is ETDRK4


@pytest.mark.slow
def test_waves_from_a_kink_are_marched_by_lawsons_method():
    assert method_for(first_resolution("schrodinger")) is Lawson


def test_radau_steps_keep_their_stage_order_where_the_problem_is_stiff():
    @jax.jit
    def last(solver: Radau, stiffness: jax.Array, steps: jax.Array) -> jax.Array:
        slope = lambda t, y: -stiffness * (y - jnp.sin(t)) + jnp.cos(t)
        field = lambda n, y: slope(2 * n / steps, y) * 2 / steps
        return march(solver, field, jnp.zeros(1), 1, steps)[-1, 0]

    def error(stiffness: float, steps: float) -> float:
        """Of y = sin(t) at t = 2 (Prothero and Robinson, 1974)."""
        matrix = np.array([[-stiffness * 2 / steps]])
        solver = Radau(jnp.asarray(matrix), jnp.asarray(inverses(matrix)))
        end = last(solver, jnp.asarray(stiffness), jnp.asarray(steps))
        return abs(float(end) - np.sin(2))

    # Methods of stage order 2, such as Kvaerno's, are at 1e-5 and of order 2 here.
    assert error(100.0, 4.0) < 1e-7
    assert np.log2(error(100.0, 2.0) / error(100.0, 4.0)) > 4.5


def test_times_in_between_are_interpolated_to_high_order():
    times = np.linspace(0, 2, 41)
    points = np.random.default_rng(0).uniform(0, 2, 200)
    matrix = Samples(times).interpolation(points)
    assert np.allclose(matrix @ np.cos(3 * times), np.cos(3 * points), atol=1e-9)
    assert np.array_equal(Samples(times).interpolation(times), np.eye(41))


# --------------------------------------------------------------------- space

WAVE = """
coordinates = { t = [0, 1], x = [0, "2*pi"] }
fields = ["u"]
periodic = ["x"]
[definitions]
wave = "exp(2*sin(x - t))"
[equations]
e = '''dt(u) + u*dx(u) = dxx(u)/10 + dt(wave) + wave*dx(wave) - dxx(wave)/10'''
[conditions]
initial = { on = "t = 0", equation = "u = wave" }
[exact]
u = "wave"
"""


def test_fourier_modes_converge_spectrally_and_time_with_the_fourth_order():
    problem = loads_problem(WAVE)
    evolution = read_evolution(problem)
    form, box = constant_form(evolution), periodic_box(evolution)
    assert form is not None and box is not None
    solver = Fourier(evolution, form, (box[0].line(48),))
    points = result_grid(problem).points
    truth = array_values(problem, tuple(exact_solution(problem).values()), points)
    error = lambda *args: relative(solver.run(*args).at(points), truth)[0]
    coarse = [error(800 * n, True) for n in (1, 2)]
    fine = [error(800 * n, False) for n in (1, 2)]
    # 10 waves leave out I_11(2) and on, 15 waves I_16(2): the coefficients of the wave.
    assert 1e-9 < coarse[1] < 1e-7
    assert np.isclose(coarse[0], coarse[1], rtol=1e-2)
    assert fine[1] < 3e-12
    assert 10 < fine[0] / fine[1] < 22


MIRRORS = """
coordinates = {{ t = [0, 1], x = [1, 3] }}
fields = ["u", "v"]
[equations]
a = "dt(u) + u*v = dxx(u) + {force}"
b = "dt(v) = dxx(v) + u^2"
[conditions]
initial = {{ on = "t = 0", equation = ["u = sin(pi*x)", "v = {start}"] }}
u = {{ on = ["x = 1", "x = 3"], equation = "u = 0" }}
v = {{ on = ["x = 1", "x = 3"], equation = "dn(v) = 0" }}
"""


@pytest.mark.parametrize(
    ("force", "start", "mirrored"),
    [
        ("0", "cos(pi*x)", True),
        ("sin(2*pi*x)", "1", True),
        ("1", "1", False),
        ("x*u", "1", False),
        ("0", "x", False),
    ],
)
def test_mirrors_are_found(force: str, start: str, mirrored: bool):
    problem = loads_problem(MIRRORS.format(force=force, start=start))
    box = periodic_box(read_evolution(problem))
    assert (box is not None) == mirrored
    if box is not None:
        assert (box[0].lower, box[0].upper) == (1, 5)


def test_elimination_meets_the_conditions_and_keeps_polynomials():
    problem = loads_problem(ROBIN)
    evolution = read_evolution(problem)
    rows = face_rows(evolution)
    line = Line("x", 0.0, 1.0, 12)
    found = eliminate(line, rows)
    values = line.nodes**5 - 2 * line.nodes
    data = np.array([row.row(line) @ values for row in rows])
    rebuilt = found.extend @ (found.restrict @ values) + found.impose @ data
    assert np.allclose(rebuilt, values, atol=1e-12)
    slope = 5 - 2
    assert np.isclose(data[1], slope + 3 * (1 - 2))


# ------------------------------------------------------- from problem to reference

ROBIN = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[definitions]
w = "exp(-t)*sin(2*x + t)"
k = "1 + x/2"
[equations]
e = '''(2 + x)*dt(u) = dx(k*dx(u)) - u^3 + integral(u, x)
  + (2 + x)*dt(w) - dx(k*dx(w)) + w^3 - exp(-t)*(cos(t) - cos(2 + t))/2'''
[conditions]
end = { on = "t = 0", equation = "2*u = 2*w" }
left = { on = "x = 0", equation = "u = w" }
right = { on = "x = 1", equation = "dn(u) + 3*u = dx(w) + 3*w" }
[exact]
u = "w"
"""


def test_a_box_with_robin_data_an_integral_and_variable_coefficients():
    reference = check_against_exact(loads_problem(ROBIN), 1e-9, 60)
    assert "Radau" in reference.method


def test_mirrored_faces_give_rounding_errors():
    reference = check_against_exact(gallery("heat_1d"), 1e-9, 60)
    assert reference.error < 1e-12
    assert "Fourier" in reference.method
    inside = reference.at(np.array([[0.1234, 0.4321]]))
    exact = np.exp(-(np.pi**2) * 0.1234 / 4) * np.sin(np.pi * 0.4321)
    assert np.isclose(inside[0, 0], exact, rtol=1e-11)


def test_an_oscillator_and_what_less_accuracy_costs():
    reference = check_against_exact(gallery("oscillator"), 1e-8, 60)
    loose = reference.seconds_to(1.0)
    assert loose is not None and loose <= reference.seconds
    assert reference.seconds_to(1e-18) is None


def marched(problem):
    """The solution by marching alone: `solve_reference` has other ways."""
    deadline = time.perf_counter() + 5
    return march_evolution(read_evolution(problem), error=1e-3, deadline=deadline)


def test_marching_refuses_what_it_cannot_do():
    with pytest.raises(NoReference, match="differential-algebraic"):
        marched(gallery("taylor_green"))
    nonlinear = ROBIN.replace('"dn(u) + 3*u = dx(w) + 3*w"', '"dn(u) + u^4 = 1"')
    with pytest.raises(NoReference, match="not linear"):
        marched(loads_problem(nonlinear))
    delayed = ROBIN.replace("- u^3", "- at(u, t = t/2)")
    with pytest.raises(NoReference, match="another place or time"):
        marched(loads_problem(delayed))


# ----------------------------------------------------------------- the gallery

EXACT = {
    "wave_1d": 1e-9, "heat_2d": 1e-9, "wave_2d": 1e-9, "klein_gordon": 1e-9,
    "sine_gordon": 1e-9, "fisher": 1e-9, "black_scholes": 1e-9, "advection": 1e-9,
    "reaction_5": 1e-9, "convection_50": 1e-9, "heat_nonlocal": 1e-9,
    "generalized_ks": 1e-5,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_gallery_problems_with_closed_forms(name: str):
    check_against_exact(gallery(name), EXACT[name], 300)


QUASILINEAR = """
coordinates = { t = [0, 1], x = [0, 2] }
fields = ["u"]
[definitions]
w = "2 + sin(2*x + t)"
[equations]
e = "dt(u) = dx(u*dx(u)) + dt(w) - dx(w*dx(w))"
[conditions]
start = { on = "t = 0", equation = "u = w" }
left = { on = "x = 0", equation = "dx(u) = dx(w)" }
right = { on = "x = 2", equation = "u = w" }
[exact]
u = "w"
"""

PLATE = """
coordinates = { x = [0, 1], t = [0, 0.5], y = [0, 2] }
fields = ["u"]
[definitions]
w = "exp(-t)*sin(x + y) + x*y"
[equations]
e = "dt(u) = lap(u) + u - u^2 + exp(-t)*sin(x + y) - w + w^2"
[conditions]
start = { on = "t = 0", equation = "u = w" }
a = { on = ["x = 0", "y = 2"], equation = "u = w" }
b = { on = "x = 1", equation = "dn(u) + u = exp(-t)*cos(x + y) + y + w" }
c = { on = "y = 0", equation = "dn(u) = -exp(-t)*cos(x + y) - x" }
[exact]
u = "w"
"""

BEAM = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[definitions]
w = "sin(3*t)*x^2*(1 - x)^2"
[equations]
e = "dtt(u) + dxxxx(u)/100 = -9*w + sin(3*t)*24/100"
[conditions]
start = { on = "t = 0", equation = ["u = 0", "dt(u) = 3*x^2*(1 - x)^2"] }
clamped = { on = ["x = 0", "x = 1"], equation = ["u = 0", "dn(u) = 0"] }
[exact]
u = "w"
"""

ACOUSTICS = """
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["p", "v"]
[equations]
a = "(1 + x)*dt(p) + dt(v) + (1 + x)*dx(v) + dx(p) = 0"
b = "dt(v) + dx(p) = 0"
[conditions]
start = { on = "t = 0", equation = ["p = cos(3*x)", "v = 0"] }
wall = { on = "x = 0", equation = "v = 0" }
open = { on = "x = 1", equation = "p = cos(3*t)*cos(3)" }
[exact]
p = "cos(3*t)*cos(3*x)"
v = "sin(3*t)*sin(3*x)"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "method"),
    [
        (QUASILINEAR, "Kvaerno5"),
        (PLATE, "Radau"),
        (BEAM, "Radau"),
        (ACOUSTICS, "Radau"),
    ],
)
def test_other_kinds_of_problems_with_closed_forms(text: str, method: str):
    reference = check_against_exact(loads_problem(text), 1e-8, 300)
    assert method in reference.method


@pytest.mark.slow
def test_initial_values_that_disagree_with_the_boundary():
    problem = loads_problem("""
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u)/10"
[conditions]
start = { on = "t = 0", equation = "u = 1" }
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
""")
    reference = solve_reference(problem, error=1e-6, seconds=120)
    points = result_grid(problem).points
    t, x = points.T
    truth = sum(
        4 / (np.pi * k) * np.exp(-((np.pi * k) ** 2) * t / 10) * np.sin(np.pi * k * x)
        for k in range(1, 400, 2)
    )
    truth = np.where(t == 0, 1.0, truth)[:, None]
    true = relative(reference.at(points), truth)[0]
    assert true <= reference.error <= 1e-6


@pytest.mark.slow
def test_burgers_against_cole_hopf():
    problem = gallery("burgers")
    reference = solve_reference(problem, error=1e-9, seconds=300)
    grid = result_grid(problem)
    axes = grid.axes
    truth = cole_hopf(axes["t"], axes["x"]).reshape(-1, 1)
    true = relative(reference.at(grid.points), truth)[0]
    assert true < 1e-9
    assert true <= 3 * reference.error


def _independent(name: str, problem: Problem) -> tuple[np.ndarray, float]:
    grid = result_grid(problem)
    axes = grid.axes
    if name in SYSTEMS:
        found: Reference = system_reference(name, axes["t"])
        return found.values[:, : len(problem.fields)], found.error
    found = evolution_reference(name, len(axes["t"]), axes["x"])
    flat = found.values.reshape(-1, 1)
    if np.iscomplexobj(flat):
        flat = np.concatenate([np.real(flat), np.imag(flat)], axis=1)
    return flat, found.error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("kdv", 1e-9),
        ("kuramoto_sivashinsky", 1e-8),
        ("cahn_hilliard", 1e-9),
        ("schrodinger", 1e-8),
        ("lorenz", 1e-9),
        ("van_der_pol", 1e-9),
    ],
)
def test_gallery_problems_without_closed_forms(name: str, error: float):
    problem = gallery(name)
    reference = solve_reference(problem, error=error, seconds=300)
    truth, doubt = _independent(name, problem)
    found = reference.at(result_grid(problem).points)
    assert reference.error <= error
    assert np.all(relative(found, truth) <= doubt + 2 * reference.error)


@pytest.mark.slow
def test_a_kink_in_the_initial_values_is_seen_in_the_error():
    problem = gallery("allen_cahn")
    reference = solve_reference(problem, error=1e-7, seconds=300)
    assert reference.error <= 1e-7
    grid = result_grid(problem)
    axes = grid.axes
    points = grid.points
    truth = evolve(EVOLUTIONS["allen_cahn"], 201, axes["x"], 16384, 400).reshape(-1, 1)
    # Away from the kink at x = 1, where the comparison's own samples are fine enough.
    inner = np.abs(points[:, 1]) <= 0.95
    assert relative(reference.at(points)[inner], truth[inner])[0] < 1e-7


@pytest.mark.slow
def test_a_stiff_oscillator_against_scipy():
    from scipy.integrate import solve_ivp

    problem = loads_problem("""
coordinates = { t = [0, 2000] }
fields = ["u"]
[equations]
motion = "dtt(u) = 1000*(1 - u^2)*dt(u) - u"
[conditions]
initial = { on = "t = 0", equation = ["u = 2", "dt(u) = 0"] }
""")
    reference = solve_reference(problem, error=1e-7, seconds=120)
    assert "Kvaerno5" in reference.method
    times = result_grid(problem).axes["t"]
    slope = lambda t, y: [y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]]
    truth = solve_ivp(
        slope, (0, 2000), [2.0, 0.0], "Radau", t_eval=times, rtol=1e-12, atol=1e-12
    ).y[0]
    true = relative(reference.at(times[:, None]), truth[:, None])[0]
    assert true <= 3 * reference.error + 1e-8


@pytest.mark.slow
def test_a_pulse_between_the_nodes_is_not_missed():
    problem = loads_problem("""
coordinates = { t = [0, 0.1], x = [0, 1] }
fields = ["u"]
[definitions]
w = "exp(-((x - t - 0.52)/0.015)^2)"
[equations]
transport = "dt(u) + dx(u) = 0"
[conditions]
start = { on = "t = 0", equation = "u = w" }
inflow = { on = "x = 0", equation = "u = 0" }
[exact]
u = "w"
""")
    reference = check_against_exact(problem, 1e-2, 120)
    assert reference.efforts[0].error > 0.1


QUASILINEAR = """
coordinates = { t = [0, 2], x = [0, 1] }
fields = ["u"]
[equations]
e = "dt(u) = u*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = 2 + cos(pi*x)" }
ends = { on = ["x = 0", "x = 1"], equation = "dn(u) = 0" }
"""


def test_a_march_ends_when_its_time_is_over():
    evolution = read_evolution(loads_problem(QUASILINEAR, "quasilinear"))
    with pytest.raises(NoReference, match="fits the time"):
        march_evolution(evolution, error=1e-6, deadline=time.perf_counter())
