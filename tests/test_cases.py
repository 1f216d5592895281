"""Problems that went wrong elsewhere: right values, and what is ill-posed is said so.

The files are in tests/cases; the values were computed independently of this program,
by closed forms or fine solves.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pinnlab import load_problem, solve
from pinnlab.errors import ProblemError
from pinnlab.system.system import build_system
from pinnlab.verify.preflight import examine


FOLDER = Path(__file__).parent / "cases"
TOLERANCE = 1e-3
PLATEAU = 1e-2
"""Of values next to a shock."""
BUDGET = 60.0


@dataclass(frozen=True)
class Value:
    """A field's value at a point, in the order of the coordinates.

    A complex field is compared by its absolute value where `value` is real.
    """

    point: tuple[float, ...]
    value: complex
    field: str = ""


def values(field, *pairs):
    return tuple(Value(point, value, field) for point, value in pairs)


def wave(t, x):
    T = np.tanh(t - x / 2)
    return 11 + 15 * T - 15 * T**2 - 15 * T**3


PISTON = 1.2 * 340 * 0.01
CASES = {
    "heat_plate_convection": values("T", ((0.6, 0.2), 18.2537565)),
    "clamped_beam": values("u", ((0.5,), -1 / 384), ((0.0,), 0.0), ((1.0,), 0.0)),
    "beam_moment_metres": values("M", ((3.0,), 4.5)),
    "beam_moment_millimetres": values("M", ((3000.0,), 4.5e6)),
    "well_slope": values("psi", ((0.5,), np.sqrt(2)), ((0.25,), 1.0)),
    "well_norm": values("psi", ((0.5,), np.sqrt(2)), ((0.25,), 1.0)),
    "helmholtz_impedance": values(
        "p",
        *(((x,), PISTON * np.exp(-5j * x)) for x in (0.0, 0.3, 0.7, 1.0)),
    ),
    "poisson_source": values("u", ((0.5, 0.5), 0.05066059)),
    "poisson_mixed": values(
        "u",
        *(
            ((x, y, z), np.sin(x) * np.cos(y) * np.exp(z))
            for x, y, z in ((1.0, 0.2, 0.7), (0.5, 0.0, 0.5), (0.9, 0.4, 1.0))
        ),
    ),
    "manufactured_zero": values(
        "u", ((0, 0), 0.0932688), ((0.5, 0.5), 0.0678923), ((-0.5, 0), -0.3590950)
    ),
    "duffing_3": values("p", ((0.0,), 0.32469812), ((np.sqrt(0.6),), 0.46539937)),
    "duffing_5": values("p", ((0.0,), 0.18638773), ((1.0,), 0.50665437)),
    "duffing_7": values("p", ((0.0,), 0.08345317), ((np.sqrt(1.4),), 0.59246138)),
    "lotka_volterra": values(
        "r", ((1.0,), 120.660025), ((5.0,), 100.163868), ((10.0,), 100.327928)
    )
    + values("p", ((1.0,), 108.651742), ((5.0,), 15.016532), ((10.0,), 15.033140)),
    "lorenz": values("x", ((1.0,), 7.275116), ((3.0,), 5.431851))
    + values("y", ((1.0,), 6.682990), ((3.0,), 5.388413))
    + values("z", ((1.0,), 16.003951), ((3.0,), 13.448648)),
    "robertson": values(
        "y1", ((0.0,), 0.96645974), ((2.0,), 0.61723488), ((4.0,), 0.10730043)
    )
    + values("z", ((0.0,), 0.30746266), ((2.0,), 0.061535913), ((4.0,), 0.0048001670))
    + values("y3", ((0.0,), 0.033509516), ((2.0,), 0.38275896), ((4.0,), 0.89269909)),
    "volterra": values(
        "u", *(((t,), np.exp(-t) * np.sin(2 * t) / 2) for t in (0.3, 1.0, 2.0))
    ),
    "delay": values(
        "y",
        ((1.0,), 0.0),
        ((2.0,), -1 / 2),
        ((3.0,), -1 / 6),
        ((4.0,), 0.2083333),
        ((5.0,), 0.1583333),
    ),
    "corner_jump": values(
        "u",
        ((0.1, 9.0), 0.0409909),
        ((1.0, 9.0), 0.7137914),
        ((5.0, 9.0), 0.9755790),
        ((0.1, 5.0), 0.0),
        ((1.0, 5.0), 0.0039784),
        ((5.0, 5.0), 0.6161548),
    ),
    "bimetal": values(
        "T",
        ((1.0, 0.25), 2.5913725e-5),
        ((1.0, 0.5), 6.1556698e-5),
        ((1.0, 0.75), 0.0770997767),
        ((1.0, 0.9), 0.4795001220),
        ((0.1, 0.9), 0.0253473187),
    ),
    "heat_nonlocal": values(
        "y", *(((t, x), np.exp(-t) * np.sin(x)) for t, x in ((0.5, 0.7), (1.0, 1.2)))
    ),
    "heat_memory": values("u", ((0.5, 0.3), np.exp(0.5)), ((1.0, 0.7), np.e)),
    "schrodinger": values("h", ((np.pi / 4, 0.0), 3.9988)),
    "generalized_ks": values(
        "u",
        ((0.0, 0.0), 11.0),
        ((1.0, 0.0), 7.09736519),
        ((0.0, -10.0), -3.99455275),
        ((0.6, 1.0), wave(0.6, 1.0)),
    ),
    "black_scholes": values(
        "V",
        ((0.0, 80.0), 1.85941957),
        ((0.0, 100.0), 10.45058357),
        ((0.0, 120.0), 26.16904395),
    ),
    "dam_break": values("h", ((6.0, 5.6), 0.00253935717), ((6.0, 8.0), 0.001))
    + values("u", ((6.0, 5.6), 0.127279718), ((6.0, 8.0), 0.0)),
    "sod": values("p", ((0.2, 0.6), 0.30313018), ((0.2, 0.77), 0.30313018))
    + values("u", ((0.2, 0.6), 0.92745262), ((0.2, 0.77), 0.92745262))
    + values("rho", ((0.2, 0.6), 0.42631943), ((0.2, 0.77), 0.26557371)),
}
SHOCKS = {
    "dam_break": ("h", 6.0, 6.25978, (0.00253935717, 0.001)),
    "sod": ("rho", 0.2, 0.5 + 0.2 * 1.75215573, (0.26557371, 0.125)),
}
"""A field, a time, and where the field jumps then between two values."""


def worst_error(solution, wanted):
    """The largest error at the points, relative to each field's largest value."""
    worst = 0.0
    for field in {v.field for v in wanted}:
        mine = [v for v in wanted if v.field == field]
        found = solution.values(np.array([v.point for v in mine], float))[field]
        right = np.array([v.value for v in mine])
        if np.iscomplexobj(found) and not np.iscomplexobj(right):
            found = np.abs(found)
        error = np.max(np.abs(found - right)) / np.max(np.abs(right))
        worst = max(worst, float(error))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_right_values_are_found(name):
    # No classical method of ours converges at a shock: it would use its time in vain.
    solution = solve(
        load_problem(FOLDER / f"{name}.toml"),
        target=TOLERANCE,
        budget=BUDGET,
        reference=name not in SHOCKS,
    )
    tolerance = PLATEAU if name in SHOCKS else TOLERANCE
    assert worst_error(solution, CASES[name]) <= tolerance
    if name in SHOCKS:
        field, time, place, (behind, ahead) = SHOCKS[name]
        x = place * np.linspace(0.95, 1.05, 1001)
        values = solution.values(np.stack([time + 0 * x, x], axis=1))[field]
        found = x[np.argmin(np.abs(values - (behind + ahead) / 2))]
        assert abs(found - place) <= 0.01 * place


