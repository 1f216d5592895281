"""The documentation is true: its problems load, its tables hold, its commands run."""

import dataclasses
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pinnlab import loads_problem
from pinnlab.equation.expression import FUNCTIONS
from pinnlab.equation.scope import OPERATORS
from pinnlab.settings import NetworkSettings, Settings
from pinnlab.system.arrays import array_values
from pinnlab.system.terms import outputs
from pinnlab.verify.preflight import check


DOCS = Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"^``` \{ \.(\w+) ([^}]*)\}\n(.*?)^```$", re.M | re.S)
COMMAND = "from pinnlab.__main__ import main; main()"


@dataclass(frozen=True)
class Block:
    """A block of code in a page, `flags` as in `.run .slow`."""

    page: str
    language: str
    flags: str
    text: str

    @property
    def file(self) -> str | None:
        """The name under which the page tells to save it."""
        found = re.search(r'file="([^"]+)"', self.flags)
        return found[1] if found else None


def blocks(*, language: str = "", flag: str = "") -> list[Block]:
    """The marked blocks of all pages, in order."""
    every = [
        Block(page.stem, *match)
        for page in sorted(DOCS.glob("*.md"))
        for match in FENCE.findall(page.read_text(encoding="utf-8"))
    ]
    return [b for b in every if language in b.language and flag in b.flags]


PROBLEMS = blocks(language="toml", flag=".problem")


@pytest.mark.parametrize(
    "block", PROBLEMS, ids=[f"{b.page}-{i}" for i, b in enumerate(PROBLEMS)]
)
def test_every_problem_passes_check(block: Block):
    assert not check(loads_problem(block.text, block.page)).errors


def test_every_key_of_the_solver_table_is_shown():
    page = (DOCS / "problem-file.md").read_text(encoding="utf-8")
    for kind in (Settings, NetworkSettings):
        for field in dataclasses.fields(kind):
            shown = rf"^(\[solver\.)?{field.name}( =|\])"
            assert re.search(shown, page, re.M), field.name


# ------------------------------------------------------------ the table of operators

ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.M)


def identities() -> list[tuple[str, str]]:
    """Both columns of the table of operators."""
    page = (DOCS / "problem-file.md").read_text(encoding="utf-8")
    return ROW.findall(page.split("<!-- identities -->")[1].split("\n\n")[0])


def test_every_operator_and_function_is_in_the_table():
    text = " ".join(a for row in identities() for a in row)
    elsewhere = {"dn", "jump", "conj"}
    missing = {
        n
        for n in FUNCTIONS.keys() | OPERATORS
        if n not in elsewhere and not re.search(rf"\b{n}\(", text)
    }
    assert not missing


def test_both_columns_of_the_table_of_operators_are_equal():
    rows = identities()
    lines = [
        "coordinates = { t = [0, 1], x = [0, 1], y = [0, 1] }",
        'fields = ["u"]',
        '[equations]\ne = "dt(u) = lap(u)"\n[outputs]',
    ]
    for i, (left, right) in enumerate(rows):
        lines += [f'left{i} = "{left}"', f'right{i} = "{right}"']
    problem = loads_problem("\n".join(lines), "table")
    found = outputs(problem)
    points = np.random.default_rng(0).uniform(0.1, 0.9, (20, 3))
    values = array_values(problem, tuple(found.values()), points)
    named = dict(zip(found, values.T, strict=True))
    assert len(named) == 2 * len(rows) > 50
    for i, row in enumerate(rows):
        np.testing.assert_allclose(
            named[f"left{i}"], named[f"right{i}"], atol=1e-12, err_msg=str(row)
        )


# -------------------------------------------------------------------- what is run


def run(block: Block, folder: Path) -> str:
    """What a block of shell or Python says in the folder, `pinnlab` being on PATH."""
    command = folder / "bin" / "pinnlab"
    if not command.exists():
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{COMMAND}" "$@"\n')
        command.chmod(0o755)
    path = f"{command.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": path, "PYTHONPATH": str(DOCS.parent), "HOME": str(folder)}
    environment["MPLBACKEND"] = "Agg"
    program = [sys.executable, "-c", block.text]
    if block.language == "bash":
        program = ["bash", "-euc", block.text]
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


TOKEN = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?|[^\s\d]+")
ROUNDING = 1e-9


def tells(said: str, line: str) -> bool:
    """Whether a line is in an output: its words, and its numbers within ten times.

    Any numbers of seconds and megabytes are alike, and any sizes of rounding errors.
    How long lines are wrapped does not matter.
    """
    wanted, found = TOKEN.findall(line), TOKEN.findall(said)

    def alike(k: int, at: int) -> bool:
        a, b = wanted[k], found[at + k]
        if not (a[0].isdigit() and b[0].isdigit()):
            return a == b
        unit = wanted[k + 1][:2] if k + 1 < len(wanted) else ""
        return unit in ("s", "s,", "s;", "MB") or same_size(float(a), float(b))

    places = range(len(found) - len(wanted) + 1)
    return any(all(alike(k, at) for k in range(len(wanted))) for at in places)


def same_size(a: float, b: float) -> bool:
    return a == b or max(a, b) < ROUNDING or 0.1 * b <= a <= 10 * b


def test_words_count_and_sizes_of_numbers():
    said = "PASS in 2.5 s\n u  1.0e-08  against the\n reference"
    assert tells(said, "u 2.4e-8 against the reference") and tells(said, "in 99 s")
    assert not tells(said, "u 2.4e-7 against the reference")
    assert not tells(said, "v 1.0e-8 against") and not tells(said, "FAIL")


def prepared(page: str, folder: Path) -> list[Block]:
    """The blocks of a page that run; the files that it says to save are there."""
    for block in PROBLEMS:
        if block.page == page and block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    (folder / "tests").symlink_to(DOCS.parent / "tests")
    return [b for b in blocks() if b.page == page and RUN.search(b.flags)]


RUN = re.compile(r"\.(run|shown)\b")


def pages(*, slow: bool) -> list[str]:
    found = blocks(flag=".run")
    return sorted({b.page for b in found if slow or ".slow" not in b.flags})


@pytest.mark.parametrize("page", pages(slow=False))
def test_cheap_commands_work(page: str, tmp_path: Path):
    for block in prepared(page, tmp_path):
        if ".run" in block.flags and ".slow" not in block.flags:
            run(block, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(slow=True))
def test_every_command_works_in_turn(page: str, tmp_path: Path):
    said, commands = "", prepared(page, tmp_path)
    if page != "tutorial":  # The other pages use the tutorial's result.
        first = "pinnlab new heat && pinnlab solve heat.toml --no-plot"
        run(Block(page, "bash", "", first), tmp_path)
    for block in commands:
        if ".run" in block.flags:
            said = run(block, tmp_path)
            continue
        for line in filter(None, map(str.strip, block.text.splitlines())):
            assert tells(said, line), f"{line}\nis not what was said:\n{said}"


# ------------------------------------------------------------------ what was measured


@pytest.mark.parametrize("name", ["scorecard", "effectivity", "peers"])
def test_measured_tables_are_generated_files(name: str):
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert f'--8<-- "{name}.md"' in page
    assert "\n|" not in page  # No table of its own.
    assert "| --- |" in (DOCS / "data" / f"{name}.md").read_text(encoding="utf-8")
