"""The truth report in the terminal keeps names and numbers whole at every width."""

import dataclasses
import io

import pytest
from rich.console import Console
from synthetic import make_report

from pinnlab.report import render_report
from pinnlab.result import EquationCheck


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_long_equation_hides_no_name_and_no_number(width: int):
    text = "dt(u) + 2*u + 5*integral(at(u, t = s), s = [0, t]) = 1 + sin(pi*t)*exp(-t)"
    long = EquationCheck("memory", text, 3.1e-5, 2.9e-5)
    report = dataclasses.replace(make_report(), equations=(long,))
    written = io.StringIO()
    render_report(report, Console(file=written, width=width, color_system=None))
    shown = written.getvalue()
    for word in ("memory", "3.1e-05", "1.1", "initial", "1.0e-07", "2048"):
        assert word in shown
    # All of the text is there, however it is wrapped.
    squeezed = "".join(shown.split())
    assert all("".join(word.split()) in squeezed for word in ("integral", "exp(-t)"))
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
