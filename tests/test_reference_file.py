"""`[reference]`: the solution in a data file, or no reference at all."""

import h5py
import numpy as np
import pytest

from pinnlab import ProblemError, load_problem, loads_problem, solve
from pinnlab.problem.file import dump_problem
from pinnlab.verify.preflight import check


ROD = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
rod = "dxx(u) = -pi^2*sin(pi*x)"
[conditions]
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
[reference]
"""


@pytest.fixture
def rod(tmp_path):
    """Writes the problem with a data file that it names."""

    def write(x, u, name="ref.csv"):
        rows = "\n".join(
            f"{a!r},{b!r}" for a, b in zip(x.tolist(), u.tolist(), strict=True)
        )
        (tmp_path / name).write_text(f"x,u\n{rows}\n")
        (tmp_path / "rod.toml").write_text(f'{ROD}file = "{name}"')
        return tmp_path / "rod.toml"

    return write


def test_a_file_beside_the_problem_is_the_truth(rod):
    x = np.linspace(0, 1, 101)
    solution = solve(load_problem(rod(x, np.sin(np.pi * x))), target=1e-6)
    report = solution.report
    assert report.verdict == "pass"
    assert report.fields[0].against == "reference"
    assert report.fields[0].rel_l2 < 1e-8
    assert report.reference is not None
    assert report.reference.method == "file ref.csv"


def test_a_wrong_file_is_believed_as_little_as_the_solution(rod):
    x = np.linspace(0, 1, 101)
    solution = solve(load_problem(rod(x, 1.01 * np.sin(np.pi * x))), target=1e-3)
    assert solution.report.verdict == "fail"
    assert solution.report.rel_l2 == pytest.approx(0.01 / 1.01, rel=1e-3)


def test_a_grid_states_its_own_error_and_the_coarseness_of_its_points(tmp_path):
    x = np.linspace(0, 1, 17)
    with h5py.File(tmp_path / "ref.h5", "w") as file:
        file["x"], file["u"] = x, np.sin(np.pi * x)
        file.attrs["reference_error"] = 2e-4
    (tmp_path / "rod.toml").write_text(f'{ROD}file = "ref.h5"')
    report = solve(load_problem(tmp_path / "rod.toml"), target=1e-3).report
    assert report.verdict == "pass"
    # Cubic splines between 17 points of a half wave are about 1e-6 off.
    assert 2e-4 + 1e-7 < report.fields[0].own < 2e-4 + 1e-5
    assert report.fields[0].rel_l2 < 1e-5


def test_without_a_reference_the_error_is_estimated():
    report = solve(loads_problem(ROD + 'method = "none"'), target=1e-3).report
    assert report.verdict == "pass (estimated)"
    assert report.reference is None


def test_a_problem_with_a_file_survives_being_written(rod, tmp_path):
    x = np.linspace(0, 1, 11)
    problem = load_problem(rod(x, x))
    assert loads_problem(dump_problem(problem)) == problem
    assert problem.reference.file == str(tmp_path / "ref.csv")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('method = "best"', "unknown method 'best' (auto, none)"),
        ("points = 512", "unknown key 'points' (known: method, file)"),
        ('method = "auto"\nfile = "a.csv"', "a method or a file, not both"),
        ("file = 3", "expected a text, found 3"),
    ],
)
def test_a_wrong_table_is_refused(table, words):
    with pytest.raises(ProblemError) as raised:
        loads_problem(ROD + table)
    assert words in str(raised.value)
    assert "reference" in str(raised.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("x,v\n0,0\n1,0\n", "none of the fields u (it has: v)"),
        ("x,u\n7,0\n8,0\n", "fewer than 10 of its points are in the problem's domain"),
        ("y,u\n7,0\n8,0\n", "'x'"),
    ],
)
def test_a_file_that_cannot_judge_is_found_before_any_work(content, words, tmp_path):
    if content is not None:
        (tmp_path / "ref.csv").write_text(content)
    (tmp_path / "rod.toml").write_text(f'{ROD}file = "ref.csv"')
    (error,) = check(load_problem(tmp_path / "rod.toml")).errors
    assert words in error and "reference.file" in error
