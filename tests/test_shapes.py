"""Problems on shapes: parsing, edges with normals, points, solving, files."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pinnlab.assembly import least_squares, network_of
from pinnlab.compare import compare
from pinnlab.errors import ProblemError
from pinnlab.export.paraview import write_vtu, write_xdmf
from pinnlab.hdf5 import read_result
from pinnlab.linear.search import Search
from pinnlab.linear.space import find_space
from pinnlab.network import in_arrays
from pinnlab.network.plane import plane_functions
from pinnlab.plotting import view
from pinnlab.points import look
from pinnlab.problem.curves import Arc, Segment
from pinnlab.problem.file import loads_problem
from pinnlab.problem.problem import Place, Problem
from pinnlab.problem.shape import Shape
from pinnlab.sampling import sample
from pinnlab.settings import read_settings
from pinnlab.singular.around import find_around
from pinnlab.solution import Solution
from pinnlab.solver import solve
from pinnlab.sources import load_pair, load_source
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.system.terms import EVERYWHERE
from pinnlab.verify.preflight import check


PLATE = """
coordinates = {{ x = [-1, 1], y = [-1, 1] }}
fields = ["u"]
[parameters]
r = 0.4
[geometry]
shape = "{shape}"
parts = {{ hole = "disk(0.2, 0.1, r)", left = "x = -1" }}
[equations]
poisson = "lap(u) = -2*sin(x + y)"
[conditions]
{conditions}
[exact]
u = "sin(x + y)"
"""
HOLE = "rectangle(-1, -1, 1, 1) - disk(0.2, 0.1, r)"
DIRICHLET = 'edge = { on = "boundary", equation = "u = sin(x + y)" }'
FLUX = """
walls = { on = ["left", "x = 1", "y = -1", "y = 1"], equation = "u = sin(x + y)" }
hole = { on = "hole", equation = "dn(u) = -cos(x + y)*((x - 0.2) + (y - 0.1))/r" }
"""


def plate(shape: str = HOLE, conditions: str = DIRICHLET):
    return loads_problem(PLATE.format(shape=shape, conditions=conditions), "plate")


def shaped(shape: str, box: str = "x = [-2, 2], y = [-2, 2]"):
    text = f"""
    coordinates = {{ {box} }}
    fields = ["u"]
    [geometry]
    shape = "{shape}"
    [equations]
    laplace = "lap(u) = 0"
    [conditions]
    edge = {{ on = "boundary", equation = "u = x" }}
    """
    return loads_problem(text, "shaped")


def shape_of(problem: Problem) -> Shape:
    assert problem.shape is not None
    return problem.shape


def ends(place: Place) -> tuple:
    assert isinstance(place.curve, Segment)
    return place.curve.first, place.curve.last


# ----------------------------------------------------------------------- geometry


@pytest.mark.parametrize(
    ("shape", "length", "area"),
    [
        ("rectangle(-1, -1, 1, 0)", 6.0, 2.0),
        ("disk(0, 0, 1) - disk(0.5, 0, 0.5 / 2)", 2.5 * math.pi, math.pi * 15 / 16),
        ("rectangle(-1, -1, 1, 1) - rectangle(0, 0, 1, 1)", 8.0, 3.0),
        ("rectangle(-1, -1, 0, 1) + rectangle(0, -1, 1, 1)", 8.0, 4.0),
        ("rectangle(-1, -1, 0.5, 1) + rectangle(0, -1, 1, 1)", 8.0, 4.0),
        ("disk(0, 0, 1) and rectangle(0, 0, 1, 1)", 2 + math.pi / 2, math.pi / 4),
        ("polygon(0, 0, 0, 1, 1, 0)", 2 + math.sqrt(2), 0.5),
        ("(disk(-1, 0, 1/2) + disk(1, 0, 1/2)) - disk(1, 0, 1/4)", 2.5 * math.pi,
         math.pi * 7 / 16),
    ],
)  # fmt: skip
def test_the_edge_of_a_shape_is_found_with_its_length_and_area(shape, length, area):
    found = shape_of(shaped(shape))
    assert sum(c.length for c in found.curves) == pytest.approx(length, rel=1e-5)
    assert found.area == pytest.approx(area, rel=0.02)


@pytest.mark.parametrize(
    "shape",
    [
        "rectangle(-1, -1, 1, 1) - disk(1, 1, 0.5) - disk(0, 0, 0.25)",
        "disk(-0.5, 0, 1) + disk(0.5, 0, 1)",
        "polygon(-1, -1, 1, -1, 0, -0.5, 1, 1, -1, 1)",
        "disk(0, 0, 1) - (disk(0, 0, 0.5) - disk(0, 0, 0.25))",
    ],
)
def test_normals_point_out_of_the_shape_everywhere(shape):
    found = shape_of(shaped(shape))
    share = np.linspace(0.01, 0.99, 40)
    for curve in found.curves:
        points, normals = curve.at(share), curve.normal_at(share)
        assert np.allclose(np.linalg.norm(normals, axis=1), 1)
        assert np.all(found.level(points + 1e-3 * normals) < 0)
        assert np.all(found.level(points - 1e-3 * normals) > 0)
        assert np.all(found.contains(points))
        assert np.max(curve.distance(points)) < 1e-12


def test_levels_agree_in_numpy_and_jax():
    found = shape_of(shaped("polygon(-1, -1, 1, -1, 0, 1) - disk(0, -0.5, 0.25)"))
    points = np.random.default_rng(0).uniform(-1.2, 1.2, (500, 2))
    with jax.enable_x64(True):
        ours = found.level(jnp.asarray(points), jnp)
    assert np.max(np.abs(ours - found.level(points))) < 1e-14


def test_points_lie_inside_and_fill_the_shape():
    problem = shaped("rectangle(-0.1, -0.1, 0, 0) + disk(1, 1, 0.05)")
    points = sample(problem, EVERYWHERE, 4000, seed=0)
    assert len(np.unique(points, axis=0)) == 4000
    assert np.all(shape_of(problem).contains(points))
    in_disk = np.mean(np.hypot(*(points - 1).T) <= 0.05)
    share = math.pi * 0.05**2 / (math.pi * 0.05**2 + 0.01)
    assert in_disk == pytest.approx(share, abs=0.03)


def test_whole_faces_stay_faces_and_other_pieces_are_curves():
    (edge,) = plate().conditions
    assert [p.fixed for p in edge.on[:4]] == [
        (("y", -1.0),), (("x", 1.0),), (("y", 1.0),), (("x", -1.0),),
    ]  # fmt: skip
    assert isinstance(edge.on[4].curve, Arc)
    assert edge.on[4].curve.outward == -1


def test_a_line_names_the_pieces_of_the_edge_on_it():
    text = (
        PLATE.format(
            shape="rectangle(-1, -1, 1, 1) - rectangle(0, 0, 1, 1)",
            conditions="""
        right = { on = "x = 1", equation = "u = 0" }
        inner = { on = "x = 0", equation = "u = 0" }
        rest = { on = "boundary and x < 1", equation = "u = 0" }
        """,
        )
        .replace('hole = "disk(0.2, 0.1, r)", ', "")
        .replace("[parameters]\nr = 0.4", "")
    )
    right, inner, _ = loads_problem(text, "plate").conditions
    assert [ends(p) for p in right.on] == [((1, -1), (1, 0))]
    assert [ends(p) for p in inner.on] == [((0, 0), (0, 1))]


def test_an_inner_line_holds_only_what_belongs_to_the_shape():
    problem = shaped("disk(0, 0, 1)")
    system = build_system(problem)
    place = (
        loads_problem(
            problem.source.replace('on = "boundary"', 'on = "x = 0.5"'), "inner"
        )
        .conditions[0]
        .on[0]
    )
    points = sample(system.problem, place, 200, seed=0)
    assert np.all(points[:, 0] == 0.5)
    assert np.max(np.abs(points[:, 1])) <= math.sqrt(0.75) + 1e-9


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ('shape = "disk(0, 0)"', "a disk has 3 numbers, found 2: disk(x, y, radius)"),
        ('shape = "disk(0, 0, -1)"', "the radius -1 is not positive"),
        ('shape = "disc(0, 0, 1)"', "expected a solid, found 'disc'"),
        ('shape = "rectangle(0, 0, 1, 1) / 2"', "unexpected '/'"),
        ('shape = "disk(0, 0, 1"', "the parenthesis is not closed"),
        ('shape = "disk(0, 0, 1) -"', "expected a solid, found the end"),
        ('shape = "disk(0, 0, v)"', "unknown name 'v'"),
        ('shape = "disk(0, 0, 3)"', "the shape reaches from x = -3 to 3"),
        ('shape = "disk(0, 0, 1) - disk(0, 0, 2)"', "the shape is empty"),
        ('shape = "polygon(0, 0, 1, 1, 1, 0, 0, 1)"', "meets itself"),
        ('shape = "polygon(0, 0, 1, 1, 2, 2)"', "the corners lie on a line"),
        ("shape = 3", "expected shape"),
        ('mesh = "part.stl"', "meshes are not supported yet"),
        ('shap = "disk(0, 0, 1)"', "unknown key 'shap'"),
        ('shape = "disk(0, 0, 1)"\nparts = { a = "disk(1, 0, 1)" }',
         "no piece of the shape's edge lies on the edge of this"),
        ('shape = "disk(0, 0, 1)"\nparts = { boundary = "x = 1" }',
         "'boundary' is reserved and cannot name a part"),
        ('shape = "disk(0, 0, 1)"\nparts = { and = "x = 1" }', "'and' is reserved"),
        ('shape = "disk(0, 0, 1)"\nparts = { disk = "x = 1" }', "'disk' is a solid"),
        ('shape = "disk(0, 0, 1)"\nparts = { u = "x = 1" }',
         "'u' is the name of a field and of a part"),
        ('shape = "disk(0, 0, 1)"\nparts = { a = "x = 5" }', "outside the domain"),
        ('shape = "disk(0, 0, 1)"\nparts = { a = "a" }', "unknown name 'a'"),
        ('shape = "disk(0, 0, 1)"\nparts = { a = "" }', "the place is empty"),
        ('shape = "disk(0, 0, 1)"\nparts = { a = "disk(0, 0, 1) and x < 0" }',
         'on = "hole and x < 0"'),
        ('shape = "disk(0, 0, 1/0)"', "disk(0, 0, 1/0)"),
        ('shape = "disk(0,, 1)"', "expected a number, found ','"),
        ('shape = "disk(0, 0, 1) - disk(0, 0, 0.99999)"', "too thin"),
        (f'shape = "polygon({", ".join("01" * 201)})"', "at most 200 corners"),
        (f'shape = "{"(" * 50}disk(0, 0, 1){")" * 50}"', "nested more than 20 deep"),
    ],
)  # fmt: skip
def test_errors_in_a_geometry_say_where_and_what(geometry, message):
    text = f"""
    coordinates = {{ x = [-2, 2], y = [-2, 2] }}
    fields = ["u"]
    [geometry]
    {geometry}
    [equations]
    laplace = "lap(u) = 0"
    [conditions]
    edge = {{ on = "boundary", equation = "u = x" }}
    """
    with pytest.raises(ProblemError) as caught:
        loads_problem(text, "bad")
    assert message in str(caught.value)
    assert "geometry" in str(caught.value)


@pytest.mark.parametrize(
    ("coordinates", "top", "message"),
    [
        ("x = [-2, 2]", "", "two coordinates in space, here is 1: x"),
        ("x = [-2, 2], y = [-2, 2], z = [0, 1]", "", "here are 3: x, y, z"),
        ("x = [-2, 2], y = [-2, 2]", 'periodic = ["x"]', "'x' is periodic"),
    ],
)
def test_shapes_need_a_plane(coordinates, top, message):
    text = f"""
    coordinates = {{ {coordinates} }}
    fields = ["u"]
    {top}
    [geometry]
    shape = "disk(0, 0, 1)"
    [equations]
    laplace = "lap(u) = 0"
    """
    with pytest.raises(ProblemError, match=message):
        loads_problem(text, "bad")


def test_integrals_over_a_coordinate_of_a_shape_are_refused():
    with pytest.raises(ProblemError, match="integral over 'x'"):
        plate(conditions=DIRICHLET + '\nmean = { equation = "integral(u, x) = 0" }')


@pytest.mark.parametrize("place", ["x = 0.2, y = 0.1", "boundary and x > 3"])
def test_a_place_that_the_shape_misses_is_named_with_its_condition(place):
    problem = plate(conditions=f'odd = {{ on = "{place}", equation = "u = 0" }}')
    with pytest.raises(ProblemError, match="holds no points of the shape") as caught:
        check(problem)
    assert "conditions.odd.on" in str(caught.value)


def test_notebooks_show_the_shape():
    assert HOLE in plate()._repr_html_()


def test_traces_inside_of_a_shape_are_refused():
    with pytest.raises(ProblemError, match=r"at\(..., x = ...\) is not supported"):
        plate(conditions='edge = { on = "boundary", equation = "u = at(u, x = 0)" }')


def test_an_unknown_place_names_the_parts():
    with pytest.raises(ProblemError) as caught:
        plate(conditions='edge = { on = "hol", equation = "u = 0" }')
    assert "did you mean 'hole'?" in str(caught.value)


@pytest.mark.parametrize("radius", [1e-5, 1e-3])
def test_a_small_notch_in_a_wall_is_found(radius):
    found = shape_of(shaped(f"rectangle(-1, -1, 1, 1) - disk(1, 0.3, {radius})"))
    assert len(found.curves) == 6
    (arc,) = (c for c in found.curves if isinstance(c, Arc))
    assert arc.length == pytest.approx(math.pi * radius, rel=1e-6)
    assert 4 - found.area == pytest.approx(math.pi / 2 * radius**2, rel=1e-3)


@pytest.mark.parametrize(
    ("shape", "count", "area"),
    [
        ("disk(-1, 0, 1) + disk(1, 0, 1)", 2, 2 * math.pi),
        ("rectangle(-2, -2, 2, 2) - disk(1, 0, 1)", 5, 16 - math.pi),
        ("disk(0, 0, 2) - disk(1, 0, 1)", 2, 3 * math.pi),
        ("rectangle(-1, -1, 0, 0) + rectangle(0, 0, 1, 1)", 8, 2),
        ("disk(0, 0, 1) + disk(0, 0, 1)", 1, math.pi),
    ],
)
def test_pieces_that_touch_are_kept_apart(shape, count, area):
    found = shape_of(shaped(shape))
    assert sum(c.length > 1e-6 for c in found.curves) == count
    assert found.area == pytest.approx(area, rel=1e-6)


def test_many_corners_are_read():
    angles = 2 * math.pi * np.arange(150) / 150
    corners = np.stack([np.cos(angles), np.sin(angles)], 1).ravel().tolist()
    found = shape_of(
        shaped(f"polygon({', '.join(map(repr, corners))}) - disk(0, 0, 0.5)")
    )
    area = 75 * math.sin(2 * math.pi / 150) - math.pi / 4
    assert found.area == pytest.approx(area, rel=1e-10)


def test_coordinates_reach_no_farther_than_the_shape():
    """So that points, features and the grid of the result are where the shape is."""
    problem = shaped("disk(1, 0.5, 0.01)")
    bounds = [(a.lower, a.upper) for a in problem.axes]
    assert bounds == [pytest.approx((0.99, 1.01)), pytest.approx((0.49, 0.51))]
    assert len(sample(problem, EVERYWHERE, 500, seed=0)) == 500
    assert not check(problem).errors


# ---------------------------------------------------------------------- preflight


@pytest.mark.parametrize(
    "shape",
    [
        "disk(0, 0, 1) - disk(0, 0, 0.99)",
        "rectangle(-1, -1, 0, 0) + rectangle(0, 0, 1, 1)",
        "rectangle(0, 0, 1, 1) - polygon(0.1, 0.1, 0.95, 0.15, 0.9, 0.9)",
    ],
)
def test_a_problem_on_a_thin_shape_is_not_called_ambiguous(shape):
    assert not check(shaped(shape)).errors


def test_a_constant_that_may_be_added_is_found_and_a_point_inside_named():
    text = shaped("disk(0, 0, 1) - disk(0, 0, 0.5)").source
    problem = loads_problem(text.replace("u = x", "dn(u) = x"), "neumann")
    (error,) = check(problem).errors
    assert "'u' is determined only up to a constant" in error
    assert "integral" not in error
    place = dict(
        p.split(" = ") for p in error.split('on = "')[1].split('"')[0].split(", ")
    )
    radius = math.hypot(float(place["x"]), float(place["y"]))
    assert 0.5 < radius < 1


def test_a_piece_without_a_condition_is_an_error():
    found = check(plate(conditions='w = { on = "left", equation = "u = 0" }'))
    text = "\n".join(found.errors)
    assert "the circle around (0.2, 0.1) with radius 0.4 has no condition" in text


def test_a_condition_on_a_part_of_a_piece_is_a_warning():
    part = DIRICHLET.replace('"boundary"', '["boundary and x < 0.2"]')
    rest = 'rest = { on = ["x = 1", "y = -1", "y = 1"], equation = "u = sin(x + y)" }'
    found = check(plate(conditions=f"{part}\n{rest}"))
    assert any("a condition on a part of it only" in w for w in found.warnings)


# ------------------------------------------------------------------------ solving


@pytest.fixture(scope="module")
def solved():
    return solve(plate(), target=1e-8, budget=20)


@pytest.mark.parametrize("conditions", [DIRICHLET, FLUX])
def test_linear_problems_with_a_hole_are_solved(conditions, solved):
    found = solved
    if conditions == FLUX:
        found = solve(plate(conditions=FLUX), target=1e-8, budget=20)
    assert found.report.verdict == "pass"
    assert found.report.fields[0].rel_l2 < 1e-9


def test_values_outside_of_the_shape_are_nan_and_masked(solved, tmp_path):
    path = solved.save(tmp_path / "plate.h5")
    result = read_result(path)
    u, mask = result.variables["u"], result.variables["mask"]
    assert np.array_equal(np.isnan(u), mask == 0)
    x, y = np.meshgrid(result.axes["x"], result.axes["y"], indexing="ij")
    inside = np.hypot(x - 0.2, y - 0.1) >= 0.4 - 1e-9
    assert np.array_equal(mask, inside)
    assert np.isnan(solved(x=0.2, y=0.1))
    assert solved(x=0.9, y=0.1) == pytest.approx(math.sin(1.0), abs=1e-8)


def test_the_mask_is_in_files_but_is_no_quantity_to_look_at(solved, tmp_path):
    path = solved.save(tmp_path / "plate.h5")
    assert [q.name for q in view.fields(solved.result)] == ["u"]
    assert "mask" not in load_source(path).data.fields
    found = compare(*load_pair(path, path))
    assert [f.field for f in found.fields] == ["u"]
    assert found.fields[0].rel_l2 == 0
    for write, name in ((write_vtu, "plate.vtu"), (write_xdmf, "plate.xdmf")):
        write(solved.result, tmp_path / name)
        assert "mask" in (tmp_path / name).read_text()


def test_a_solution_on_a_shape_is_read_back_to_the_last_bit(solved, tmp_path):
    again = Solution.load(solved.save(tmp_path / "plate.h5"))
    points = sample(solved.problem, EVERYWHERE, 500, seed=3)
    assert np.array_equal(again.values(points)["u"], solved.values(points)["u"])


RING = """
coordinates = { x = [-1, 1], y = [-1, 1] }
fields = ["u"]
[geometry]
shape = "disk(0, 0, 1) - disk(0.1, 0, 0.05)"
parts = { hole = "disk(0.1, 0, 0.05)", rim = "disk(0, 0, 1)" }
[equations]
laplace = "lap(u) = 0"
[conditions]
hole = { on = "hole", equation = "u = log(0.05)" }
rim = { on = "rim", equation = "u = log(sqrt((x - 0.1)^2 + y^2))" }
[exact]
u = "log(sqrt((x - 0.1)^2 + y^2))"
"""


@pytest.fixture(scope="module")
def ring():
    return solve(loads_problem(RING, "ring"), target=1e-9, budget=20)


def test_a_small_hole_gets_functions_of_its_own(ring):
    (hole,) = find_around(ring.system)
    assert hole.text == "the hole at (0.1, 0)"
    assert ring.report.fields[0].rel_l2 < 1e-10
    assert "functions around the hole" in ring.report.strategy


@pytest.mark.parametrize("orders", [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (1, 2)])
def test_networks_in_arrays_give_what_their_jets_give(ring, orders):
    network = ring.model.network
    derivative = in_arrays(network)
    assert derivative is not None
    points = sample(ring.problem, EVERYWHERE, 50, seed=5)
    found = derivative(points, 0, orders)
    with jax.enable_x64(True):
        slope = lambda point: network(point)[0]
        for axis in (0,) * orders[0] + (1,) * orders[1]:
            slope = partial(_slope, slope, axis)
        right = jax.vmap(slope)(jnp.asarray(points))
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())


def _slope(function, axis, point):
    return jax.grad(function)(point)[axis]


def test_a_point_alone_and_among_others_gives_the_same_bits(ring):
    points = sample(ring.problem, EVERYWHERE, 3000, seed=6)
    every = ring.values(points)["u"]
    for i in (0, 1, 1777, 2999):
        assert ring.values(points[i : i + 1])["u"][0] == every[i]


CHANNEL = """
coordinates = { x = [0, 1], y = [0, 1] }
fields = ["u", "v", "p"]
[geometry]
shape = "rectangle(0, 0, 1, 1) - disk(0.4, 0.5, 0.2)"
parts = { cylinder = "disk(0.4, 0.5, 0.2)" }
[equations]
along = "lap(u) = dx(p)"
across = "lap(v) = dy(p)"
mass = "dx(u) + dy(v) = 0"
[conditions]
still_u = { on = ["y = 0", "y = 1", "cylinder"], equation = "u = 0" }
still_v = { on = ["y = 0", "y = 1", "cylinder"], equation = "v = 0" }
inflow = { on = ["x = 0", "x = 1"], equation = "u = y*(1 - y)" }
level = { on = ["x = 0", "x = 1"], equation = "v = 0" }
gauge = { on = "x = 0 and y = 0", equation = "p = 0" }
"""


def test_flow_without_inertia_past_a_cylinder_is_resolved():
    system = build_system(loads_problem(CHANNEL, "channel"), "rows")
    search = Search(system, 20.0, 0, lambda *_: False)
    assert len(search.space.corners) == 1
    assert search.run(1e-3).solved.worst < 1e-3


def test_a_nonlinear_problem_has_functions_around_its_hole():
    system = build_system(loads_problem(RING.replace("= 0", "+ u^3 = 0", 1), "ring"))
    assert not system.is_linear
    (hole,) = find_around(system)
    assert hole.gathers


def test_points_of_the_equations_gather_at_a_hole():
    text = RING.replace("lap(u) = 0", "lap(u) + u = 0")
    space = find_space(build_system(loads_problem(text, "ring")))
    (equation,) = space.system.equations
    points = space.points(equation, 4000, 3, True)
    distance = np.linalg.norm(points - [0.1, 0], axis=1)
    assert len(points) == 4000 and distance.min() >= 0.05
    # A ring from one to two radii is a hundredth of the disk.
    assert (distance < 0.1).mean() > 0.08
    # The others are spread evenly: each quarter of the plane has as many.
    far = points[distance > 0.3]
    quarters = [(far * signs > 0).all(axis=1).mean() for signs in ((1, 1), (-1, 1))]
    assert quarters == pytest.approx([0.25, 0.25], abs=0.03)
    tested = space.points(equation, 4000, 3, False)
    assert (np.linalg.norm(tested - [0.1, 0], axis=1) < 0.1).mean() < 0.02


CORNER = """
coordinates = { x = [-1, 1], y = [-1, 1] }
fields = ["u"]
[definitions]
turned = "atan2(-x, y)"
angle = "where(turned < -0.1, turned + 2*pi, turned)"
[geometry]
shape = "rectangle(-1, -1, 1, 1) - rectangle(0, 0, 1, 1)"
[equations]
laplace = "lap(u) = 0"
[conditions]
edge = { on = "boundary", equation = "u = (x^2 + y^2)^(1/3)*sin(2/3*angle)" }
[exact]
u = "(x^2 + y^2)^(1/3)*sin(2/3*angle)"
"""


def test_the_corner_of_an_l_shape_is_resolved():
    """u = r^(2/3) sin(2 theta / 3), whose slope is infinite at the corner."""
    problem = loads_problem(CORNER, "corner")
    (corner,) = find_around(build_system(problem))
    assert corner.text == "the corner (0, 0)"
    found = solve(problem, target=1e-8, budget=20)
    assert found.report.fields[0].rel_l2 < 1e-8


def test_functions_around_points_have_the_right_derivatives():
    powers = np.array(
        [(-3, 0, 0), (2 / 3, 0, 0), (5 / 3, 1, 0), (2, 1, 1), (0, 0, 1), (-2, 3, 0)]
    )
    point, turn = np.array([0.7, -0.4]), 0.5
    with jax.enable_x64(True):
        value = lambda p: plane_functions(p, turn, jnp.asarray(powers), (0, 0), jnp)
        first = np.asarray(jax.jacfwd(value)(jnp.asarray(point)))
        second = np.asarray(jax.jacfwd(jax.jacfwd(value))(jnp.asarray(point)))
    for i, orders in enumerate([(1, 0), (0, 1)]):
        ours = plane_functions(point, turn, powers, orders)
        assert np.allclose(ours, first[:, i], rtol=1e-11, atol=1e-11)
    for (i, j), orders in {(0, 0): (2, 0), (0, 1): (1, 1), (1, 1): (0, 2)}.items():
        ours = plane_functions(point, turn, powers, orders)
        assert np.allclose(ours, second[:, i, j], rtol=1e-11, atol=1e-11)


def test_harmonic_functions_around_points_are_harmonic():
    powers = np.array([(-3, 0, 0), (2 / 3, 0, 0), (0, 0, 1)])
    points = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    parts = (plane_functions(points, 0.3, powers, o) for o in ((2, 0), (0, 2)))
    xx, yy = parts
    assert np.max(np.abs(xx + yy)) <= 1e-12 * np.max(np.abs(xx))


NETWORK = """
[solver]
strategy = "nonlinear"
points = 300
iterations = 120
redraw = 50
network = { width = 12, depth = 1 }
"""


@pytest.mark.slow
def test_a_network_is_trained_on_points_of_the_shape_alone():
    problem = loads_problem(plate().source + NETWORK, "plate")
    found = solve(problem, target=1e-2, budget=120, reference=False)
    assert found.report.fields[0].rel_l2 < 1e-2


def test_points_drawn_anew_are_inside():
    problem = loads_problem(plate().source + NETWORK, "plate")
    with jax.enable_x64(True):
        system = build_system(problem)
        settings = plan(system, read_settings(problem.solver), 1e-2).settings
        network = network_of(system, settings, (1.0,), jax.random.key(0))
        objective, theta = least_squares(system, settings, network, seed=0)
        moved, heldout = look(objective, theta, jax.random.key(1), 3)
    before, after = (np.asarray(o.blocks[0].points) for o in (objective, moved))
    assert after.shape == before.shape
    assert not np.array_equal(before, after)
    assert np.all(shape_of(problem).contains(after))
    assert np.all(np.isfinite(heldout))
    # The hole's edge keeps its points: they are where its pieces are.
    edge = np.asarray(moved.blocks[1].points)
    assert np.allclose(np.hypot(*(edge - [0.2, 0.1]).T), 0.4)


def test_segments_and_arcs_have_parts_and_distances():
    line = Segment((0.0, 0.0), (2.0, 0.0))
    assert line.part(0.25, 0.75) == Segment((0.5, 0.0), (1.5, 0.0))
    assert line.distance(np.array([[3.0, 0.0], [1.0, -1.0]])).tolist() == [1.0, 1.0]
    arc = Arc((0.0, 0.0), 1.0, 0.0, math.pi / 2)
    away = arc.distance(np.array([[-1.0, 0.0], [2.0, 2.0]]))
    assert away == pytest.approx([math.sqrt(2), math.sqrt(8) - 1])


def test_a_seam_is_inside():
    found = shape_of(shaped("rectangle(-1, -1, 0, 1) + rectangle(0, -1, 1, 1)"))
    points = np.array([[0.0, 0.5], [0.0, 1.0], [0.0, -1.0], [0.0, 1.1]])
    assert found.contains(points).tolist() == [True, True, True, False]


def test_a_line_that_two_solids_share_is_not_inside_where_both_end():
    found = shape_of(shaped("rectangle(-1, -1, 1, 1) - rectangle(0, 0, 1, 1)"))
    points = np.array([[0.5, 1.0], [1.0, 0.5], [0.0, 0.5], [-0.5, 1.0], [1.0, 1.0]])
    assert found.contains(points).tolist() == [False, False, True, True, False]
