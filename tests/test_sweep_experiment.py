"""Experiment files: axes, exclusions, the runs they mean, and errors that help."""

import tomllib
from pathlib import Path

import pytest

from pinnlab.cli.gallery import find_problem
from pinnlab.errors import ProblemError
from pinnlab.sweep.checks import check_plan, estimate
from pinnlab.sweep.experiment import load_experiment
from pinnlab.sweep.folder import load_plan, save_plan
from pinnlab.sweep.plan import Plan, described, make_plan


PROBLEM = """
title = "Logistic growth"
coordinates = { t = [0, 1] }
fields = ["u"]

[parameters]
r = 2

[equations]
growth = "dt(u) = r*u*(1 - u)"

[conditions]
start = { on = "t = 0", equation = "u = 0.1" }

[exact]
u = "0.1*exp(r*t)/(1 + 0.1*(exp(r*t) - 1))"

[solver]
strategy = "separable"
"""


def no_gallery(name: str) -> Path:
    raise ProblemError(f"{name}: no such problem")


def planned(folder: Path, text: str) -> Plan:
    (folder / "logistic.toml").write_text(PROBLEM)
    path = folder / "growth.toml"
    path.write_text('problem = "logistic.toml"\n' + text)
    return make_plan(load_experiment(path), no_gallery)


def values(plan: Plan, key: str) -> list:
    return [r.settings[key] for r in plan.runs]


def test_runs_are_the_product_of_the_axes_the_last_fastest(tmp_path: Path):
    plan = planned(tmp_path, '[axes]\n"parameters.r" = [1, 2]\nseed = [3, 4, 5]')
    assert values(plan, "parameters.r") == [1, 1, 1, 2, 2, 2]
    assert [r.seed for r in plan.runs] == [3, 4, 5, 3, 4, 5]
    assert "r = 2" in plan.runs[3].problem and "r = 1" in plan.runs[0].problem
    assert plan.runs[0].target == 1e-3 and plan.runs[0].budget == 60.0


def test_a_dotted_key_needs_no_quotes(tmp_path: Path):
    plan = planned(
        tmp_path, "[axes]\nparameters.r = [1, 2]\nsolver.network.width = [4]"
    )
    assert values(plan, "solver.network.width") == [4, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ log = [1e-3, 1e-1], n = 3 }", [1e-3, 1e-2, 1e-1]),
        ("{ lin = [0, 1], n = 5 }", [0, 0.25, 0.5, 0.75, 1]),
        ("{ lin = [10, 30], n = 3 }", [10, 20, 30]),
        ("{ log = [10, 160], n = 5 }", [10, 20, 40, 80, 160]),
        ("{ lin = [3, 1], n = 3 }", [3, 2, 1]),
    ],
)
def test_ranges_have_both_ends_and_even_steps(
    text: str, expected: list, tmp_path: Path
):
    found = values(planned(tmp_path, f"[axes]\nparameters.r = {text}"), "parameters.r")
    assert found == expected
    assert [type(f) for f in found[1:-1]] == [type(e) for e in expected[1:-1]]


def test_what_all_runs_share_may_be_a_list(tmp_path: Path):
    solver = 'network = { kind = "fbpinn", windows = [2] }\nstrategy = "nonlinear"'
    (run,) = planned(tmp_path, f"[axes]\nseed = [0]\n[solver]\n{solver}").runs
    table = tomllib.loads(run.problem)["solver"]
    assert table["network"]["windows"] == [2]


def test_a_zipped_group_steps_together(tmp_path: Path):
    text = """
[axes]
seed = [0, 1]
[[zip]]
"solver.network.width" = [10, 20]
solver.network.depth = [1, 2]
"""
    plan = planned(tmp_path, text)
    pairs = [
        (r.settings["solver.network.width"], r.settings["solver.network.depth"])
        for r in plan.runs
    ]
    assert pairs == [(10, 1), (20, 2)] * 2


NESTED = """
[axes]
solver.network = [
    { width = 8 },
    { kind = "fbpinn", windows = [2] },
    { kind = "fbpinn", windows = [4] },
]
coordinates.t = [[0, 1], [0, 2]]
"""


