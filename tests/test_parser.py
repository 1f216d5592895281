"""The grammar: precedence, names, operators, errors with a caret, hostile texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinnlab.equation.expression import (
    FUNCTIONS,
    Apply,
    At,
    Coordinate,
    Derivative,
    Expression,
    Field,
    Integral,
    NormalDerivative,
    Number,
    Parameter,
)
from pinnlab.equation.format import format_expression, pretty
from pinnlab.equation.parser import parse_condition, parse_equation, parse_expression
from pinnlab.equation.scope import Scope
from pinnlab.errors import ProblemError


SCOPE = Scope(
    axes={"t": (0.0, 1.0), "x": (-1.0, 1.0), "y": (0.0, 2.0)},
    fields={"u": False, "v": False},
    parameters=("nu", "k"),
    definitions={"flux": Apply("*", (Parameter("k"), Field("u")))},
    normal=True,
)
t, x, y = Coordinate("t"), Coordinate("x"), Coordinate("y")
u, v, nu, k = Field("u"), Field("v"), Parameter("nu"), Parameter("k")


def parse(text):
    return parse_expression(text, SCOPE)


def apply(function, *arguments):
    return Apply(function, arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-x^2", apply("neg", apply("^", x, Number(2)))),
        ("2^-x^2", apply("^", Number(2), apply("neg", apply("^", x, Number(2))))),
        ("x^y^t", apply("^", x, apply("^", y, t))),
        ("x^2 + y^2", apply("+", apply("^", x, Number(2)), apply("^", y, Number(2)))),
        ("x**2", apply("^", x, Number(2))),
        ("x - y - t", apply("-", apply("-", x, y), t)),
        ("x/y*t", apply("*", apply("/", x, y), t)),
        ("-x*y", apply("*", apply("neg", x), y)),
        ("x*-y", apply("*", x, apply("neg", y))),
        ("1e-3*.5", apply("*", Number(1e-3), Number(0.5))),
        ("2j", Number(2j)),
        ("flux", apply("*", k, u)),
        ("pi*e", apply("*", Parameter("pi"), Parameter("e"))),
        ("dt(u)", Derivative(u, ("t",))),
        ("dxxy(u)", Derivative(u, ("x", "x", "y"))),
        ("d(u, x, y)", Derivative(u, ("x", "y"))),
        ("dx(k*dx(u))", Derivative(apply("*", k, Derivative(u, ("x",))), ("x",))),
        ("lap(u)", apply("+", Derivative(u, ("x", "x")), Derivative(u, ("y", "y")))),
        (
            "div(grad(u))",
            apply(
                "+",
                Derivative(Derivative(u, ("x",)), ("x",)),
                Derivative(Derivative(u, ("y",)), ("y",)),
            ),
        ),
        ("div(u, v)", apply("+", Derivative(u, ("x",)), Derivative(v, ("y",)))),
        ("dn(u)", NormalDerivative(u)),
        ("integral(u, x)", Integral(u, "x", apply("neg", Number(1.0)), Number(1.0))),
        ("integral(x*s, s = [0, t])", Integral(apply("*", x, Coordinate("s")), "s",
                                               Number(0), t)),
        ("at(u, x = 0, t = t - 1)",
         At(u, (("x", Number(0)), ("t", apply("-", t, Number(1)))))),
        ("where(x < 0.5, u, v)", apply("where", apply("<", x, Number(0.5)), u, v)),
    ],
)  # fmt: skip
def test_what_a_text_means(text, expected):
    assert parse(text) == expected


def test_conditions_and_equations():
    assert parse_condition("x < 0.5 and not y > 1 or t == 0", SCOPE) == apply(
        "or",
        apply(
            "and", apply("<", x, Number(0.5)), apply("not", apply(">", y, Number(1)))
        ),
        apply("==", t, Number(0)),
    )
    assert parse_equation("u = x", SCOPE) == (u, x)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("u + w", 4, "unknown name 'w' (fields: u, v; coordinates: t, x, y"),
        ("u +", 3, "expected a value, found the end"),
        ("(u", 2, "expected ')'"),
        ("u v", 2, "unexpected 'v'"),
        ("2u", 1, "unexpected 'u'"),
        ("sin(u, v)", 0, "sin() takes 1 argument, found 2"),
        ("sin + 1", 0, "unknown name 'sin'"),
        ("dz(u)", 0, "unknown function 'dz'"),
        ("siin(x)", 0, "unknown function 'siin'"),
        ("u(x)", 0, "'u' is not a function"),
        ("x < y < t", 6, "chained"),
        ("x + (y < t)", 2, "of a comparison"),
        ("where(x, u, v)", 6, "needs a comparison"),
        ("grad(u)", 0, "vector"),
        ("grad(u)*grad(v)", 7, "dot(a, b)"),
        ("div(u)", 0, "component for each of x, y"),
        ("integral(u)", 0, "needs a variable"),
        ("integral(u, s)", 12, "no coordinate"),
        ("integral(u, on = 'part')", 12, "not supported yet"),
        ("jump(u)", 0, "not supported yet"),
        ("at(u)", 0, "needs a place"),
        ("at(u, z = 0)", 6, "expected a coordinate"),
        ("u.__class__", 1, "unexpected character"),
        ("__import__('os')", 0, "unknown function"),
        ("__import__(u)", 0, "unknown function"),
        ("x ∂ y", 2, "unexpected character"),
    ],
)
def test_errors_point_at_what_is_wrong(text, column, message):
    with pytest.raises(ProblemError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "hint"),
    [("parm + nuu", "nu"), ("siin(x)", "sin"), ("integrl(u, x)", "integral")],
)
def test_the_nearest_name_is_offered(text, hint):
    with pytest.raises(ProblemError) as caught:
        parse(text.removeprefix("parm + "))
    assert f"'{hint}'" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["u", "u == x", "u = x = y", "= u", "grad(u) = 0"])
def test_an_equation_has_one_equals_sign(text):
    with pytest.raises(ProblemError):
        parse_equation(text, SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 200_000 + "x",
        "(" * 100_000 + "x" + ")" * 100_000,
        "x^" * 10_000 + "x",
        "x+" * 9_000 + "x",
        "sin(" * 5_000 + "x" + ")" * 5_000,
        "9" * 1_000_000,
        "u" * 100_000,
        "1e999999999",
        "dx(" * 500 + "u" + ")" * 500,
        "integral(" * 300 + "u" + ", x)" * 300,
        "not " * 50_000 + "x < 1",
    ],
)
def test_hostile_texts_end_in_an_error(text):
    with pytest.raises(ProblemError):
        parse(text)


def expressions() -> st.SearchStrategy[Expression]:
    numbers = st.floats(0, 1e6).map(Number) | st.integers(0, 9).map(Number)
    leaves = numbers | st.sampled_from([t, x, y, u, v, nu, k, Parameter("pi")])
    one = [f for f, n in FUNCTIONS.items() if n == 1]

    def extend(inner):
        return (
            st.tuples(st.sampled_from(["+", "-", "*", "/", "^"]), inner, inner).map(
                lambda a: Apply(a[0], (a[1], a[2]))
            )
            | inner.map(lambda a: Apply("neg", (a,)))
            | st.tuples(st.sampled_from(one), inner).map(lambda a: Apply(a[0], (a[1],)))
            | inner.map(lambda a: Derivative(a, ("x", "t")))
            | inner.map(lambda a: At(a, (("x", Number(0.5)),)))
            | inner.map(lambda a: Integral(a, "x", Number(0.0), t))
            | st.tuples(inner, inner, inner).map(
                lambda a: Apply("where", (Apply("<", (a[0], a[1])), a[1], a[2]))
            )
        )

    return st.recursive(leaves, extend, max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_formatted_text_parses_back_to_the_same_tree(expression):
    assert parse(format_expression(expression)) == expression
    assert pretty(expression)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text):
    try:
        parse(text)
    except ProblemError as error:
        assert str(error)


def test_print_back_reads_like_the_paper():
    left, right = parse_equation("dt(u) + u*dx(u) = nu*dxx(u)", SCOPE)
    assert pretty(left) == "u_t + u u_x"
    assert pretty(right) == "\N{GREEK SMALL LETTER NU} u_xx"
    assert pretty(parse("x^2 + 2*pi")) == "x² + 2 π"
