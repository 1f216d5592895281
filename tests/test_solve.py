"""From a problem to a verified solution: accuracy, honesty, files, failures."""

import signal
import threading

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from pinnlab import Solution, loads_problem, make_problem, solve
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result


LOGISTIC = """
title = "Logistic growth"
coordinates = { t = [0, 2] }
fields = ["u"]
[parameters]
rate = 2
[equations]
growth = "dt(u) = rate*u*(1 - u)"
[conditions]
start = { on = "t = 0", equation = "u = 0.1" }
[exact]
u = "1/(1 + 9*exp(-rate*t))"
[outputs]
speed = "dt(u)"
[solver]
optimizer = "levenberg_marquardt"
iterations = 40
points = 64
redraw = 20
network = { width = 8, depth = 1 }
"""

ROD = """
title = "A heated rod"
coordinates = { t = [0, 1], x = [0, 1] }
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u)/4"
[conditions]
initial = { on = "t = 0", equation = "u = sin(pi*x)" }
ends = { on = ["x = 0", "x = 1"], equation = "u = 0" }
[exact]
u = "exp(-pi^2*t/4)*sin(pi*x)"
"""


def error(solution):
    """The error against the truth, which must be known."""
    assert solution.report.rel_l2 is not None
    return solution.report.rel_l2


@pytest.fixture(scope="module")
def logistic():
    return solve(
        loads_problem(LOGISTIC, "logistic"), target=1e-5, budget=120, reference=False
    )


@pytest.fixture(scope="module")
def rod():
    return solve(loads_problem(ROD, "rod"), target=1e-6, budget=30)


def test_a_nonlinear_problem_is_solved_and_verified(logistic):
    report = logistic.report
    assert report.verdict == "pass"
    assert error(logistic) < 1e-5
    assert report.conditions[0].enforced == "exact"
    assert report.conditions[0].violation < 1e-14
    t = np.linspace(0, 2, 7)
    np.testing.assert_allclose(logistic(t=t), 1 / (1 + 9 * np.exp(-2 * t)), rtol=1e-5)


def test_a_linear_problem_takes_one_least_squares_solve(rod):
    assert "least-squares" in rod.report.strategy
    assert rod.report.verdict == "pass"
    assert error(rod) < 1e-7
    assert {c.enforced for c in rod.report.conditions} == {"rows"}


@pytest.mark.parametrize("name", ["logistic", "rod"])
def test_a_saved_solution_gives_the_same_bits(name, request, tmp_path):
    solution = request.getfixturevalue(name)
    path = solution.save(tmp_path / "run.h5")
    again = Solution.load(path)
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (1500, len(solution.system.coordinates)))
    first, second = solution.values(points), again.values(points)
    for key in first:
        assert np.array_equal(first[key], second[key])
    assert again.report == solution.report
    assert again.problem == solution.problem


@pytest.mark.parametrize("name", ["logistic", "rod"])
def test_a_point_alone_and_in_a_batch_agree_to_the_last_bit(name, request):
    solution = request.getfixturevalue(name)
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 1, (2000, len(solution.system.coordinates)))
    together = solution.values(points)["u"]
    for i in (0, 700, 1023, 1024, 1999):
        assert solution.values(points[i : i + 1])["u"][0] == together[i]


def test_calling_a_solution(rod):
    assert rod(t=0.5, x=0.5).shape == ()
    assert rod(0.5, 0.5) == rod(t=0.5, x=0.5)
    assert rod(t=np.linspace(0, 1, 3)[:, None], x=np.linspace(0, 1, 4)).shape == (3, 4)
    with pytest.raises(TypeError, match="t, x"):
        rod(t=0.5)
    with pytest.raises(TypeError, match="y"):
        rod(t=0.5, x=0.5, y=1)
    with pytest.raises(ValueError, match="points must be"):
        rod.values(np.zeros(3))


