"""Problem files: what is read, what is refused and how the error helps."""

import jax
import pytest

from pinnlab.cli.options import load
from pinnlab.errors import ProblemError
from pinnlab.problem.build import make_problem
from pinnlab.problem.file import dump_problem, load_problem, loads_problem
from pinnlab.solver import solve


BURGERS = """
title = "Burgers"
coordinates = { t = [0, 1], x = [-1, 1] }
fields = ["u"]
[parameters]
nu = "0.01/pi"
[equations]
momentum = "dt(u) + u*dx(u) = nu*dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = -sin(pi*x)" }
walls = { on = ["x = -1", "x = 1"], equation = "u = 0" }
"""


def refused(text, *parts, overrides=None):
    with pytest.raises(ProblemError) as caught:
        loads_problem(text, "case.toml", overrides or {})
    for part in parts:
        assert part in str(caught.value), str(caught.value)
    return caught.value


def changed(old, new):
    assert old in BURGERS
    return BURGERS.replace(old, new)


def test_a_file_is_read():
    problem = loads_problem(BURGERS)
    assert [a.name for a in problem.axes] == ["t", "x"]
    assert problem.parameters["nu"] == 0.01 / 3.141592653589793
    assert [len(c.on) for c in problem.conditions] == [1, 2]
    assert problem.conditions[1].on[1].face(problem) == ("x", True)


def test_a_problem_survives_being_written():
    problem = loads_problem(BURGERS)
    assert loads_problem(dump_problem(problem)) == problem
    other = loads_problem(changed("0.01/pi", "0.02/pi"))
    assert other != problem


def test_the_error_names_file_key_column_and_names(tmp_path):
    path = tmp_path / "burgers.toml"
    path.write_text(changed("u*dx(u)", "v*dx(u)"))
    with pytest.raises(ProblemError) as caught:
        load_problem(path)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "burgers.toml: equations.momentum: unknown name 'v' "
        "(fields: u; coordinates: t, x; parameters: nu)"
    )
    assert lines[1].strip() == "dt(u) + v*dx(u) = nu*dxx(u)"
    assert lines[2].index("^") == lines[1].index("v*")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("title", "titel", ["unknown key 'titel'", "title"]),
        ('fields = ["u"]', 'fields = ["x"]', ["'x'", "coordinate", "field"]),
        ('fields = ["u"]', 'fields = ["sin"]', ["reserved"]),
        ('fields = ["u"]', "fields = []", ["fields", "list"]),
        ('fields = ["u"]', "", ["'fields' is missing"]),
        ("[-1, 1]", "[1, -1]", ["coordinates.x", "not below"]),
        ("[-1, 1]", '["-pi/0", 1]', ["coordinates.x", "division by zero"]),
        ("[-1, 1]", "[-1]", ["coordinates.x", "[lower, upper]"]),
        ("[-1, 1]", "[nan, 1]", ["coordinates.x", "finite"]),
        ('"t = 0"', '"t = 2"', ["conditions.initial.on", "outside the domain"]),
        ('"t = 0"', '"z = 0"', ["no coordinate"]),
        ('"t = 0"', '"bondary"', ["boundary"]),
        ('"t = 0"', "[]", ["empty"]),
        ("nu*dxx(u)", "dxx(u)", ["parameters.nu", "not used"]),
        ('"0.01/pi"', '"nu"', ["circular"]),
        ('"0.01/pi"', '"10^(10^10)"', ["parameters.nu", "too large"]),
        ('"0.01/pi"', '"sqrt(-1)"', ["parameters.nu"]),
        ('"0.01/pi"', "true", ["parameters.nu"]),
        ('"0.01/pi"', "{ guess = 1 }", ["not supported yet"]),
        ('equation = "u = 0"', 'equaton = "u = 0"', ["equaton", "equation"]),
        ('equation = "u = 0"', "equation = []", ["empty"]),
        ('equation = "u = 0"', 'equation = "u"', ["needs '='"]),
        ("u = 0", "u = 1j", ["imaginary"]),
        ("u = 0", "dn(u) = grad(u)", ["vector"]),
        ("momentum", "dn(u)", ["not valid TOML"]),
        ("[equations]", "[regions]\na = 1\n[equations]", ["not supported yet"]),
        ("[equations]", "[geometry]\na = 1\n[equations]", ["unknown key", "shape"]),
        ("[equations]", '[definitions]\na = "b"\nb = "a"\n[equations]', ["circular"]),
        ("[equations]", '[definitions]\nq = "u"\n[equations]', ["q", "not used"]),
        ("[equations]", '[exact]\nw = "x"\n[equations]', ["exact.w", "no field"]),
        ("[equations]", '[exact]\nu = "u"\n[equations]', ["may not use fields"]),
        ("[conditions]", 'periodic = ["x"]\n[conditions]', ["top-level", "periodic"]),
    ],
)
def test_what_is_wrong_is_refused_with_help(old, new, parts):
    refused(changed(old, new), "case.toml", *parts)


