"""What preflight says about problems that have no, or no unique, solution."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab import load_problem
from pinnlab.equation.calculus import expand
from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import Expression
from pinnlab.equation.parser import parse_expression
from pinnlab.equation.scope import Scope
from pinnlab.problem.build import make_problem
from pinnlab.sampling import sample
from pinnlab.system.arrays import array_values
from pinnlab.system.system import build_system
from pinnlab.system.terms import EVERYWHERE, exact_solution
from pinnlab.verify.jumps import find_jump
from pinnlab.verify.linearized import linearize
from pinnlab.verify.preflight import examine
from pinnlab.verify.trial import make_basis, random_state


GALLERY = Path(__file__).parent.parent / "problems"
LINE = {"x": [0, 1]}
SQUARE = {"x": [0, 1], "y": [0, 1]}
ROD = {"t": [0, 1], "x": [0, 10]}
ENDS = ["x = 0", "x = 10"]
WAVE = "u = sin(pi*x/10)"
FLOW = [
    "u*dx(u) + v*dy(u) = -dx(p) + lap(u)",
    "u*dx(v) + v*dy(v) = -dy(p) + lap(v)",
    "div(u, v) = 0",
]


def problem_of(coordinates, fields, equations, *conditions, **more):
    """A problem; a condition is a pair of places (or None) and an equation."""
    given = {
        f"c{i}": {"equation": e} | ({} if on is None else {"on": on})
        for i, (on, e) in enumerate(conditions)
    }
    return make_problem(
        {
            "coordinates": coordinates,
            "fields": fields,
            "equations": {f"e{i}": e for i, e in enumerate(equations)},
            "conditions": given,
            **more,
        }
    )


def found(*args, **more):
    return examine(build_system(problem_of(*args, **more), "penalty"))


def only(messages, *parts):
    """There is a message with each part, and there are no others."""
    assert len(messages) == len(parts), messages
    for part in parts:
        assert any(part in m for m in messages), (part, messages)


@pytest.mark.parametrize("name", sorted(p.stem for p in GALLERY.glob("*.toml")))
def test_nothing_is_said_about_the_gallery(name):
    system = build_system(load_problem(GALLERY / f"{name}.toml"), "penalty")
    result = examine(system)
    assert result.errors == ()
    assert result.warnings == ()


# ------------------------------------------------------------------------- tools


@pytest.mark.parametrize("name", ["burgers", "black_scholes", "taylor_green"])
def test_array_values_are_those_of_the_compiled_evaluation(name):
    problem = load_problem(GALLERY / f"{name}.toml")
    expressions = tuple(exact_solution(problem).values())
    points = sample(problem, EVERYWHERE, 64, seed=3)

    def one(point):
        values = dict(zip((a.name for a in problem.axes), point, strict=True))
        parameters = {k: jnp.asarray(v) for k, v in problem.parameters.items()}
        return jnp.stack(evaluate(expressions, Surroundings(values, parameters)))

    expected = jax.jit(jax.vmap(one))(jnp.asarray(points))
    values = array_values(problem, expressions, points)
    assert np.max(np.abs(values - expected)) <= 1e-12 * np.max(np.abs(expected))


def test_nested_integrals_see_the_variables_around_them():
    problem = problem_of(SQUARE, ["u"], ["lap(u) = 1"], ("boundary", "u = 0"))
    text = "integral(x*integral(a*b + y, b = [0, a]), a = [0, 2])"
    scope = Scope(axes={"x": (0.0, 1.0), "y": (0.0, 1.0)})
    node = expand(parse_expression(text, scope), ("x", "y"))
    x, y = np.array([0.3, 0.9]), np.array([0.5, 0.1])
    values = array_values(problem, (node,), np.stack([x, y], axis=1))[:, 0]
    np.testing.assert_allclose(values, x * (2 + 2 * y), rtol=1e-12)


def test_trial_fields_have_right_derivatives():
    problem = problem_of(
        {"t": [0, 2], "x": [-1, 3]}, ["u"], ["dt(u) = dx(u)"], ("t = 0", "u = 0"),
        periodic=["x"],
    )  # fmt: skip
    basis, step = make_basis(problem), 1e-4
    state = random_state(problem.axes, ("u",), 1)
    place = np.array([[0.7, 0.4], [1.2, 2.1]])
    for axis in range(2):
        orders = tuple(int(i == axis) for i in range(2))
        shift = step * np.array(orders)
        for function in (basis, lambda o, p: state("u", o, p)):
            ahead, behind = (function((0, 0), place + s * shift) for s in (1, -1))
            slope = (ahead - behind) / (2 * step)
            error = np.max(np.abs(function(orders, place) - slope))
            assert error <= 1e-4 * (1 + np.max(np.abs(slope)))
    # A function of the basis has the period of the coordinate.
    ends = np.array([[0.7, -1.0], [0.7, 3.0]])
    first, last = basis((0, 1), ends)
    np.testing.assert_allclose(first, last, atol=1e-9)


def test_the_linearized_rows_are_differences_of_residuals():
    problem = problem_of(
        LINE, ["u", "v"],
        ["u*dxx(v) + integral(u^2, x) = 1", "dx(u) = sin(v)"],
        ("x = 0", "u = at(v, x = 1)"), ("boundary", "v = 0"),
    )  # fmt: skip
    system = build_system(problem, "penalty")
    linear = linearize(system, seed=1)
    assert linear is not None
    state = random_state(problem.axes, ("u", "v"), 1)
    vector = np.random.default_rng(0).normal(size=linear.matrix.shape[1])
    vector[np.tile(linear.basis.powers[:, 0] > 3, 2)] = 0.0
    function, size = linear.function(vector), 1e-5

    def moved(sign):
        return lambda f, o, p: state(f, o, p) + sign * size * function(f, o, p)

    residual = system.equations[0].residual
    assert isinstance(residual, Expression)
    points = sample(problem, EVERYWHERE, 2 * linear.basis.count, seed=29)
    ahead, behind = (
        array_values(problem, (residual,), points, moved(s))[:, 0] for s in (1, -1)
    )
    slope = (ahead - behind) / (2 * size)
    rows = (linear.matrix @ vector)[: len(points)]
    cosine = slope @ rows / np.linalg.norm(slope) / np.linalg.norm(rows)
    assert cosine == pytest.approx(1, abs=1e-8)


def test_nothing_is_concluded_from_equations_without_a_finite_value():
    result = found(LINE, ["u"], ["dxx(u) = log(-1 - u^2)"], ("boundary", "dn(u) = 0"))
    assert result.errors == result.warnings == ()


def test_a_jump_is_found_with_its_place_and_size():
    problem = problem_of(SQUARE, ["u"], ["lap(u) = 1"], ("boundary", "u = 0"))
    scope = Scope(axes={"x": (0.0, 1.0), "y": (0.0, 1.0)})

    def jump(text, along):
        node = expand(parse_expression(text, scope), ("x", "y"))
        return find_jump(problem, node, along, {})

    seen = jump("y + 3*heaviside(x - 0.37)", "x")
    assert seen is not None
    assert seen.place == "x = 0.37"
    assert seen.size == pytest.approx(3)
    assert jump("y + 3*heaviside(x - 0.37)", "y") is None
    assert jump("where(x < 0.37, 0.37, x)", "x") is None
    assert jump("tanh(1e4*(x - 0.37))", "x") is None


# ------------------------------------------------------------------- null spaces


@pytest.mark.parametrize(
    ("coordinates", "fields", "equations", "conditions", "parts"),
    [
        (
            LINE, ["u"], ["dxx(u) = 1"], [],
            ["up to a constant", "a multiple of x", "no condition on any face of 'x'"],
        ),
        (
            LINE, ["u", "v"], ["dxx(u - v) = 1", "dxx(u + v) = 0"],
            [("boundary", "u = v"), ("x = 0", "u + v = 0"), ("x = 1", "dx(u + v) = 0")],
            [],
        ),
        (
            LINE, ["u", "v"], ["dxx(u) = u - v", "dxx(v) = v - u"],
            [("boundary", "dn(u) = 1"), ("boundary", "dn(v) = -1")],
            ["'u' and 'v' are determined only up to a constant"],
        ),
        (
            LINE, ["u"], ["dxx(u) = dx(u)^2"], [("boundary", "dx(u) = 1")],
            ["'u' is determined only up to a constant"],
        ),
        (
            SQUARE, ["u", "v", "p"], FLOW,
            [("boundary", "u = y"), ("boundary", "v = 0")],
            ["'p' is determined only up to a constant"],
        ),
        (
            {"t": [0, 1], **SQUARE}, ["u", "v", "p"],
            [f"dt(u) + {FLOW[0]}", f"dt(v) + {FLOW[1]}", FLOW[2]],
            [
                ("boundary", "u = y"), ("boundary", "v = 0"),
                ("t = 0", "u = y"), ("t = 0", "v = 0"),
                ("x = 0, y = 0, t = 0", "p = 0"),
            ],
            ["'p' is determined only up to a function of t"],
        ),
        (
            ROD, ["u"], ["dtt(u) = dxx(u)"], [(ENDS, "u = 0"), ("t = 0", WAVE)],
            ["'u' has 1 condition on the faces of 't' (2 needed", "not unique"],
        ),
        (
            ROD, ["u"], ["dtt(u) = dxx(u) - sin(u)"],
            [(ENDS, "u = 0"), ("t = 0", WAVE)],
            ["'u' has 1 condition on the faces of 't' (2 needed"],
        ),
    ],
)  # fmt: skip
def test_what_is_undetermined_is_named(
    coordinates, fields, equations, conditions, parts
):
    only(found(coordinates, fields, equations, *conditions).errors, *parts)


def test_a_mean_or_a_point_determines_the_constant():
    neumann = (SQUARE, ["u"], ["-lap(u) = 1"], ("boundary", "dn(u) = -1/4"))
    for extra in (("x = 0, y = 1", "u = 2"), (None, "integral(integral(u, x), y) = 0")):
        result = found(*neumann, extra)
        assert result.errors == result.warnings == ()


def test_units_do_not_change_what_is_undetermined():
    for length in (1e-3, 1.0, 1e4):
        axes = {"x": [0, length]}
        fixed = found(axes, ["M"], ["dxx(M) = -1e-6"], ("boundary", "M = 0"))
        assert fixed.errors == fixed.warnings == ()
        free = found(axes, ["M"], ["dxx(M) = -1e-6"], ("x = 0", "M = 0"))
        assert any("a multiple of x" in e for e in free.errors)


# -------------------------------------------------------------- trivial solutions


def test_an_eigenfunction_needs_a_normalization():
    walls = ("boundary", "u = 0")
    equation = ["-dxx(u)/2 = pi^2/2*u"]
    only(found(LINE, ["u"], equation, walls).errors, "add a normalization")
    slope = found(LINE, ["u"], equation, walls, ("x = 0", "dx(u) = 1"))
    assert slope.errors == slope.warnings == ()
    norm = found(LINE, ["u"], equation, walls, (None, "integral(u^2, x) = 1"))
    assert norm.errors == norm.warnings == ()
    between = found(LINE, ["u"], ["-dxx(u)/2 = 12*u"], walls)
    assert between.errors == ()
    only(between.warnings, "u = 0 is the only solution")


def test_zero_as_a_solution_of_a_nonlinear_problem_is_warned_about():
    zero = found(LINE, ["u"], ["dxx(u) + u^3 = 0"], ("boundary", "u = 0"))
    assert zero.errors == ()
    only(zero.warnings, "u = 0 satisfies every equation and condition")
    other = found(LINE, ["u"], ["dxx(u) + exp(u) = 0"], ("boundary", "u = 0"))
    assert other.errors == other.warnings == ()


# ------------------------------------------------------------------- compatibility


@pytest.mark.parametrize(
    ("equation", "conditions", "numbers"),
    [
        ("-lap(u) = 1", [("boundary", "dn(u) = 0")], ("0", "1")),
        ("div((1 + x*y)*grad(u)) = 1", [("boundary", "dn(u) = 1")], ("5", "1")),
        (
            "lap(u) = x",
            [(["x = 0", "y = 0", "y = 1"], "dn(u) = 0"), ("x = 1", "dn(u) = 1/4")],
            ("0.25", "0.5"),
        ),
    ],
)
def test_incompatible_sources_are_reported_with_both_numbers(
    equation, conditions, numbers
):
    point = ("x = 0, y = 0", "u = 0")
    errors = found(SQUARE, ["u"], [equation], *conditions, point).errors
    out, made = numbers
    only(errors, f"through the boundary is {out}, the sources make {made};")


def test_compatible_sources_are_not_reported():
    faces = [
        (["x = 0", "y = 0"], "dn(u) = 0"), ("x = 1", "dn(u) = 2"),
        (["y = 1 and x < 0.5", "y = 1 and x >= 0.5"], "(1 + x*y)*dn(u) = 1"),
        ("x = 0, y = 0", "u = 0"),
    ]  # fmt: skip
    assert found(SQUARE, ["u"], ["div((1 + x*y)*grad(u)) = 4"], *faces).errors == ()


def test_an_incompressible_flow_cannot_gain_volume():
    pin = ("x = 0, y = 0", "p = 0")
    args = (SQUARE, ["u", "v", "p"], FLOW, pin, ("boundary", "u = x*y"))
    only(found(*args, ("boundary", "v = 0")).errors, "equations.e2: no solution exists")
    assert found(*args, ("boundary", "v = -y^2/2")).errors == ()


# ---------------------------------------------------------------------------- jumps


def test_faces_that_disagree_are_warned_about_with_place_and_size():
    args = (ROD, ["u"], ["dt(u) = dxx(u)"], ("x = 0", "u = 0"), ("t = 0", "u = x^2"))
    only(
        found(*args, ("x = 10", "u = 70")).warnings,
        "'u' jumps by 30 at t = 0, x = 10: conditions 'c1' and 'c2'",
    )
    assert found(*args, ("x = 10", "u = 100*cos(t)")).warnings == ()


def test_values_that_break_the_flux_condition_next_to_them_are_warned_about():
    args = (ROD, ["u"], ["dt(u) = dxx(u)"], ("x = 0", "u = 0"), ("t = 0", "u = x"))
    only(
        found(*args, ("x = 10", "dn(u) = -u")).warnings,
        "values of condition 'c1' do not satisfy 'c2' where they meet, at t = 0, x = 1",
    )
    assert found(*args, ("x = 10", "dn(u) = 11 - u")).warnings == ()


def test_discontinuous_data_are_warned_about():
    ends = (ENDS, "u = 0")
    step = found(ROD, ["u"], ["dt(u) = dxx(u)"], ends, (
        "t = 0", "u = where(x < 3, 1, 0)*sin(pi*x/10)"
    ))  # fmt: skip
    only(step.warnings, "jumps by 0.809 at x = 3")
    kink = found(ROD, ["u"], ["dt(u) = dxx(u)"], ends, ("t = 0", "u = min(x, 10 - x)"))
    assert kink.warnings == ()


@pytest.mark.parametrize(
    ("equation", "parts"),
    [
        ("k*dxx(u) = 1", ["multiplies a second derivative"]),
        ("dxx(u)/k + u = 1", ["write dx(k*dx(...))"]),
        ("-(k*dx(dx(u))) = 1", ["jumps by 2 at x = 0.5"]),
        ("dx(k*dx(u)) = 1", ["the flux is continuous there"]),
        ("dxx(u) = k", []),
        ("dxx(u) + k*u = 1", []),
        ("(1 + x)*dxx(u) = 1", []),
    ],
)
def test_a_jumping_coefficient_outside_the_derivative_is_warned_about(equation, parts):
    definitions = {"k": "1 + 2*heaviside(x - 0.5)"}
    if "k" not in equation:
        definitions = {}
    result = found(
        LINE, ["u"], [equation], ("boundary", "u = 0"), definitions=definitions
    )
    assert result.errors == ()
    if equation.startswith("dxx(u)/k"):
        only(result.warnings, "and multiplies a second derivative")
    else:
        only(result.warnings, *parts)


# --------------------------------------------------------------------------- counts


def test_an_initial_condition_at_a_point_is_warned_about():
    args = (ROD, ["u"], ["dt(u) = dxx(u)"], (ENDS, "dn(u) = 0"))
    only(
        found(*args, ("t = 0, x = 5", "u = 1")).warnings,
        "conditions.c1 holds at one point only",
        "no condition on any face of 't'",
    )
    assert found(*args, ("t = 0", "u = 1")).warnings == ()


@pytest.mark.parametrize(
    ("second", "errors", "warnings"),
    [
        ("u = 1", ["contradict one another on x = 0"], 1),
        ("2*u = 0", [], 1),
        ("dx(u) = 2*u", [], 1),
    ],
)
def test_conditions_on_one_face_are_compared(second, errors, warnings):
    result = found(
        LINE, ["u"], ["dxx(u) = 1"],
        ("x = 0", "u = 0"), ("x = 0", second), ("x = 1", "u = 1"),
    )  # fmt: skip
    only(result.errors, *errors)
    assert len(result.warnings) == warnings
    assert ("are the same on x = 0" in result.warnings[0]) == (second == "2*u = 0")


@pytest.mark.parametrize(
    ("fields", "equations", "conditions"),
    [
        (["q", "T"], ["q + dx(T) = 0", "dx(q) = 1"], [(ENDS, "T = 0")]),
        (["u"], ["dt(u) + (x - 5)*dx(u) = 0"], []),
        (["u"], ["dt(u) + (5 - x)*dx(u) = 0"], [(ENDS, "u = 0")]),
        (["u"], ["dt(u) + u*dx(u) = 0"], [("x = 0", "u = 0")]),
        (["u", "v"], ["dt(u) = v", "dt(v) = dxx(u)"], [(ENDS, "u = 0")]),
        (["u", "v"], ["dt(u) = dx(v)", "dt(v) = dx(u)"], [(ENDS, "u = 0")]),
    ],
)
def test_first_order_systems_and_transport_raise_no_false_alarm(
    fields, equations, conditions
):
    first = fields[0]
    if "dt" in equations[0]:
        conditions = [*conditions, ("t = 0", f"{first} = sin(pi*x/10)")]
        conditions += [("t = 0", f"{f} = 0") for f in fields[1:]]
        result = found(ROD, fields, equations, *conditions)
    else:
        result = found({"x": [0, 10]}, fields, equations, *conditions)
    assert result.errors == result.warnings == ()


def test_a_condition_at_the_outflow_is_refused():
    result = found(
        ROD, ["u"], ["dt(u) + dx(u) = 0"], ("t = 0", WAVE), ("x = 10", "u = 0")
    )
    only(
        result.errors, "no condition at x = 0, where it flows in", "carried out of the"
    )


@pytest.mark.parametrize(
    ("equation", "conditions"),
    [
        ("drr(u) + dr(u)/r = 1", [("r = 1", "u = 0")]),
        ("r*drr(u) + dr(u) = r", [("r = 1", "u = 0")]),
    ],
)
def test_no_condition_is_needed_where_the_highest_derivative_drops_out(
    equation, conditions
):
    result = found({"r": [0, 1]}, ["u"], [equation], *conditions)
    assert result.errors == ()
    only(result.warnings, *(["singular at r = 0"] * ("/r" in equation)))


# ------------------------------------------------------------- degenerate systems


@pytest.mark.parametrize(
    ("equations", "part"),
    [
        (["dxx(u) + v = 1", "2*dxx(u) = 2 - 2*v"], "multiples of one another"),
        (["dxx(u) + v = 1"], "1 equation for 2 fields"),
    ],
)
def test_degenerate_systems_are_refused(equations, part):
    ends = [("boundary", "u = 0"), ("boundary", "v = 1")]
    assert any(part in e for e in found(LINE, ["u", "v"], equations, *ends).errors)


def test_fields_that_compete_for_one_equation_are_named():
    result = found(
        LINE, ["u", "v", "w"], ["dxx(u) = 1", "dx(u) = x", "dxx(v + w) = 1"],
        ("boundary", "u = 0"), ("boundary", "v = 0"), ("boundary", "w = 0"),
    )  # fmt: skip
    assert any("cannot be determined" in e for e in result.errors)


def test_more_equations_than_fields_are_warned_about():
    result = found(
        LINE, ["u"], ["dxx(u) = 2", "dx(u) = 2*x"],
        ("x = 0", "u = 0"), ("x = 1", "u = 1"),
    )  # fmt: skip
    assert result.errors == ()
    only(result.warnings, "2 equations for 1 field")


# ---------------------------------------------------------- coefficients and signs


def test_removable_singularities_are_no_singularities():
    ends = ("boundary", "u = 0")
    assert not found({"x": [-1, 1]}, ["u"], ["dxx(u) = sin(x)/x"], ends).warnings
    inside = found({"x": [-1, 1]}, ["u"], ["dxx(u) + u/(x - 0.3) = 1"], ends)
    only(inside.warnings, "singular at x = 0.3")


def test_cartesian_operators_in_polar_coordinates_are_warned_about():
    axes = {"r": [0.1, 1], "theta": [0, 1]}
    result = found(axes, ["u"], ["lap(u) = 0"], ("boundary", "u = r*cos(theta)"))
    only(result.warnings, "'lap' is Cartesian: it takes r, theta for lengths")


@pytest.mark.parametrize(
    ("place", "robin", "feeds"),
    [
        ("x = 1", "2*dn(u) = 3*(u - 4)", True),
        ("x = 1", "2*dn(u) = -3*(u - 4)", False),
        ("x = 0", "-2*dn(u) = -3*(u - 4)", True),
        ("x = 0", "2*dx(u) = 3*(u - 4)", False),
    ],
)
def test_the_sign_of_a_robin_condition(place, robin, feeds):
    other = "x = 0" if place == "x = 1" else "x = 1"
    result = found(LINE, ["u"], ["dxx(u) = 1"], (other, "u = 0"), (place, robin))
    assert result.errors == ()
    only(result.warnings, *(["the boundary feeds what flows in"] * feeds))


@pytest.mark.parametrize(
    ("equation", "conditions", "ill"),
    [
        ("dt(u) = -dxx(u)", [("t = 0", WAVE)], True),
        ("dt(u) = -dxx(u)", [("t = end", WAVE)], False),
        ("dt(u) = dxx(u) - dxxxx(u)", [("t = 0", WAVE), (ENDS, "dxx(u) = 0")], False),
        ("dt(u) = dxxxx(u)", [("t = 0", WAVE), (ENDS, "dxx(u) = 0")], True),
        ("dtt(u) = -dxx(u)", [("t = 0", WAVE), ("t = 0", "dt(u) = 0")], True),
        ("dtt(u) = u*dxx(u)", [("t = 0", WAVE), ("t = 0", "dt(u) = 0")], False),
    ],
)
def test_evolutions_that_run_backwards_are_refused(equation, conditions, ill):
    result = found(ROD, ["u"], [equation], (ENDS, "u = 0"), *conditions)
    only(result.errors, *(["short waves in x grow without bound"] * ill))