def test_outputs_are_written_beside_the_fields(logistic):
    found = logistic.values(np.array([[0.7]]))
    np.testing.assert_allclose(
        found["speed"], 2 * found["u"] * (1 - found["u"]), rtol=1e-4
    )
    assert "speed" in logistic.result.variables


def test_the_file_opens_in_plain_readers(rod, tmp_path):
    path = rod.save(tmp_path / "rod.h5")
    with h5py.File(path) as file:
        assert file.attrs["format"] == "pinnlab"
        assert file.attrs["verdict"] == "pass"
        values = file["u"]
        assert isinstance(values, h5py.Dataset)
        assert values.shape == (201, 201)
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data["u"].dims == ("t", "x")
        error = float(np.abs(data["u"] - data["u_exact"]).max())
        assert error < 1e-6
        middle = data["u"].sel(t=0.5, x=0.5, method="nearest")
        assert np.isclose(float(middle), np.exp(-(np.pi**2) / 8), rtol=1e-5)


def test_the_seed_decides_everything(logistic):
    again = solve(
        loads_problem(LOGISTIC, "logistic"), target=1e-5, budget=120, reference=False
    )
    points = np.linspace(0, 2, 5)[:, None]
    assert np.array_equal(again.values(points)["u"], logistic.values(points)["u"])


def short(text, **solver):
    overrides = {f"solver.{k}": v for k, v in solver.items()}
    return loads_problem(text, "case", overrides)


TINY = {
    "optimizer": "ssbroyden",
    "adam": 0,
    "iterations": 5,
    "points": 64,
    "redraw": 5,
    "network.width": 5,
}


def test_too_little_training_is_a_failure_with_a_reason():
    found = solve(
        short(LOGISTIC, **TINY | {"iterations": 2}),
        target=1e-8,
        budget=60,
        reference=False,
    )
    assert found.report.verdict == "fail"
    assert "exact" in found.report.reason
    assert found.report.suggestion


def test_without_a_truth_nothing_passes():
    text = LOGISTIC.replace('[exact]\nu = "1/(1 + 9*exp(-rate*t))"\n', "")
    found = solve(
        loads_problem(text, "blind"), target=1e-2, budget=120, reference=False
    )
    assert found.report.verdict == "unverified"
    assert found.report.rel_l2 is None


def test_a_small_residual_with_a_wrong_solution_fails():
    # 1e-3 too much on the right: residuals small, error large against the truth.
    text = LOGISTIC.replace("9*exp(-rate*t)", "9.2*exp(-rate*t)")
    with pytest.raises(ProblemError, match="does not satisfy condition 'start'"):
        solve(loads_problem(text, "wrong"), budget=5)


def test_callables_give_the_same_as_text():
    tables = {
        "coordinates": {"x": [0, 1]},
        "fields": ["u"],
        "conditions": {"ends": {"on": "boundary", "equation": "u = 0"}},
        "exact": {"u": "sin(pi*x)"},
        "solver": {
            "optimizer": "levenberg_marquardt",
            "iterations": 30,
            "points": 40,
            "network": {"width": 8, "depth": 1},
        },
    }
    by_function = make_problem(
        tables
        | {
            "equations": {
                "e": lambda u, x: (
                    jax.hessian(u)(x)[0, 0] + jnp.pi**2 * jnp.sin(jnp.pi * x[0])
                )
            }
        }
    )
    by_text = make_problem(tables | {"equations": {"e": "dxx(u) + pi^2*sin(pi*x) = 0"}})
    first = solve(by_function, target=1e-6, budget=120, reference=False)
    second = solve(by_text, target=1e-6, budget=120, reference=False)
    assert error(first) < 1e-6
    assert error(second) < 1e-6


