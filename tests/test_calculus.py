"""Symbolic derivatives, complex parts and values against independent formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab.equation.calculus import differentiate, expand
from pinnlab.equation.complex_parts import split
from pinnlab.equation.evaluate import Surroundings, evaluate
from pinnlab.equation.expression import (
    Apply,
    At,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Integral,
    Number,
    Partial,
    call,
    terms,
)
from pinnlab.equation.structure import affine, degree, partials, static_nodes


x, t, s = Coordinate("x"), Coordinate("t"), Coordinate("s")
u = Field("u")
NAMES = ("t", "x")


def exact_u(point):
    return jnp.sin(2 * point[1]) * jnp.exp(-point[0])


def partials_of(function):
    """Partial derivatives of a closed-form field by nested jvp."""

    def at(place, wanted):
        found = []
        for _, orders in wanted:
            f = function
            for i, n in enumerate(orders):
                for _ in range(n):
                    f = lambda p, f=f, i=i: jax.jacfwd(f)(p)[i]
            found.append(f(place))
        return found

    return at


def value(expression: Expression, t_value=0.3, x_value=0.4):
    around = Surroundings(
        {"t": jnp.asarray(t_value), "x": jnp.asarray(x_value)},
        {},
        partials_of(exact_u),
    )
    return float(evaluate((expand(expression, NAMES),), around)[0])


@pytest.mark.parametrize(
    "name",
    ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log",
     "sqrt", "abs", "erf"],
)  # fmt: skip
def test_derivatives_of_functions_agree_with_automatic_ones(name):
    inner = 0.3 + x * x / 2
    here = lambda v: evaluate((call(name, inner),), Surroundings({"x": v}, {}))[0]
    ours = evaluate(
        (differentiate(call(name, inner), "x"),),
        Surroundings({"x": jnp.asarray(0.7)}, {}),
    )[0]
    assert np.isclose(ours, jax.grad(here)(0.7), rtol=1e-13)


@pytest.mark.parametrize(
    "expression",
    [x**t, t**x, (x * t) / (1 + x), call("atan2", x, t + 1), call("min", x, 2 * t),
     call("max", x * x, t), call("where", Apply("<", (x, t)), x * x, t * x),
     x**3 - 2 * x, call("exp", -x * x) ** 2],
)  # fmt: skip
def test_derivatives_of_operators_agree_with_automatic_ones(expression):
    def here(v):
        return jnp.asarray(
            evaluate((expression,), Surroundings({"x": v, "t": jnp.asarray(0.9)}, {}))[
                0
            ]
        )

    around = Surroundings({"x": jnp.asarray(0.6), "t": jnp.asarray(0.9)}, {})
    ours = evaluate((differentiate(expression, "x"),), around)[0]
    assert np.isclose(ours, jax.grad(here)(0.6), rtol=1e-12)


def test_conservative_flux_is_differentiated_as_a_product():
    flux = Apply("*", (call("exp", x), Derivative(u, ("x",))))
    ours = value(Derivative(flux, ("x",)))
    e, sin, cos = np.exp(0.4), np.sin(0.8), np.cos(0.8)
    assert np.isclose(ours, np.exp(-0.3) * e * (2 * cos - 4 * sin), rtol=1e-13)


def test_derivative_of_a_nonlinear_composite():
    # (u^3)_xx = 6 u u_x^2 + 3 u^2 u_xx
    ours = value(Derivative(Apply("^", (u, Number(3.0))), ("x", "x")))
    v, vx = np.sin(0.8) * np.exp(-0.3), 2 * np.cos(0.8) * np.exp(-0.3)
    assert np.isclose(ours, 6 * v * vx**2 - 12 * v**3, rtol=1e-12)


def test_a_delayed_value_and_its_derivative():
    delayed = At(u, (("t", t - 1),))
    assert np.isclose(value(delayed), np.sin(0.8) * np.exp(0.7), rtol=1e-14)
    assert np.isclose(
        value(Derivative(delayed, ("t",))), -np.sin(0.8) * np.exp(0.7), rtol=1e-13
    )


def test_a_trace_is_differentiated_along_the_face_only():
    trace = At(Derivative(u, ("x",)), (("x", Number(0.0)),))
    assert np.isclose(value(trace), 2 * np.exp(-0.3), rtol=1e-14)
    assert value(Derivative(trace, ("x",))) == 0


def test_integrals_over_a_coordinate_and_with_a_bound_variable():
    over_x = Integral(u, "x", Number(0.0), Number(1.0))
    assert np.isclose(value(over_x), np.exp(-0.3) * (1 - np.cos(2)) / 2, rtol=1e-13)
    memory = Integral(call("exp", -(t - s)) * At(u, (("t", s),)), "s", Number(0.0), t)
    assert np.isclose(value(memory), 0.3 * np.exp(-0.3) * np.sin(0.8), rtol=1e-13)


def test_the_leibniz_rule():
    integral = Integral(x * At(u, (("t", s),)), "s", Number(0.0), t * x)
    dx = value(Derivative(integral, ("x",)))
    step = 1e-5
    central = (value(integral, 0.3, 0.4 + step) - value(integral, 0.3, 0.4 - step)) / (
        2 * step
    )
    assert np.isclose(dx, central, rtol=1e-8)


def test_nested_integrals_do_not_capture_each_other():
    inner = Integral(u, "x", Number(0.0), Number(1.0))
    outer = Integral(At(inner, (("t", s),)), "s", Number(0.0), t)
    expected = (1 - np.exp(-0.3)) * (1 - np.cos(2)) / 2
    assert np.isclose(value(outer), expected, rtol=1e-12)


def test_smooth_closed_form_integrals_are_exact():
    # int exp(-50 (s - x)^2) over [-6, 6]: sharp, as in the Cole-Hopf formula.
    sharp = Integral(call("exp", -50 * (s - x) ** 2), "s", Number(-6.0), Number(6.0))
    assert np.isclose(value(sharp), np.sqrt(np.pi / 50), rtol=1e-12)


def test_complex_parts_agree_with_complex_arithmetic():
    h = Field("h")
    j = Number(1j)
    names = frozenset({"h"})
    expression = j * h * h / (1 + h) + call("conj", h) * call("exp", h) - h**3
    real, imaginary = split(expression, names)
    z = 0.3 + 0.8j

    def at(place, wanted):
        return [jnp.asarray(z.real if f == "h_real" else z.imag) for f, _ in wanted]

    around = Surroundings({"x": jnp.asarray(0.0)}, {}, at)
    ours = evaluate((expand(real, ("x",)), expand(imaginary, ("x",))), around)
    expected = 1j * z * z / (1 + z) + np.conj(z) * np.exp(z) - z**3
    assert np.isclose(complex(ours[0], ours[1]), expected, rtol=1e-14)


def test_the_square_of_a_modulus_has_no_root():
    square, imaginary = split(
        Apply("^", (Apply("abs", (Field("h"),)), Number(2))), frozenset({"h"})
    )
    assert imaginary == Number(0.0)
    expanded = expand(square, ("x",))
    assert not any(
        isinstance(n, Apply) and n.function == "sqrt" for n in static_nodes(expanded)
    )
    assert degree(expanded) == 2


def test_linearity_and_affine_parts():
    linear = expand(Derivative(u, ("t",)) - x**2 * Derivative(u, ("x", "x")) - t, NAMES)
    assert degree(linear) == 1
    form = affine(linear)
    assert form is not None
    assert len(form.coefficients) == 2
    burgers = expand(Derivative(u, ("t",)) + u * Derivative(u, ("x",)), NAMES)
    assert degree(burgers) == 2
    assert affine(burgers) is None
    assert {p.orders for p in partials(burgers)} == {(0, 0), (1, 0), (0, 1)}


def test_a_choice_between_affine_expressions_is_affine():
    chosen = call("where", call("<", t, Number(0.5)), u * 2 + x, Derivative(u, ("x",)))
    form = affine(expand(chosen, NAMES))
    assert form is not None
    assert len(form.coefficients) == 2
    curved = call("where", call("<", u, Number(0.5)), u, x)
    assert affine(expand(curved, NAMES)) is None


def test_summands_of_a_residual():
    expression = Derivative(u, ("t",)) - (u * x - 3 * t)
    assert len(terms(expand(expression, NAMES))) == 3
    flux = Derivative(u, ("t",)) + Derivative(u, ("x",))
    assert len(terms(expand(x * flux / 2, NAMES))) == 2
    assert len(terms(expand(u * flux, NAMES))) == 1


def test_partials_at_one_place_are_asked_for_once():
    calls = []

    def at(place, wanted):
        calls.append(wanted)
        return partials_of(exact_u)(place, wanted)

    around = Surroundings({"t": jnp.asarray(0.1), "x": jnp.asarray(0.2)}, {}, at)
    both = (
        expand(Derivative(u, ("t",)) + u * Derivative(u, ("x",)), NAMES),
        expand(u * Derivative(u, ("x",)), NAMES),
    )
    evaluate(both, around)
    assert len(calls) == 1
    assert len(calls[0]) == len(set(calls[0])) == 3


def test_equal_trees_are_equal_and_hash_alike():
    assert x * 2 + t == x * 2 + t
    assert hash(Partial("u", (0, 1), (t, x))) == hash(Partial("u", (0, 1), (t, x)))
