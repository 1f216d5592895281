"""Files that are wrong on purpose: an error that helps, within a second."""

import pytest

from pinnlab.equation.calculus import expand
from pinnlab.errors import ProblemError
from pinnlab.problem.build import make_problem
from pinnlab.problem.file import load_problem, loads_problem
from pinnlab.problem.problem import Problem


HEAT = """
title = "Heat"
coordinates = { t = [0, 1], x = [-1, 1] }
fields = ["u"]

[parameters]
k = 2

[equations]
heat = "dt(u) = k*dxx(u)"

[conditions]
initial = { on = "t = 0", equation = "u = 0" }
walls = { on = ["x = -1", "x = 1"], equation = "u = 0" }
"""


def heat(*changes: tuple[str, str]) -> str:
    text = HEAT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def refused(text: str) -> str:
    with pytest.raises(ProblemError) as caught:
        loads_problem(text, "case.toml")
    return str(caught.value)


def source(text: str) -> str:
    return heat(("k*dxx(u)", f"k*dxx(u) + {text}"))


def definitions(lines: list[str], use: str) -> str:
    return source(use) + "\n[definitions]\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        source("(" * 100_000 + "u" + ")" * 100_000),
        source("1" * 900_000),
        source("1" * 2_000_000),
        source("-" * 200_000 + "u"),
        source("u^" * 5_000 + "u"),
        source("div(" + "grad(u) + " * 2_000 + "grad(u))"),
        source("__import__('os').system('true')"),
        source("u.__class__.__base__"),
        source("10^(10^10)*u"),
        source("9^9^9^9^9*u"),
        source("(1/0)*u"),
        source("sqrt(-k)*u"),
        source("(-8)^(1/3)*u"),
        source(r"u\u0000"),
        heat(("dt(u)", "dt(u)\0")),
        heat(("k = 2", "k = " + "1" * 100_000)),
        heat(("k = 2", 'k = "10^(10^10)"')),
        heat(("k = 2", "k = nan")),
        heat(('["u"]', "[" * 100_000)),
        heat(('["u"]', '[{ name = "u", complex = true }]'), ("= k", "= u^999999999*k")),
        HEAT + "[solver]\n" + "a." * 300_000 + "a = 1",
        HEAT + "[solver]\na = " + "{ a = " * 150 + "1" + " }" * 150,
    ],
)
def test_it_is_refused_before_it_explodes(text: str):
    assert refused(text).startswith("case.toml: ")


def test_definitions_that_double_are_refused_before_they_explode():
    lines = [f'a{i} = "a{i + 1} + a{i + 1}"' for i in range(45)]
    assert "operations long" in refused(definitions([*lines, 'a45 = "u"'], "a0"))


def test_long_chains_of_definitions_are_no_recursion():
    lines = [f'a{i} = "a{i + 1}"' for i in range(400)]
    problem = loads_problem(definitions([*lines, 'a400 = "u"'], "a0"))
    assert problem.equations[0].text.endswith("a0")
    message = refused(definitions([*lines, 'a400 = "a0"'], "a0"))
    assert "circular" in message


def test_the_deepest_accepted_expressions_can_be_differentiated():
    """The limits of the parser leave room for what is done with a tree later."""
    for text in ("+".join(["u"] * 115), "sin(" * 55 + "u" + ")" * 55):
        problem = loads_problem(source(f"dx({text})"))
        expand(problem.equations[0].residual, ("t", "x"))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/stdin", "/tmp"])
def test_what_is_no_file_is_refused_at_once(path: str):
    with pytest.raises(ProblemError, match=r"cannot be read|missing"):
        load_problem(path)


