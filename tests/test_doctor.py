"""`pinnlab doctor`: does it notice what is broken, and keep private what is private."""

import getpass
import json
import platform
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinnlab.cli import doctor
from pinnlab.cli.main import app


RUNNER = CliRunner()


def test_a_working_installation_passes_and_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/someone/dump")
    monkeypatch.setenv("JAX_TRACEBACK_FILTERING", "off")
    monkeypatch.setenv("HOSTNAME", "a-host-name")
    found = RUNNER.invoke(app, ["doctor", "--json"])
    assert found.exit_code == 0, found.stdout
    answer = json.loads(found.stdout)
    assert answer["verdict"] == "pass"
    assert answer["self_test"]["rel_l2"] < answer["self_test"]["target"]
    facts = answer["environment"]
    assert facts["python"] == platform.python_version()
    assert facts["XLA_FLAGS"] == "--xla_dump_to=(a path)"
    assert facts["JAX_TRACEBACK_FILTERING"] == "off"
    private = {platform.node(), "a-host-name", str(Path.home()), str(Path.cwd())}
    private |= {"someone", f"/{getpass.getuser()}"}
    assert not [p for p in private if p and p in found.stdout]


@pytest.mark.parametrize(
    ("tested", "words"),
    [
        (doctor.SelfTest("p", 1e-2, 1e-4, 1.0), "FAILED: p, relative L2 error 1.0e-02"),
        (doctor.SelfTest("p", None, 1e-4, 1.0, "OSError: no"), "FAILED (OSError: no)"),
        (doctor.SelfTest("p", 1e-5, 1e-4, 1.0), "passed"),
    ],
)
def test_an_error_above_the_target_is_status_1(tested, words, monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda: tested)
    found = RUNNER.invoke(app, ["doctor"])
    assert found.exit_code == (0 if words == "passed" else 1)
    assert words in found.stdout and "float64" in found.stdout


def test_a_solver_that_fails_is_reported_without_paths(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("cannot open /home/someone/.cache/x now")

    monkeypatch.setattr("pinnlab.solver.solve", broken)
    tested = doctor.self_test()
    assert not tested.passed
    assert tested.failure == "RuntimeError: cannot open (a path) now"


def test_without_the_test_nothing_is_solved(monkeypatch):
    monkeypatch.setattr(doctor, "self_test", lambda: 1 / 0)
    found = RUNNER.invoke(app, ["doctor", "--no-test", "--json"])
    assert found.exit_code == 0
    assert json.loads(found.stdout)["self_test"] is None