def test_values_may_be_lists_and_tables(tmp_path: Path):
    plan = planned(tmp_path, NESTED)
    assert len({r.id for r in plan.runs}) == 6
    last = tomllib.loads(plan.runs[-1].problem)
    assert last["solver"]["network"] == {"kind": "fbpinn", "windows": [4]}
    assert last["coordinates"]["t"] == [0, 2]
    words = (
        'solver.network = { kind = "fbpinn", windows = [4] }, coordinates.t = [0, 2]'
    )
    assert described(plan.runs[-1].settings) == words
    save_plan(tmp_path / "out", plan)
    assert load_plan(tmp_path / "out") == plan
    few = planned(tmp_path, NESTED + "[[exclude]]\ncoordinates.t = [[0, 2]]")
    assert [r.id for r in few.runs] == [r.id for r in plan.runs[::2]]
    drawn = planned(tmp_path, f"design = 'sobol'\nruns = 6\n{NESTED}")
    assert {r.id for r in drawn.runs} == {r.id for r in plan.runs}


def test_what_a_problem_file_has_at_its_top_may_vary(tmp_path: Path):
    plan = planned(tmp_path, '[axes]\nequations = [{ growth = "dt(u) = r*u" }]')
    assert tomllib.loads(plan.runs[0].problem)["equations"]["growth"] == "dt(u) = r*u"


def test_exclusions_leave_out_what_meets_all_their_tests(tmp_path: Path):
    text = """
[axes]
parameters.r = [1, 2, 3]
seed = [0, 1]
[[exclude]]
"parameters.r" = "> 1"
seed = 1
[[exclude]]
parameters.r = [3]
"""
    plan = planned(tmp_path, text)
    found = [(r.settings["parameters.r"], r.seed) for r in plan.runs]
    assert found == [(1, 0), (1, 1), (2, 0)]


def test_a_run_is_known_by_its_content(tmp_path: Path):
    plan = planned(tmp_path, "[axes]\nparameters.r = [1, 2]\n")
    same = planned(tmp_path, 'title = "other"\n[axes]\nparameters.r = [2, 3]\n')
    assert plan.runs[1].id == same.runs[0].id
    assert plan.runs[0].id != plan.runs[1].id
    for change in (
        "budget = 5",
        "reference = false",
        "target = 1e-5",
        "seed = 1",
        "solver.points = 9",
    ):
        other = planned(tmp_path, f"{change}\n[axes]\nparameters.r = [1, 2]\n")
        assert {r.id for r in other.runs}.isdisjoint(r.id for r in plan.runs)


def test_a_plan_survives_its_file(tmp_path: Path):
    text = (
        "[axes]\nparameters.r = [1, 2.5]\n[resources]\ncpus = 2\nmemory = '500MB'\n"
        "time = '2m'\n[slurm]\nsetup = ['module load x']\nwalltime = '2h'\n"
    )
    plan = planned(tmp_path, text)
    assert plan.resources.memory == 500_000_000 and plan.resources.time == 120
    assert plan.jobs["slurm"].walltime == 7200
    save_plan(tmp_path / "out", plan)
    assert load_plan(tmp_path / "out") == plan


DRAWN = """
design = "{kind}"
runs = {runs}
[axes]
parameters.r = {{ log = [0.1, 10] }}
solver.network.width = {{ lin = [4, 7] }}
solver.network.activation = ["tanh", "sin"]
"""


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_a_design_draws_from_ranges_and_lists(kind: str, tmp_path: Path):
    plan = planned(tmp_path, DRAWN.format(kind=kind, runs=40) + "seed = [0, 1]")
    assert len(plan.runs) == 80 and [r.seed for r in plan.runs[:3]] == [0, 1, 0]
    rates = values(plan, "parameters.r")
    assert all(0.1 <= r <= 10 for r in rates) and len(set(rates)) == 40
    # Half of them on each side of the middle of a logarithmic range.
    assert 24 <= sum(r < 1 for r in rates) <= 56
    assert set(values(plan, "solver.network.width")) == {4, 5, 6, 7}
    assert set(values(plan, "solver.network.activation")) == {"tanh", "sin"}


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_more_runs_of_a_design_keep_those_that_are_there(kind: str, tmp_path: Path):
    few, many, other = (
        [r.id for r in planned(tmp_path, DRAWN.format(kind=kind, runs=n)).runs]
        for n in (5, 12, "5\ndesign_seed = 1")
    )
    assert len(few) == 5 and many[:5] == few
    assert set(other).isdisjoint(few)