def test_callables_may_use_forward_mode_and_name_fields():
    def motion(u, point):
        slope = lambda f: jax.jvp(f, (point,), (jnp.ones(1),))[1]
        return slope(u.a) - u.b(point)

    problem = make_problem(
        {
            "coordinates": {"t": [0, 1]},
            "fields": ["a", "b"],
            "equations": {"first": motion, "second": "dt(b) = -a"},
            "conditions": {"start": {"on": "t = 0", "equation": ["a = 1", "b = 0"]}},
            "exact": {"a": "cos(t)", "b": "-sin(t)"},
            "solver": {
                "optimizer": "levenberg_marquardt",
                "iterations": 30,
                "points": 40,
                "network": {"width": 8, "depth": 1},
            },
        }
    )
    assert error(solve(problem, target=1e-6, budget=120, reference=False)) < 1e-6


@pytest.mark.parametrize(
    "optimizer", ["lbfgs", "adam", "ssbroyden", "sketched_gauss_newton", "spring"]
)
def test_every_optimizer_runs_end_to_end(optimizer):
    found = solve(
        short(LOGISTIC, **TINY | {"optimizer": optimizer, "iterations": 20}), budget=60
    )
    losses = found.result.history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("sampler", ["sobol", "latin", "grid", "uniform"])
def test_every_sampler_runs_end_to_end(sampler):
    found = solve(
        short(LOGISTIC, **TINY | {"sampler": sampler}), budget=60, reference=False
    )
    assert np.isfinite(error(found))


def test_float32_training_runs():
    found = solve(
        short(LOGISTIC, **TINY | {"precision": "float32"}), budget=60, reference=False
    )
    assert np.isfinite(error(found))


def test_settings_are_checked_before_any_work():
    for bad, part in [
        ({"optimiser": "lm"}, "optimizer"),
        ({"optimizer": "sgd"}, "ssbroyden"),
        ({"points": -5}, "at least"),
        ({"network.width": 2.5}, "integer"),
    ]:
        with pytest.raises(ProblemError, match=part):
            solve(short(LOGISTIC, **bad), budget=5)


@pytest.mark.parametrize("wrong", [{"budget": "60s"}, {"budget": 0}, {"target": -1.0}])
def test_arguments_are_checked_before_any_work(wrong):
    with pytest.raises(ProblemError, match="expected a positive number"):
        solve(loads_problem(LOGISTIC, "logistic.toml"), **wrong)


def test_a_loss_that_is_not_finite_is_named_and_never_a_solution():
    text = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
bad = "dx(u) = log(-1 - u^2)"
[conditions]
start = { on = "x = 0", equation = "u = 1" }
"""
    with pytest.raises(FloatingPointError, match=r"in the equation 'bad' at x = "):
        solve(short(text, **TINY), budget=60)


def test_an_interrupt_leaves_what_there_is():
    fired = []

    class Interrupting:
        def update(self, row, budget):
            # Again if it is lost: Python ignores what is raised in some callbacks.
            if row.iteration >= 10:
                fired.append(row.iteration)
                thread = threading.main_thread().ident
                assert thread is not None
                signal.pthread_kill(thread, signal.SIGINT)

    problem = short(LOGISTIC, **TINY | {"iterations": 100_000, "redraw": 5})
    found = solve(
        problem, target=1e-12, budget=60, progress=Interrupting(), reference=False
    )
    assert fired
    assert found.result.attributes["stop"] == "it was interrupted"
    assert np.isfinite(error(found))


def test_the_history_is_complete(logistic):
    history = logistic.result.history
    assert set(history) == {"step", "time", "loss", "heldout", "error"}
    assert len({len(v) for v in history.values()}) == 1
    assert np.all(np.diff(history["time"]) >= 0)
    assert logistic.result.history_stage[0] == "levenberg_marquardt"


def test_results_without_jax(rod, tmp_path):
    path = rod.save(tmp_path / "rod.h5")
    result = read_result(path)
    assert result.report.verdict == "pass"
    assert result.variables["u"].shape == (201, 201)
    assert result.problem == rod.problem.source
