"""What notebooks show: right mathematics, tables with the numbers, a picture."""

import base64
import dataclasses
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from synthetic import make_report
from test_docs import PROBLEMS
from untrained import make_solution

from pinnlab import loads_problem, make_problem
from pinnlab.cli.gallery import gallery
from pinnlab.equation.mathml import mathml
from pinnlab.notebook import NotebookProgress, problem_html, progress_html
from pinnlab.problem.problem import Problem
from pinnlab.record import Observation
from pinnlab.result import FieldError, FieldEstimate, ReferenceCheck


def problem(equation: str) -> Problem:
    return loads_problem(
        'coordinates = { t = [0, 1], x = [0, 1] }\nfields = ["u"]\n'
        "[parameters]\nnu = 1\nomega0 = 2\n[equations]\n"
        f'e = "{equation} + 0*nu*omega0"',
        "test",
    )


def linear(node: ElementTree.Element) -> str:
    """MathML as one line of text; what is above, below or raised is in brackets."""
    if node.tag == "mspace":
        return " "
    inner = [linear(child) for child in node]
    forms = {"mfrac": "[{}]/[{}]", "msup": "{}^[{}]", "msub": "{}_[{}]",
             "msubsup": "{}_[{}]^[{}]", "msqrt": "sqrt[{}]"}  # fmt: skip
    if node.tag in forms:
        count = forms[node.tag].count("{}")
        parts = inner if len(inner) == count else ["".join(inner)]
        return forms[node.tag].format(*parts)
    return (node.text or "") + "".join(inner)


def shown(equation: str) -> str:
    e = problem(equation).equations[0]
    text = linear(ElementTree.fromstring(mathml(e.left)))
    return text.replace("\N{INVISIBLE TIMES}", " ").replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize(
    ("text", "mathematics"),
    [
        ("dt(u) = 0", "u_[t]"),
        ("dxx(dt(u)) = 0", "u_[txx]"),
        ("u*dx(u) = 0", "u u_[x]"),
        ("nu*(u + x) = 0", "\u03bd (u+x)"),
        ("(u + x)^2/(1 + x) = 0", "[(u+x)^[2]]/[1+x]"),
        ("-(u^2) = 0", "-u^[2]"),
        ("(-u)^2 = 0", "(-u)^[2]"),
        ("u - (x - t) = 0", "u-(x-t)"),
        ("u - x - t = 0", "u-x-t"),
        ("u/(x/t) = 0", "[u]/[[x]/[t]]"),
        ("(u/x)^2 = 0", "([u]/[x])^[2]"),
        ("exp(u*x)^2 = 0", "(e^[u x])^[2]"),
        ("sqrt(abs(u)) = 0", "sqrt[|u|]"),
        ("dx(nu*dx(u)) = 0", "[\u2202]/[\u2202x](\u03bd u_[x])"),
        ("omega0*u = 0", "\u03c9_[0] u"),
        ("at(u, x = 0) = 0", "u|_[x=0]"),
        ("integral(u, x = [0, t]) = 0", "\u222b_[0]^[t]u dx"),
        ("sin(u + x)*3 = 0", "sin(u+x)\u22c53"),
        ("where(x < 1, u, 2*u) = 0", "where(x<1,u,2 u)"),
    ],
)
def test_expressions_are_mathematics(text: str, mathematics: str):
    assert shown(text) == mathematics


def test_every_equation_of_the_gallery_and_the_pages_is_well_formed():
    texts = [e.path.read_text() for e in gallery()] + [b.text for b in PROBLEMS]
    for text in texts:
        found = loads_problem(text, "one")
        every = [*found.equations, *(e for c in found.conditions for e in c.equations)]
        for equation in every:
            ElementTree.fromstring(mathml(equation.left, equation.right))


class Balanced(HTMLParser):
    """Complains about tags that are not closed in turn; keeps the text."""

    def __init__(self) -> None:
        HTMLParser.__init__(self)
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data} "


def words(html: str) -> str:
    """The text of balanced HTML."""
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    return parser.words


ROD = """
title = "A rod <hot> & long"
coordinates = { t = [0, 1], x = [0, 2] }
fields = ["u"]
[equations]
heat = "dt(u) = dxx(u)"
[conditions]
initial = { on = "t = 0", equation = "u = sin(pi*x)" }
[solver]
network = { width = 4, depth = 1 }
"""


def test_a_problem_shows_its_equations_and_conditions():
    html = loads_problem(ROD, "rod")._repr_html_()
    text = words(html)
    assert "A rod <hot> & long" in text  # Escaped in the HTML, whole in the text.
    assert "x in [0, 2]" in text and "t = 0" in text
    assert html.count("<math>") == 2


def test_a_function_as_an_equation_is_shown_by_name():
    def bend(u: object, x: object) -> float:
        return 0.0

    found = make_problem(
        {"coordinates": {"x": [0, 1]}, "fields": ["u"], "equations": {"e": bend}}
    )
    assert "bend(u, point) = 0" in words(problem_html(found))


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_a_report_shows_the_verdict_and_its_evidence(verdict: str):
    text = words(make_report(verdict)._repr_html_())
    wanted = ["3.33e-06", "momentum", "3.10e-05", "penalty (a kink)", "x = 1", "kink"]
    assert all(w in text for w in [verdict, *wanted])
    assert ("raise --budget" in text) == (verdict == "fail")


def test_a_report_shows_the_classical_solution_and_estimates():
    report = dataclasses.replace(
        make_report(),
        fields=(FieldError("u", 1e-5, 1e-4, "reference", 2e-9),),
        estimates=(FieldEstimate("v", 4.5e-6),),
        reference=ReferenceCheck("Fourier <256>", "", 2e-9, 3.0, 0.1),
    )
    text = words(report._repr_html_())
    for word in ("reference (itself 2e-09)", "4.50e-06", "Fourier <256>; own error"):
        assert word in text


def test_a_solution_shows_a_small_picture():
    axes = {"t": np.linspace(0, 1, 5), "x": np.linspace(0, 2, 6)}
    html = make_solution(ROD, axes)._repr_html_()
    assert "unverified" in words(html)
    found = re.search('base64,([^"]+)"', html)
    assert found is not None
    picture = base64.b64decode(found[1])
    assert picture.startswith(b"\x89PNG") and len(picture) < 60_000


def test_progress_shows_the_time_used_and_the_numbers():
    text = progress_html(Observation("adam", 7, 15, 1e-3, 2e-4, 0.5), 60)
    assert 'value="0.250"' in text
    for word in ("adam, iteration 7", "loss 1.0e-03", "error 5.0e-01", "15 of 60 s"):
        assert word in words(text)


def test_the_bar_is_shown_once_and_updated(monkeypatch: pytest.MonkeyPatch):
    import IPython.display

    updates: list[str] = []

    class Handle:
        def update(self, html: IPython.display.HTML) -> None:
            updates.append(str(html.data))

    monkeypatch.setattr(IPython.display, "display", lambda *_, **__: Handle())
    bar = NotebookProgress()
    bar.update(Observation("ssbroyden", 3, 1.0, 1.0, 1.0, None), 10.0)
    assert len(updates) == 1 and "ssbroyden, iteration 3" in updates[0]


def test_a_progress_bar_outside_of_a_notebook_is_silent(capsys):
    bar = NotebookProgress()
    bar._shown = None  # What IPython gives where nothing can be shown.
    bar.update(Observation("adam", 1, 0.1, 1.0, 1.0, None), 1.0)