def test_what_is_excluded_is_not_drawn(tmp_path: Path):
    text = DRAWN.format(kind="sobol", runs=16) + '[[exclude]]\nparameters.r = "> 1"'
    rates = values(planned(tmp_path, text), "parameters.r")
    assert len(rates) == 16 and max(rates) <= 1


def test_the_ends_of_integers_are_drawn_as_often_as_the_others(tmp_path: Path):
    text = (
        'design = "sobol"\nruns = 256\n[axes]\nparameters.r = { lin = [0, 1.0] }\n'
        "solver.network.width = { lin = [4, 7] }"
    )
    widths = values(planned(tmp_path, text), "solver.network.width")
    assert [widths.count(w) for w in (4, 5, 6, 7)] == pytest.approx([64] * 4, abs=2)


AXES = "[axes]\nparameters.r = [1, 2]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["axes", "missing"]),
        ("sed = 1\n" + AXES, ["'sed'", "did you mean 'seed'"]),
        ("[axes]\nparameters.q = [1]", ["parameters.q = 1", "no 'parameters.q'"]),
        ("[axes]\nparameters.r = []", ["axes.parameters.r", "a list with values"]),
        ("[axes]\nparameters.r = [1, 1]", ["there twice"]),
        ("[axes]\nparameters.r = [2026-11-30]", ["numbers, texts", "2026, 11, 30"]),
        ("[axes]\nparameters.r = [[inf]]", ["axes.parameters.r", "numbers", "inf"]),
        ("[axes]\ncoordinates.t = [[0, 1], [0, 1]]", ["'[0, 1]' is there twice"]),
        ("[axes]\ncoordinates.t = [[0, 'a']]", ['coordinates.t = [0, "a"]']),
        ("[axes]\nsolver.network = [{ width = 4 }]\n[solver]\nnetwork.depth = 2",
         ["axes.solver.network", "would replace 'solver.network.depth'"]),
        ("[axes]\ncoordinates.t = [[0, 1]]\n[[exclude]]\ncoordinates.t = [0, 1]",
         ["exclude[0].coordinates.t", "such as [[0, 1]], found [0, 1]"]),
        ("[axes]\nparameters.r = { log = [0, 1], n = 3 }", ["above 0"]),
        ("[axes]\nparameters.r = { log = [1, 2] }", ["n is missing"]),
        ("[axes]\nparameters.r = { lin = [1, 2], n = 1 }", ["n must be 2"]),
        ("[axes]\nsede = [1]", ["'sede'", "did you mean 'seed'"]),
        ("[axes]\nseed = [-1]", ["axes.seed", "an integer from 0"]),
        ("budget = 'soon'\n" + AXES, ["budget", "60s", "'soon'"]),
        ("reference = 1\n" + AXES, ["reference", "true or false"]),
        ("seed = 1\n[axes]\nseed = [1]", ["an axis and fixed"]),
        (AXES + "[[zip]]\nseed = [1, 2]\ntarget = [0.1]", ["seed: 2, target: 1"]),
        (AXES + "[[exclude]]\nnu = 1", ["exclude[0]", "'nu' is no axis"]),
        (AXES + "[[exclude]]\n'parameters.r' = '< 9'", ["leave no combination"]),
        (AXES + "[resources]\ncpus = 0", ["resources.cpus", "from 1"]),
        (AXES + "[resources]\nmemory = '2 loads'", ["resources.memory", "2GB"]),
        (AXES + "[slurm]\nqueue = 'a'", ["'queue'", "partition"]),
        (AXES + "[pbs]\npartition = 'a'", ["pbs", "'partition'", "queue"]),
        (AXES + "[[zip]]\n", ["two or more lists"]),
        (AXES + "[zip]\nseed = [1]", ["zip", "a list of tables ([[zip]])"]),
        (AXES + "[[exclude]]\n", ["exclude[0]", "tests of axes"]),
        ("[axes]\nseed = [1, 2", ["not valid TOML"]),
        ("design = 'sobl'\n" + AXES, ["design", "'random'", "mean 'sobol'"]),
        ("design = 'sobol'\n" + AXES, ["runs: missing", "runs = 64"]),
        ("runs = 4\n" + AXES, ["runs", "only a design of"]),
        ("design = 'random'\nruns = 0\n" + AXES, ["runs", "from 1"]),
        ("design = 'random'\nruns = 3\n" + AXES, ["2 were found"]),
        ("design = 'random'\nruns = 3\n[axes]\nseed = [1]", ["beside the seeds"]),
        ("design = 'random'\nruns = 3\n[axes]\nproblem = { lin = [1, 2] }",
         ["axes.problem", "a text"]),
        ("[axes]\nparameters.r = { lin = [1, 2] }", ["n is missing", "random"]),
        (AXES + "[search]\n", ["search.trials: missing"]),
        ("batch = true\n" + AXES + "[search]\ntrials = 3",
         ["batch: the seeds", "search.seeds = 3"]),
        (AXES + "seed = [0]\n[search]\ntrials = 3\n[[exclude]]\nseed = 0",
         ["exclude[0]", "'seed' is no axis (axes: parameters.r)"]),
        (AXES + "[search]\ntrials = 3\nobjective = 'loss'", ["'error*seconds'"]),
        ("[axes]\nseed = [0]\n[search]\ntrials = 3", ["beside the seeds"]),
        (AXES + "seed = { lin = [0, 9] }\n[search]\ntrials = 3",
         ["axes.seed", "a list of seeds"]),
        (AXES + "seed = [0]\n[search]\ntrials = 3\nseeds = 2",
         ["search.seeds", "in [axes] already"]),
        (AXES + "[search]\ntrials = 3\nseeds = 0", ["search.seeds", "from 1"]),
        ("design = 'random'\nruns = 3\n" + AXES + "[search]\ntrials = 3",
         ["chooses its runs itself"]),
        ("[axes]\nseed = { lin = [0, 99999], n = 100000 }\n"
         "parameters.r = [1, 2]", ["200000 combinations"]),
    ],
)  # fmt: skip
def test_mistakes_name_the_place_and_what_would_be_accepted(
    text: str, words: list[str], tmp_path: Path
):
    with pytest.raises(ProblemError) as caught:
        planned(tmp_path, text)
    for word in words:
        assert word in str(caught.value)