def test_a_top_level_key_inside_a_table_is_explained():
    text = BURGERS.replace('fields = ["u"]\n', "") + 'fields = ["u"]\n'
    refused(text, "fields", "before any [table]")


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 50_000,
        "a = " + "9" * 10_000,
        "a = 1\na = 2",
        "\x00",
        "a = '\x07'",
        "title = " + "'x'" * 3,
        "a" * 2_000_000,
    ],
)
def test_hostile_toml_is_refused(text):
    refused(text)


def test_unreadable_files_are_refused(tmp_path):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, part in [
        (tmp_path / "missing.toml", "No such file"),
        (tmp_path, "cannot be read"),
        (binary, "UTF-8"),
    ]:
        with pytest.raises(ProblemError, match=part):
            load_problem(path)


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BURGERS.replace("\n", "\r\n").encode())
    assert load_problem(path) == loads_problem(BURGERS)


def test_overrides_reach_parameters_and_solver():
    problem = loads_problem(
        BURGERS, overrides={"parameters.nu": 0.5, "solver.network.width": 7}
    )
    assert problem.parameters["nu"] == 0.5
    assert problem.solver == {"network": {"width": 7}}
    refused(BURGERS, "parameters.mu", overrides={"parameters.mu": 1})


def test_parameters_may_use_each_other_in_any_order():
    text = changed('nu = "0.01/pi"', 'nu = "2*mu"\nmu = "half/2"\nhalf = 0.5')
    assert loads_problem(text).parameters == {"nu": 0.5, "mu": 0.25, "half": 0.5}


def test_places():
    problem = loads_problem(
        changed('on = ["x = -1", "x = 1"]', 'on = ["x = end and t < 0.5", "boundary"]')
    )
    places = problem.conditions[1].on
    assert [p.fixed for p in places] == [
        (("x", 1.0),), (("x", -1.0),), (("x", 1.0),)
    ]  # fmt: skip
    assert places[0].where is not None
    point = loads_problem(changed('"t = 0"', '"t = 0, x = 0.25"'))
    assert point.conditions[0].on[0].fixed == (("t", 0.0), ("x", 0.25))
    assert point.conditions[0].on[0].face(point) is None


def test_a_declared_e_wins_over_the_constant():
    text = changed('nu = "0.01/pi"', 'nu = "0.01*e"\ne = 2')
    assert loads_problem(text).parameters["nu"] == 0.02


def test_complex_fields():
    text = """
coordinates = { t = [0, 1], x = [-5, 5] }
fields = [{ name = "h", complex = true }]
periodic = ["x"]
[equations]
nls = "1j*dt(h) + dxx(h)/2 + abs(h)^2*h = 0"
[conditions]
initial = { on = "t = 0", equation = "h = 2/cosh(x)" }
"""
    problem = loads_problem(text)
    assert problem.fields[0].complex
    assert problem.periodic == ("x",)
    refused(text.replace("abs(h)", "tanh(h)"), "complex")


def tables(**changes):
    return {
        "coordinates": {"x": [0, 1]},
        "fields": ["u"],
        "equations": {"e": "dxx(u) = -1"},
        "conditions": {"ends": {"on": "boundary", "equation": "u = 0"}},
    } | changes


def test_problems_from_python_equal_those_from_files():
    text = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
e = "dxx(u) = -1"
[conditions]
ends = { on = "boundary", equation = "u = 0" }
"""
    assert make_problem(tables()) == loads_problem(text)


def test_callables_are_accepted_and_cannot_be_written():
    problem = make_problem(
        tables(equations={"e": lambda u, x: jax.hessian(u)(x)[0, 0] + 1})
    )
    assert problem.equations[0].function is not None
    with pytest.raises(ProblemError, match="functions"):
        dump_problem(problem)


def test_errors_from_python_name_the_key():
    with pytest.raises(ProblemError, match=r"equations\.e: unknown name 'w'"):
        make_problem(tables(equations={"e": "dxx(w) = 0"}))


def test_errors_after_reading_name_the_file_as_it_is(tmp_path):
    text = changed("[equations]", '[solver]\npoints = "many"\n[equations]')
    path = tmp_path / "case.toml"
    path.write_text(text)
    for problem in (load_problem(path), loads_problem(text, "case.toml")):
        assert problem.name == "case"
        with pytest.raises(ProblemError, match=r"^case\.toml: solver\.points: "):
            solve(problem)


def test_files_are_found_beside_the_problem_with_other_values_too(tmp_path):
    text = changed("[equations]", '[reference]\nfile = "truth.csv"\n[equations]')
    path = tmp_path / "case.toml"
    path.write_text(text)
    found = load(str(path), ["parameters.nu=0.1"])
    assert found.parameters["nu"] == 0.1
    assert found.reference.file == str(tmp_path / "truth.csv")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("parameters.mu", "there is no 'parameters.mu' to set"),
        ("conditions.wall.equation", "there is no 'conditions.wall' to set"),
        ("title.x", "'title' is not a table"),
    ],
)
def test_values_are_set_where_there_is_something(tmp_path, key, message):
    path = tmp_path / "case.toml"
    path.write_text(BURGERS)
    with pytest.raises(ProblemError, match=f"^case.toml: .*{message}"):
        load_problem(path, {key: 1.0})
    assert load_problem(path, {"solver.network.width": 9}).solver == {
        "network": {"width": 9}
    }