SUSPICIOUS = {
    "bimetal": ["jumps by 1 at t = 0, x = 1", "jumps by 1.13 at x = 0.5: the flux"],
    "corner_jump": ["'u' jumps by 1 at t = 0, x = 10"],
    "dam_break": ["the value of 'h' jumps by 0.004 at x = 5"],
    "heat_plate_convection": ["'fixed' do not satisfy 'convection' where they meet"],
    "sod": [
        "'rho', 'u' and 'p' have 2 conditions on the faces of 'x' (3 needed",
        "the value of 'rho' jumps by 0.875 at x = 0.5",
        "the value of 'p' jumps by 0.9 at x = 0.5",
    ],
    "poisson_mixed": ["conditions.top on z = 1: the normal derivative of 'u' grows"],
}
"""The warnings of problems that are solvable."""

ILL_POSED = {
    "ill_well": (["psi = 0 satisfies everything"], []),
    "ill_neumann": (
        [
            "'u' is determined only up to a constant",
            "what flows out through the boundary is 0, the sources make 1;",
        ],
        [],
    ),
    "ill_neumann_compatible": (["'u' is determined only up to a constant"], []),
    "ill_periodic": (["through the boundary is 0, the sources make 6.28319;"], []),
    "ill_exact": (
        [
            "does not satisfy condition 'walls' on x = -1",
            "does not satisfy condition 'walls' on y = -1",
            "does not satisfy condition 'walls' on y = 1",
        ],
        [],
    ),
    "ill_sphere": (
        [],
        [
            "u = 0 is the only solution",
            "singular at r = 0: it is divided by r,",
            "singular at r = 0: it is divided by r^2,",
            "singular at theta = 0: it is divided by sin(theta),",
        ],
    ),
    "ill_point_density": (
        ["'p': the solution is not unique"],
        ["'p' has no condition on any face of 't'", "holds at one point only"],
    ),
    "ill_nonconservative": (
        [],
        ["jumps by 1.13 at x = 0.5 and multiplies a second derivative"],
    ),
    "ill_robin": (
        [],
        [
            "'fixed' do not satisfy 'convection' where they meet, at y = 0, x = 0.6",
            "conditions.convection on x = 0.6 and y = 1: the normal",
        ],
    ),
    "ill_cavity": (
        ["'p' is determined only up to a constant"],
        ["'u' jumps by 1 at y = 1, x = 0 and at y = 1, x = 1"],
    ),
}
"""Errors and warnings, all of them, of problems that are not."""