def test_preflight_names_the_combination_before_anything_starts(tmp_path: Path):
    plan = planned(tmp_path, '[axes]\n"solver.sampler" = ["sobol", "dice"]')
    with pytest.raises(ProblemError, match=r"solver\.sampler = dice") as caught:
        check_plan(plan, tmp_path / "out")
    assert "sobol" in str(caught.value)


def test_the_estimate_counts_what_is_missing(tmp_path: Path):
    plan = planned(tmp_path, f"budget = 85\n{AXES}seed = [0, 1]")
    folder = tmp_path / "out"
    save_plan(folder, plan)
    found = estimate(plan, folder, workers=2)
    assert (found.runs, found.done, found.seconds) == (4, 0, 285.0)
    (folder / "runs" / f"{plan.runs[0].id}.h5").touch()
    found = estimate(plan, folder, workers=2)
    assert (found.done, found.seconds) == (1, 213.75)


READY = sorted((Path(__file__).parents[1] / "experiments").glob("*.toml"))


@pytest.mark.parametrize("path", READY, ids=lambda p: p.stem)
def test_the_ready_experiments_make_problems(path: Path):
    plan = make_plan(load_experiment(path), find_problem)
    assert (
        len(plan.runs)
        == {
            "burgers_viscosity": 21,
            "width_depth": 54,
            "optimizers": 36,
            "convection_beta": 54,
            "cavity_reynolds": 18,
        }[path.stem]
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", READY, ids=lambda p: p.stem)
def test_preflight_passes_the_ready_experiments(path: Path, tmp_path: Path):
    check_plan(make_plan(load_experiment(path), find_problem), tmp_path)
