"""Several devices: the same numbers as one, nothing large on each, equal copies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from pinnlab.devices import make_mesh, padded
from pinnlab.errors import ProblemError


TESTS = Path(__file__).parent
FOUR = "--xla_force_host_platform_device_count=4"
ROWS_STAY = (
    "SSBroyden",
    "LevenbergMarquardt",
    "Adam",
    "LBFGS",
    "Muon",
    "SketchedGaussNewton",
    "SketchedGaussNewton of few rows",
)
OPTIMIZERS = (*ROWS_STAY, "ENGDW", "ENGDW by directions", "SPRING")


def with_four_devices(*command: str, **more: str) -> str:
    """The standard output of a Python program that has four devices."""
    path = os.pathsep.join((str(TESTS.parent), str(TESTS)))
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FOUR}"
    found = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": path} | more,
        capture_output=True,
        text=True,
    )
    assert found.returncode in (0, 1), found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def found():
    return json.loads(with_four_devices(str(TESTS / "on_devices.py")))


def test_four_devices_compute_what_one_does(found):
    for name, error in found["values"].items():
        assert error < 1e-13, name


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_the_same_to_rounding_and_copies_stay_equal(found, optimizer):
    error, loss, differs = found[optimizer]["one"]
    assert max(error, loss) < 1e-11
    assert differs is None
    error, loss, differs = found[optimizer]["ten"]
    assert max(error, loss) < 1e-8
    assert differs is None


def test_where_rounding_is_amplified_devices_add_no_more_than_a_nudge(found):
    # Hardly damped, Levenberg-Marquardt goes far along directions that hardly change
    # the loss: one unit in the last place of the beginning makes 1e-5 of the end.
    (error, loss), (nudged, moved) = found["amplified"]
    assert error < 3 * nudged
    assert loss < 3 * moved


@pytest.mark.parametrize("optimizer", ROWS_STAY)
def test_sums_travel_and_jacobians_stay_where_they_are(found, optimizer):
    assert found[optimizer]["moved"]["sums"]
    assert found[optimizer]["moved"]["gathered"] < 0.9


def test_training_with_a_redraw_is_the_same(found):
    assert found["trained"] < 1e-8


def test_what_belongs_to_points_is_split_and_the_rest_is_on_each(found):
    assert [name for name, good in found["layout"].items() if not good] == []


def test_a_copy_that_differs_is_named(found):
    assert found["replicas"] == [None, "state/c"]


def test_more_devices_than_there_are_is_an_error(found):
    none, five = found["refusals"]
    assert "expected 1 to 4" in none
    assert "5 devices are asked for, and there are 4 (cpu)" in five
    assert "device_count=5" in five


def test_on_one_device_nothing_is_added_and_more_is_refused():
    points = jax.numpy.ones((7, 2))
    assert padded(points, make_mesh(1)) is points
    with pytest.raises(ProblemError, match=r"there is 1 .*expected 1"):
        make_mesh(2)


@pytest.mark.slow
def test_final_errors_are_alike(tmp_path):
    errors = []
    for devices in "1", "4":
        command = ["-m", "pinnlab", "solve", "burgers", "--json", "--no-plot"]
        command += ["--devices", devices, "--budget", "1h", "--target", "1e-9"]
        command += ["--set", "solver.strategy=nonlinear", "--no-reference"]
        command += ["--set", "solver.iterations=150", "--set", "solver.points=500"]
        command += ["-o", str(tmp_path / f"{devices}.h5")]
        answer = json.loads(with_four_devices(*command))
        (field, *_) = answer["fields"].values()
        errors.append(field["rel_l2"])
    assert np.max(errors) < 3 * np.min(errors)