def assert_found(messages, expected):
    assert len(messages) == len(expected), messages
    for part in expected:
        assert any(part in m for m in messages), (part, messages)


def test_every_file_has_a_case():
    names = {p.stem for p in FOLDER.glob("*.toml")}
    assert names == {*CASES, *ILL_POSED, "ill_name_clash"}


@pytest.mark.parametrize("name", CASES)
def test_a_solvable_case_is_not_refused(name):
    problem = load_problem(FOLDER / f"{name}.toml")
    found = examine(build_system(problem, "penalty"))
    assert found.errors == ()
    assert_found(found.warnings, SUSPICIOUS.get(name, []))
    names = {f.name for f in problem.fields}
    for value in CASES[name]:
        assert value.field in names
        assert len(value.point) == len(problem.axes)


@pytest.mark.parametrize("name", ILL_POSED)
def test_an_ill_posed_case_is_said_to_be(name):
    problem = load_problem(FOLDER / f"{name}.toml")
    found = examine(build_system(problem, "penalty"))
    errors, warnings = ILL_POSED[name]
    assert_found(found.errors, errors)
    assert_found(found.warnings, warnings)


def test_a_field_with_the_name_of_a_coordinate_is_refused():
    with pytest.raises(ProblemError, match="coordinate and of a field"):
        load_problem(FOLDER / "ill_name_clash.toml")