def test_a_path_with_a_zero_byte_is_refused():
    with pytest.raises(ProblemError, match="cannot be read"):
        load_problem("a\0b.toml")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (("[equations]", 'periodic = ["x"]\n[equations]'), "parameters.periodic"),
        (("[equations]", 'title = "a = b"\n[equations]'), "parameters.title"),
        (("[conditions]", 'fields = ["u"]\n[conditions]'), "equations.fields"),
        (("[conditions]", 'periodic = ["x"]\n[conditions]'), "equations.periodic"),
        (("[conditions]", '[conditions]\nperiodic = ["x"]'), "conditions.periodic"),
        (
            ("[conditions]", '[conditions.a]\nperiodic = ["x"]\n[conditions]'),
            "conditions.a.periodic",
        ),
        (("[conditions]", '[solver]\nperiodic = ["x"]\n[conditions]'), "solver."),
    ],
)
def test_a_top_level_key_behind_a_header_is_explained(
    change: tuple[str, str], key: str
):
    message = refused(heat(change))
    assert f"case.toml: {key}" in message
    assert "before any [table]" in message


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ([("k = 2", "dx = 2"), ("k*", "dx*")], ["dx(u) is the derivative by x"]),
        ([('["u"]', '["u", "v"]')], ["no equation contains 'v'"]),
        ([('["u"]', '["u", "u"]')], ["two fields 'u'"]),
        ([('["u"]', '"u"')], ["fields", "found 'u'"]),
        ([('["u"]', '[{ name = "u", of = ["x"] }]')], ["not supported yet"]),
        ([("dt(u) = k*dxx(u)", "k = x")], ["contains no field"]),
        ([("dt(u) =", "dt(u) ==")], ["write = where you wrote =="]),
        ([("dt(u) =", "2u =")], ["unexpected 'u'", "write * for a product"]),
        ([("dt(u)", "dz(u)")], ["'z' is not a coordinate (coordinates: t, x)"]),
        ([("dt(u)", "dn(u)")], ["dn(...) needs a face"]),
        ([("dt(u)", "u(t, x)")], ["write u for its value at the point"]),
        ([("dt(u)", "integral(u, k = [0, 1])")], ["'k' is one of the parameters"]),
        ([("t = 0", "t = 0, x = 1"), ("u = 0", "dn(u) = 0")], ["no outward normal"]),
        ([("x = -1", "x = 0"), ("u = 0", "dn(u) = 0")], ["dn(...)"]),
        ([('"t = 0", equation = "u', '"t = 0", equation = "dn(u)')], ["dt(...) in"]),
        ([("t = 0", "t == 0")], ["write = to fix a coordinate"]),
        ([("t = 0", "x = -1 or x = 1")], ["write a list"]),
        ([("t = 0", "y = 0")], ["'y' is no coordinate"]),
        ([("t = 0", "t = u")], ["unknown name 'u'"]),
        ([("t = 0", "x = 1 and u < 2")], ["unknown name 'u'"]),
        ([("x = -1", "boundary and x = 1")], ["fixes a coordinate already"]),
        ([("fields", 'periodic = ["x"]\nfields'), ("x = -1", "boundary")],
         ["no coordinate in space has faces"]),
        ([("[conditions]", '[exact]\nu = "1j*x"\n[conditions]')], ["'u' is real"]),
        ([('["u"]', '[{ name = "u", complex = true }]'),
          ("[conditions]", '[outputs]\nu_real = "x"\n[conditions]')],
         ["'u_real' belongs to the field 'u'"]),
        ([("[conditions]", '[outputs]\nu_reference = "x"\n[conditions]')],
         ["'u_reference' belongs to the field 'u'"]),
        ([("heat = ", "heat = { region = 1 } #")], ["not supported yet"]),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_training(
    changes: list[tuple[str, str]], parts: list[str]
):
    message = refused(heat(*changes))
    for part in parts:
        assert part in message


def test_overrides_are_checked():
    with pytest.raises(ProblemError, match=r"no 'parameters\.kk'"):
        loads_problem(HEAT, overrides={"parameters.kk": 1})
    for key in ("", "parameters.", "title.a"):
        with pytest.raises(ProblemError):
            loads_problem(HEAT, overrides={key: 1})


def places(on: str, *changes: tuple[str, str]) -> list[str]:
    problem = loads_problem(heat(('["x = -1", "x = 1"]', f'"{on}"'), *changes))
    return [place.text for place in problem.conditions[1].on]


def test_the_boundary_has_a_place_for_each_face_in_space():
    assert places("boundary") == ["x = -1", "x = 1"]
    assert places("boundary and t < 0.5") == [
        "x = -1 and t < 0.5",
        "x = 1 and t < 0.5",
    ]
    wide = ("x = [-1, 1]", "x = [-1, 1], y = [0, 3]")
    assert places("boundary", wide) == ["x = -1", "x = 1", "y = 0", "y = 3"]
    assert places("boundary", wide, ("fields", 'periodic = ["x"]\nfields')) == [
        "y = 0",
        "y = 3",
    ]


def test_places_use_parameters_definitions_and_alternatives():
    text = heat(
        ('"x = -1", "x = 1"', '"x = k/2 and (t < r or t > 2*r)", "t < r or t > 3*r"')
    )
    problem = loads_problem(text + '\n[definitions]\nr = "0.1*k"\n')
    face, region = problem.conditions[1].on
    assert face.fixed == (("x", 1.0),)
    assert face.where is not None
    assert region.fixed == ()


def test_a_normal_derivative_may_stand_in_a_definition():
    text = heat(('= ["x = -1", "x = 1"], equation = "u', '= "boundary", equation = "q'))
    assert loads_problem(text + '\n[definitions]\nq = "-k*dn(u)"\n').conditions
    assert "needs a face" in refused(source("q") + '\n[definitions]\nq = "k*dn(u)"\n')


def test_vectors_may_stand_in_definitions():
    direct = loads_problem(source("div(k*grad(u))"))
    defined = loads_problem(source("div(q)") + '\n[definitions]\nq = "k*grad(u)"\n')
    assert direct.equations[0].residual == defined.equations[0].residual


def test_start_and_end_are_the_bounds():
    direct = loads_problem(source("integral(u, t = [0, t])"))
    named = loads_problem(source("integral(u, t = [start, t])"))
    assert direct.equations[0].residual == named.equations[0].residual


def test_what_a_file_cannot_hold_is_refused():
    tables: dict[str, object] = {
        "coordinates": {"x": [0, 1]},
        "fields": ["u"],
        "equations": {"e": "dxx(u) = 0"},
        "solver": {"width": None},
    }
    with pytest.raises(ProblemError, match="TOML file cannot hold"):
        make_problem(tables)
    assert isinstance(make_problem({**tables, "solver": {}}), Problem)
