"""Steady classical solutions against closed forms and an independently coded flow."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from cavity_reference import cavity_velocity
from scipy.special import ellipj, erf, j0

from pinnlab.problem.file import load_problem, loads_problem
from pinnlab.problem.problem import Problem
from pinnlab.reference.boundary_value import collocate, variants
from pinnlab.reference.newton import newton, rows_of
from pinnlab.reference.reference import NoReference, Reference
from pinnlab.reference.steady import solve_steady
from pinnlab.reference.steady_basis import Chebyshev, Fourier
from pinnlab.reference.steady_diagonalization import solve_separable
from pinnlab.reference.steady_separable import separate
from pinnlab.reference.steady_statements import pose


PROBLEMS = Path(__file__).parent.parent / "problems"
LINE = "{ x = [0, 1] }"
SQUARE = "{ x = [0, 1], y = [0, 1] }"


def gallery(name: str) -> Problem:
    return load_problem(PROBLEMS / f"{name}.toml")


def stated(
    coordinates: str, equations: list[str], conditions: list[str], more: str = "",
    fields: str = '["u"]', top: str = "",
) -> Problem:  # fmt: skip
    lines = [f"coordinates = {coordinates}", f"fields = {fields}", top, more]
    lines += ["[equations]", *(f"e{i} = '{e}'" for i, e in enumerate(equations))]
    lines += ["[conditions]", *(f"c{i} = {c}" for i, c in enumerate(conditions))]
    return loads_problem("\n".join(lines))


def fixed(place: str, equation: str) -> str:
    return f"{{ on = '{place}', equation = '{equation}' }}"


def grid(problem: Problem, count: int) -> np.ndarray:
    lines = [np.linspace(a.lower, a.upper, count) for a in problem.axes]
    return np.stack([m.ravel() for m in np.meshgrid(*lines, indexing="ij")], axis=1)


def relative(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def check(problem: Problem, reference: Reference, truth, error: float) -> None:
    """The true error is small, and not larger than what the reference states."""
    points = grid(problem, {1: 201, 2: 31, 3: 11}[len(problem.axes)])
    found = reference.at(points)
    exact = truth(*points.T)
    exact = exact if isinstance(exact, tuple) else (exact,)
    for k, (name, values) in enumerate(zip(reference.fields, exact, strict=True)):
        true = relative(found[:, k], values)
        assert true < error
        # The points differ from those that the reference measures its error on.
        assert true < 3 * reference.errors[name]


fin_m = np.sqrt(4 * 100 / (398 * 0.005))
fin_ratio = 100 / (fin_m * 398)


def fin(x: np.ndarray) -> np.ndarray:
    z = fin_m * (0.1 - x)
    scale = np.cosh(fin_m * 0.1) + fin_ratio * np.sinh(fin_m * 0.1)
    return 25 + 75 * (np.cosh(z) + fin_ratio * np.sinh(z)) / scale


def bratu(x: np.ndarray) -> np.ndarray:
    theta = 1.5171645990507543
    return -2 * np.log(np.cosh((x - 0.5) * theta / 2) / np.cosh(theta / 4))


def density(x: np.ndarray) -> np.ndarray:
    boltzmann = lambda s: np.exp(8 * (0.15 * s**2 - 0.125 * s**4))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return boltzmann(x) / (2.2 * weights @ boltzmann(2.2 * nodes))


LINES = {
    "poisson_1d_dirichlet": lambda x: np.sin(np.pi * x) + np.sin(4 * np.pi * x) / 4,
    "poisson_1d_neumann": lambda x: x * np.exp(-x),
    "poisson_1d_robin": lambda x: np.sin(np.pi * x) + np.pi / 2,
    "poisson_1d_periodic": lambda x: np.sin(x) + np.cos(3 * x) / 9,
    "clamped_beam": lambda x: -(x**2) * (1 - x) ** 2 / 24,
    "sixth_order": lambda x: (1 - x) * np.exp(x),
    "cooling_fin": fin,
    "acoustic_duct": lambda x: (np.cos(10 * x), -np.sin(10 * x)),
    "fokker_planck": density,
    "volterra": lambda t: np.exp(-t) * np.sin(2 * t) / 2,
    "bratu": bratu,
}


@pytest.mark.parametrize("name", LINES)
def test_gallery_problems_on_a_line(name):
    problem = gallery(name)
    reference = solve_steady(problem, error=1e-11, seconds=30)
    check(problem, reference, LINES[name], 1e-11)


def kovasznay(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    rate = 20 - np.sqrt(400 + 4 * np.pi**2)
    wave = np.exp(rate * x)
    return (
        1 - wave * np.cos(2 * np.pi * y),
        rate / (2 * np.pi) * wave * np.sin(2 * np.pi * y),
        (1 - wave**2) / 2,
    )


BOXES = {
    "poisson_2d": lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    "helmholtz_14": lambda x, y: np.sin(np.pi * x) * np.sin(4 * np.pi * y),
    "hinged_plate": lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    "poisson_3d": lambda x, y, z: np.sin(x) * np.cos(y) * np.exp(z),
    "kovasznay": kovasznay,
}


@pytest.mark.parametrize("name", BOXES)
def test_gallery_problems_on_boxes(name):
    problem = gallery(name)
    reference = solve_steady(problem, error=1e-10, seconds=60)
    check(problem, reference, BOXES[name], 1e-10)


def test_many_waves():
    problem = gallery("helmholtz_66")
    wave = lambda s: np.sin(6 * np.pi * s)
    reference = solve_steady(problem, error=1e-10, seconds=60)
    check(problem, reference, lambda x, y: wave(x) * wave(y), 1e-10)


@pytest.mark.slow
def test_waves_in_a_cube():
    problem = stated(
        "{ x = [0, 1], y = [0, 2], z = [0, 1] }",
        ["lap(u) + 5*u = (5 - 75*pi^2)*sin(5*pi*x)*cos(5*pi*y)*sin(5*pi*z + 1)"],
        [fixed("boundary", "u = sin(5*pi*x)*cos(5*pi*y)*sin(5*pi*z + 1)")],
    )
    wave = lambda x, y, z: (
        np.sin(5 * np.pi * x) * np.cos(5 * np.pi * y) * np.sin(5 * np.pi * z + 1)
    )
    check(problem, solve_steady(problem, error=1e-10, seconds=90), wave, 1e-9)


def test_flow_in_a_cavity_agrees_with_a_stream_function():
    problem = gallery("cavity_100")
    posed = pose(problem)
    unknowns = np.zeros(0)
    system = None
    for count in (10, 20):
        finer = collocate(posed, variants(posed)[1], count)
        start = (
            np.zeros(finer.size)
            if system is None
            else system.expansion(unknowns).prolong(finer.spaces)
        )
        unknowns = newton(rows_of(finer), start, 1e-10).unknowns
        system = finer
    assert system is not None
    x, y = grid(problem, 41).T
    u, v = cavity_velocity(20, x, y)
    found = system.expansion(unknowns).values(np.stack([x, y], axis=1))
    # The vorticity jumps in the upper corners: the error falls as count^-3.5.
    assert np.sqrt(np.mean((found[:, 0] - u) ** 2)) < 1e-4
    assert np.sqrt(np.mean((found[:, 1] - v) ** 2)) < 1e-4


@pytest.mark.parametrize("length", [6.0, 6000.0, 6e-6])
def test_units_do_not_matter(length):
    problem = stated(
        f"{{ x = [0, {length}] }}",
        ["E*I*dxxxx(u) = q"],
        [
            f"{{ on = ['x = 0', 'x = {length}'], equation = ['u = 0', 'dx(u) = 0'] }}",
        ],
        "[parameters]\nE = 2.1e11\nI = 8.4e-5\nq = 1e4",
    )
    reference = solve_steady(problem, error=1e-11, seconds=10)
    truth = lambda x: 1e4 * x**2 * (length - x) ** 2 / (24 * 2.1e11 * 8.4e-5)
    check(problem, reference, truth, 1e-12)


def test_a_jump_in_a_coefficient_keeps_the_flux():
    problem = stated(
        LINE,
        ["dx(k*dx(u)) = -1"],
        [fixed("x = 0", "u = 0"), fixed("x = 1", "u = 0")],
        "[definitions]\nk = 'where(x < 0.3, 1, 10)'",
    )
    # k u' = a - x on both sides; u continuous at 0.3 and zero at 1.
    a = (0.3**2 / 2 + (1 - 0.3**2) / 20) / (0.3 + 0.07)
    left = lambda x: a * x - x**2 / 2
    right = lambda x: (a * (x - 1) - (x**2 - 1) / 2) / 10
    truth = lambda x: np.where(x < 0.3, left(x), right(x))
    check(problem, solve_steady(problem, error=1e-12, seconds=10), truth, 1e-12)


def test_a_layered_wall_in_two_dimensions():
    problem = stated(
        SQUARE,
        ["div(where(x < 0.5, 1, 3)*grad(u)) = 0"],
        [
            fixed("x = 0", "u = 0"),
            fixed("x = 1", "u = 1"),
            fixed("y = 0", "dn(u) = 0"),
            fixed("y = 1", "dn(u) = 0"),
        ],
    )
    truth = lambda x, y: np.where(x < 0.5, 1.5 * x, 0.5 * x + 0.5)
    check(problem, solve_steady(problem, error=1e-10, seconds=20), truth, 1e-12)


def test_a_beam_whose_stiffness_jumps():
    problem = stated(
        LINE,
        ["dxx(EI*dxx(u)) = 1"],
        [
            fixed("x = 0", "u = 0"),
            fixed("x = 0", "dx(u) = 0"),
            fixed("x = 1", "EI*dxx(u) = 0"),
            fixed("x = 1", "dx(EI*dxx(u)) = 0"),
        ],
        "[definitions]\nEI = 'where(x < 0.5, 1, 0) + where(x > 0.5, 3, 0)'",
    )

    # The moment is (1 - x)^2/2; deflection and slope are continuous.
    def truth(x):
        bent = lambda s: (1 - s) ** 4 / 24
        slope = lambda s: -((1 - s) ** 3) / 6
        first = bent(x) - bent(0) - slope(0) * x
        tilt = slope(0.5) - slope(0) - slope(0.5) / 3
        height = bent(0.5) - bent(0) - slope(0) * 0.5 - bent(0.5) / 3
        second = bent(x) / 3 + height + tilt * (x - 0.5)
        return np.where(x < 0.5, first, second)

    check(problem, solve_steady(problem, error=1e-12, seconds=10), truth, 1e-12)


def test_a_flow_without_cross_flow_has_none():
    problem = stated(
        "{ x = [0, 2], y = [0, 1] }",
        [
            "u*dx(u) + v*dy(u) = -dx(p) + lap(u)/10",
            "u*dx(v) + v*dy(v) = -dy(p) + lap(v)/10",
            "div(u, v) = 0",
        ],
        [
            "{ on = ['y = 0', 'y = 1'], equation = ['u = 0', 'v = 0'] }",
            "{ on = 'x = 0', equation = ['u = y*(1 - y)', 'v = 0'] }",
            "{ on = 'x = 2', equation = ['p = 0', 'v = 0'] }",
        ],
        fields='["u", "v", "p"]',
    )
    reference = solve_steady(problem, error=1e-10, seconds=20)
    x, y = grid(problem, 11).T
    u, v, p = reference.at(np.stack([x, y], axis=1)).T
    np.testing.assert_allclose(u, y * (1 - y), atol=1e-13)
    np.testing.assert_allclose(p, (2 - x) / 5, atol=1e-13)
    assert np.all(v == 0)
    assert reference.error < 1e-10


def test_elasticity_in_pascals_and_meters():
    problem = stated(
        SQUARE,
        [
            "(l + 2*m)*dxx(u) + m*dyy(u) + (l + m)*dxy(v) = (l + 2*m)*dxx(U) "
            "+ m*dyy(U) + (l + m)*dxy(V)",
            "(l + 2*m)*dyy(v) + m*dxx(v) + (l + m)*dxy(u) = (l + 2*m)*dyy(V) "
            "+ m*dxx(V) + (l + m)*dxy(U)",
        ],
        ["{ on = 'boundary', equation = ['u = U', 'v = V'] }"],
        "[parameters]\nl = 1e11\nm = 8e10\n"
        "[definitions]\nU = '1e-5*sin(x)*cos(2*y)'\nV = '1e-5*cos(x*y)'",
        fields='["u", "v"]',
    )
    reference = solve_steady(problem, error=1e-10, seconds=20)
    truth = lambda x, y: (1e-5 * np.sin(x) * np.cos(2 * y), 1e-5 * np.cos(x * y))
    check(problem, reference, truth, 1e-10)


def test_a_coefficient_that_jumps_along_a_curve_is_refused():
    problem = stated(
        SQUARE,
        ["div(where(x^2 + y^2 < 0.5, 1, 3)*grad(u)) = 1"],
        [fixed("boundary", "u = 0")],
    )
    with pytest.raises(NoReference, match="curve"):
        solve_steady(problem, error=1e-6, seconds=5)


def test_a_kink_in_the_data():
    problem = stated(
        "{ x = [-1, 1] }",
        ["dxx(u) = abs(x - 0.3)"],
        [fixed("x = -1", "u = 1.3^3/6"), fixed("x = 1", "u = 0.7^3/6")],
    )
    reference = solve_steady(problem, error=1e-12, seconds=10)
    check(problem, reference, lambda x: np.abs(x - 0.3) ** 3 / 6, 1e-12)


def test_a_system_with_conditions_on_one_field():
    problem = stated(
        LINE,
        ["dx(u) = v", "dx(v) = -4*u"],
        [fixed("x = 0", "u = 0"), fixed("x = 1", "u = sin(2)")],
        fields='["u", "v"]',
    )
    truth = lambda x: (np.sin(2 * x), 2 * np.cos(2 * x))
    check(problem, solve_steady(problem, error=1e-12, seconds=10), truth, 1e-12)


def test_a_singular_point_needs_no_condition():
    problem = stated(
        "{ r = [0, 1] }",
        ["d(u, r, r) + d(u, r)/r + 4*u = 0"],
        [fixed("r = 1", "u = 1")],
    )
    reference = solve_steady(problem, error=1e-12, seconds=10)
    check(problem, reference, lambda r: j0(2 * r) / j0(2), 1e-12)


def test_a_condition_inside():
    problem = stated(
        LINE,
        ["dxx(u) + u = 0"],
        [fixed("x = 0", "u = 0"), fixed("x = 0.25", "u = sin(0.25)")],
    )
    check(problem, solve_steady(problem, error=1e-12, seconds=10), np.sin, 1e-12)


def test_a_fredholm_equation():
    problem = stated(
        LINE, ["u = exp(x) - x + integral(x*s*at(u, x = s), s = [0, 1])"], []
    )
    check(problem, solve_steady(problem, error=1e-12, seconds=10), np.exp, 1e-12)


def test_a_nonlinear_equation_that_is_singular_at_zero():
    problem = stated(
        LINE,
        ["u*dxx(u) + dx(u)^2 = 1"],
        [fixed("x = 0", "u = 1"), fixed("x = 1", "u = sqrt(2)")],
    )
    truth = lambda x: np.sqrt(1 + x**2)
    check(problem, solve_steady(problem, error=1e-10, seconds=10), truth, 1e-10)


def test_a_nonlinear_oscillation():
    # u = sn(x, m) solves u'' + (1 + m) u = 2 m u^3.
    m = 0.8
    problem = stated(
        "{ x = [0, 4] }",
        ["dxx(u) + 1.8*u = 1.6*u^3"],
        [fixed("x = 0", "u = 0"), fixed("x = 0", "dx(u) = 1")],
    )
    truth = lambda x: ellipj(x, m)[0]
    check(problem, solve_steady(problem, error=1e-10, seconds=10), truth, 1e-10)


def test_a_nonlinear_equation_on_a_square():
    bump = "sin(pi*x)*sin(pi*y)"
    problem = stated(
        SQUARE,
        [f"lap(u) = u^3 - ({bump})^3 - 2*pi^2*{bump}"],
        [fixed("boundary", "u = 0")],
    )
    truth = lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y)
    check(problem, solve_steady(problem, error=1e-10, seconds=20), truth, 1e-10)


def test_a_clamped_plate():
    bump = "sin(pi*x)^2*sin(pi*y)^2"
    problem = stated(
        SQUARE,
        [f"lap(lap(u)) = lap(lap({bump}))"],
        [fixed("boundary", "u = 0"), fixed("boundary", "dn(u) = 0")],
    )
    truth = lambda x, y: (np.sin(np.pi * x) * np.sin(np.pi * y)) ** 2
    check(problem, solve_steady(problem, error=1e-10, seconds=20), truth, 1e-10)


def test_a_strip_that_is_periodic_along_x():
    problem = stated(
        "{ x = [0, '2*pi'], y = [0, 1] }",
        ["lap(u) = 0"],
        [fixed("y = 0", "u = 0"), fixed("y = 1", "u = exp(cos(x))*cos(sin(x)) - 1")],
        top='periodic = ["x"]',
    )
    # exp(cos x) cos(sin x) = sum_k cos(k x)/k!
    k = np.arange(1, 26)
    factorials = np.cumprod(k.astype(float))
    truth = lambda x, y: np.sum(
        np.cos(np.outer(x, k)) * np.sinh(np.outer(y, k)) / np.sinh(k) / factorials, 1
    )
    check(problem, solve_steady(problem, error=1e-10, seconds=20), truth, 1e-10)


@pytest.mark.parametrize(
    "problem, reason",
    [
        (stated(LINE, ["dxx(u) = cos(pi*x)"], [fixed("boundary", "dn(u) = 0")]),
         "a constant may be added to 'u'"),
        (stated(SQUARE, ["lap(u) = cos(pi*x)"], [fixed("boundary", "dn(u) = 0")]),
         "a constant may be added to 'u'"),
        (stated(LINE, ["dxx(u) + pi^2*u = 0"], [fixed("boundary", "u = 0")]),
         "'u' has a part that nothing determines"),
        (stated(LINE, ["dxx(u) + u = 0"], [fixed("x = 0", "u = 1")]),
         "not unique"),
        (stated(SQUARE, ["lap(u) = sin(2*pi*x)"], [], top='periodic = ["x", "y"]'),
         "a constant may be added to 'u'"),
        (stated(LINE, ["dxx(u) = 1"],
                [fixed("boundary", "dn(u) = 0"), fixed("x = 0", "u = 0")]),
         "contradict"),
        (stated(LINE, ["dxx(u) = 0"],
                [fixed("boundary", "u = 1"), fixed("x = 0.5", "u = 0")]),
         "contradict"),
    ],
    ids=["neumann", "neumann 2d", "resonance", "missing", "periodic", "incompatible",
         "contradiction"],
)  # fmt: skip
def test_what_has_no_unique_solution_is_named(problem, reason):
    with pytest.raises(NoReference, match=reason):
        solve_steady(problem, error=1e-8, seconds=20)


def test_a_root_singularity_is_refused():
    # Successive solutions agree to 1e-3 here, and are wrong by a tenth.
    exact = "sqrt((sqrt((x - 0.5)^2 + y^2) + x - 0.5)/2)"
    problem = stated(
        SQUARE,
        ["lap(u) = 0"],
        [
            fixed("y = 0 and x < 0.5", "u = 0"),
            fixed("y = 0 and x > 0.5", "dn(u) = 0"),
            f"{{ on = ['x = 0', 'x = 1', 'y = 1'], equation = 'u = {exact}' }}",
        ],
    )
    with pytest.raises(NoReference, match="singular"):
        solve_steady(problem, error=1e-2, seconds=5)


def test_pressure_needs_a_value_somewhere():
    text = (PROBLEMS / "kovasznay.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("pressure")]
    with pytest.raises(NoReference, match="a constant may be added to 'p'"):
        solve_steady(loads_problem("\n".join(lines)), error=1e-6, seconds=20)


def test_a_source_between_the_points_is_not_missed():
    # At 12 and 18 points the source is 0 to rounding.
    problem = stated(
        LINE,
        ["dxx(u) = 1e3*exp(-((x - 0.37)/0.002)^2)"],
        [fixed("boundary", "u = 0")],
    )
    w, c = 0.002, 0.37

    def twice(x):
        z = (x - c) / w
        flat = np.sqrt(np.pi) * z * erf(z) + np.exp(-(z**2))
        return 1e3 * w**2 / 2 * flat

    truth = lambda x: twice(x) - (1 - x) * twice(0.0) - x * twice(1.0)
    reference = solve_steady(problem, error=1e-10, seconds=30)
    check(problem, reference, truth, 1e-10)


def test_a_thin_layer():
    problem = stated(LINE, ["-1e-3*dxx(u) + dx(u) = 1"], [fixed("boundary", "u = 0")])
    truth = lambda x: x - np.exp(-(1 - x) * 1e3)
    check(problem, solve_steady(problem, error=1e-9, seconds=20), truth, 1e-9)


def test_heat_in_space_and_time_at_once():
    problem = stated(
        "{ t = [0, 1], x = [0, 1] }",
        ["dt(u) = dxx(u)"],
        [fixed("t = 0", "u = sin(pi*x)"), fixed("boundary", "u = 0")],
    )
    truth = lambda t, x: np.exp(-(np.pi**2) * t) * np.sin(np.pi * x)
    check(problem, solve_steady(problem, error=1e-10, seconds=20), truth, 1e-9)


def test_separated_and_dense_solutions_have_a_true_error_that_falls_geometrically():
    problem = gallery("poisson_3d")
    separable = separate(pose(problem))
    assert separable is not None
    points = grid(problem, 9)
    x, y, z = points.T
    truth = np.sin(x) * np.cos(y) * np.exp(z)
    errors = [
        relative(solve_separable(separable, n)[0].values(points)[:, 0], truth)
        for n in (3, 5, 7, 9)
    ]
    assert all(b < 0.05 * a for a, b in pairwise(errors))
    large = solve_separable(separable, 28)[0].values(points)[:, 0]
    assert relative(large, truth) < 1e-12


def test_elements_that_are_halved_keep_the_function():
    coarse = Chebyshev((0.0, 0.4, 1.0), 8, 2)
    fine = Chebyshev((0.0, 0.2, 0.4, 0.7, 1.0), 9, 2)
    coefficients = np.random.default_rng(1).normal(size=coarse.size)
    x = np.linspace(0.01, 0.99, 40)
    for order in (0, 1, 2):
        before = coarse.matrix(x, order) @ coefficients
        after = fine.matrix(x, order) @ coarse.prolong(coefficients, fine)
        np.testing.assert_allclose(after, before, atol=1e-11)


def test_collocation_converges_geometrically():
    problem = gallery("poisson_1d_neumann")
    posed = pose(problem)
    x = np.linspace(0, 2, 101)
    errors = []
    for count in (4, 7, 10):
        system = collocate(posed, variants(posed)[0], count)
        unknowns = newton(rows_of(system), np.zeros(system.size), 1e-12).unknowns
        found = system.expansion(unknowns).values(x[:, None])[:, 0]
        errors.append(relative(found, x * np.exp(-x)))
    assert errors[1] < 0.01 * errors[0]
    assert errors[2] < 0.01 * errors[1]


@pytest.mark.parametrize(
    "basis",
    [Chebyshev((0.0, 0.4, 1.0), 9, 3), Chebyshev((0.0, 1.0), 9, 0),
     Fourier(0.0, 1.0, 9)],
    ids=["elements", "polynomials", "waves"],
)  # fmt: skip
@pytest.mark.parametrize("order", range(4))
def test_derivatives_of_the_basis_are_its_slopes(basis, order):
    x = np.array([0.03, 0.21, 0.55, 0.83])
    h = 1e-4
    stencil = np.array([1, -8, 8, -1]) / (12 * h)
    shifts = np.array([-2, -1, 1, 2]) * h
    slope = sum(
        w * basis.matrix(x + s, order) for w, s in zip(stencil, shifts, strict=True)
    )
    exact = basis.matrix(x, order + 1)
    assert np.max(np.abs(slope - exact)) < 1e-6 * np.max(np.abs(exact))
