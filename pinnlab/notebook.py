"""How problems, reports and solutions show themselves in notebooks."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module

import matplotlib

from pinnlab.equation.mathml import mathml
from pinnlab.plotting import glance
from pinnlab.plotting.style import RC, VERDICTS
from pinnlab.problem.problem import Condition, Equation, Problem
from pinnlab.record import Observation
from pinnlab.result import FieldError, Report
from pinnlab.solution import Solution


DPI = 80


def problem_html(problem: Problem) -> str:
    """Title, domain, equations and conditions, as mathematics."""
    parts = [f"<b>{escape(problem.title or problem.name)}</b>"]
    ranges = ", ".join(
        f"{a.name} in [{a.lower:.6g}, {a.upper:.6g}]"
        + (" (periodic)" if a.name in problem.periodic else "")
        for a in problem.axes
    )
    fields = ", ".join(f.name + " (complex)" * f.complex for f in problem.fields)
    parts.append(f"{escape(fields)} over {escape(ranges)}")
    if problem.shape is not None:
        parts.append(f"in {escape(' '.join(problem.shape.text.split()))}")
    if problem.parameters:
        values = (f"{n} = {v:.6g}" for n, v in problem.parameters.items())
        parts.append(escape(", ".join(values)))
    rows = [(escape(e.name), _equation(e), "") for e in problem.equations]
    rows += [row for c in problem.conditions for row in _condition_rows(c)]
    return "<br>".join(parts) + _table(("", "", "where"), rows)


def report_html(report: Report) -> str:
    """The truth report as tables."""
    color = VERDICTS.get(report.verdict.split(" ")[0], VERDICTS["fail"])
    parts = [
        f'<b style="color: {color}">{escape(report.verdict)}</b> '
        f"{escape(report.reason)}"
    ]
    if report.suggestion:
        parts.append(f"<br>try: {escape(report.suggestion)}")
    if report.fields:
        heads = ("field", "relative L2 error", "largest error", "against")
        parts.append(
            _table(
                heads,
                [
                    (escape(f.field), _size(f.rel_l2), _size(f.maximum), _against(f))
                    for f in report.fields
                ],
            )
        )
    if report.estimates:
        estimates = [(escape(f.field), _size(f.rel_l2)) for f in report.estimates]
        parts.append(_table(("field", "estimated error"), estimates))
    equations = [
        (escape(e.name), _size(e.heldout), f"{e.ratio:.2g}", escape(e.text))
        for e in report.equations
    ]
    parts.append(_table(("equation", "residual", "/ training", ""), equations))
    conditions = [
        (escape(c.name), _size(c.violation), escape(c.enforced),
         escape(f"{c.text}  on {c.place}"))
        for c in report.conditions
    ]  # fmt: skip
    parts.append(_table(("condition", "violation", "enforced", ""), conditions))
    if report.reference is not None and report.reference.method:
        classical = report.reference
        line = f"classical: {classical.method}; own error {classical.error:.0e}"
        parts.append(f"<small>{escape(line)}</small><br>")
    parts += [f"warning: {escape(w)}<br>" for w in report.warnings]
    cost = report.cost
    seconds = f"{cost.train_seconds:.1f} s of training, {cost.parameters} parameters"
    return "".join(parts) + f"<small>{escape(f'{report.strategy}; {seconds}')}</small>"


def solution_html(solution: Solution) -> str:
    """A small picture beside the report."""
    content = io.BytesIO()
    with matplotlib.rc_context(RC):
        glance(solution.result).savefig(content, format="png", dpi=DPI)
    data = base64.b64encode(content.getvalue()).decode()
    picture = f'<img src="data:image/png;base64,{data}" alt="the solution">'
    title = solution.problem.title or solution.problem.name
    fields = ", ".join(f.name for f in solution.problem.fields)
    names = ", ".join(solution.system.coordinates)
    return (
        f"<b>{escape(title)}</b>: {escape(fields)} of ({escape(names)})"
        '<div style="display: flex; flex-wrap: wrap; gap: 1.5em">'
        f"<div>{picture}</div><div>{report_html(solution.report)}</div></div>"
    )


class NotebookProgress:
    """A progress bar in a notebook, for `solve(problem, progress=...)`.

    Where no notebook runs there is nothing to show it, and it stays silent.

    !!! example
        ```python
        solution = solve(problem, progress=NotebookProgress())
        ```
    """

    def __init__(self) -> None:
        display = import_module("IPython.display")
        self._html = display.HTML
        self._shown = display.display(self._html("compiling"), display_id=True)

    def update(self, row: Observation, budget: float) -> None:
        """Show the newest numbers; seconds count training only."""
        if self._shown is not None:
            self._shown.update(self._html(progress_html(row, budget)))


def progress_html(row: Observation, budget: float) -> str:
    """A bar of the time used, and the newest numbers."""
    words = f"{row.stage}, iteration {row.iteration}: loss {row.loss:.1e}, "
    words += f"held-out {row.heldout:.1e}"
    if row.error is not None:
        words += f", error {row.error:.1e}"
    share = min(row.elapsed / budget, 1.0)
    return (
        f'<progress value="{share:.3f}" max="1"></progress> '
        f"{row.elapsed:.0f} of {budget:.0f} s &nbsp; {escape(words)}"
    )


def _equation(equation: Equation) -> str:
    if equation.function is not None:
        return f"<code>{escape(equation.text)}</code>"
    return mathml(equation.left, equation.right)


def _condition_rows(condition: Condition) -> Iterable[tuple[str, str, str]]:
    places = escape(", ".join(p.text for p in condition.on))
    for i, equation in enumerate(condition.equations):
        yield "" if i else escape(condition.name), _equation(equation), places


def _against(error: FieldError) -> str:
    return error.against + (f" (itself {error.own:.0e})" if error.own else "")


def _size(value: float) -> str:
    return f"{value:.2e}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th style='text-align: left'>{escape(h)}</th>" for h in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align: left'>{c}</td>" for c in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
