"""The truth report for people (a terminal table) and for programs (JSON)."""

import dataclasses
import math
import statistics

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pinnlab.report_diagnosis import diagnosis_parts
from pinnlab.result import ConditionCheck, ReferenceCheck, Report


COLORS = {"pass": "green", "unverified": "yellow", "fail": "red", "reference": "cyan"}
LOOSE = 1e-2
OVERFIT = 10.0


def report_json(report: Report) -> dict[str, object]:
    """The report as an object that `json.dumps` takes; NaN and infinity are None.

    **Returns:** the keys `verdict`, `reason`, `suggestion`, `target`, `strategy`,
    `rel_l2`, `fields`, `parameters`, `equations`, `conditions`, `seconds`,
    `iterations`, `network_parameters`, `peak_memory_mb` and `warnings`; with a
    classical solver beside it also `reference`, without a truth `estimates`, with
    `--debug` also `diagnosis`, for an ensemble `members`.
    """
    cost = report.cost
    found: dict[str, object] = {
        "verdict": report.verdict,
        "reason": report.reason,
        "suggestion": report.suggestion,
        "target": _finite(report.target),
        "strategy": report.strategy,
        "rel_l2": _finite(report.rel_l2),
        "fields": {
            f.field: {
                "rel_l2": _finite(f.rel_l2),
                "maximum": _finite(f.maximum),
                "against": f.against,
                "own_error": _finite(f.own),
            }
            for f in report.fields
        },
        "parameters": {},
        "equations": {
            e.name: {
                "equation": e.text,
                "heldout": _finite(e.heldout),
                "training": _finite(e.training),
                "ratio": _finite(e.ratio),
            }
            for e in report.equations
        },
        "conditions": [_condition_json(c) for c in report.conditions],
        "seconds": {
            "compile": _finite(cost.compile_seconds),
            "train": _finite(cost.train_seconds),
            "verify": _finite(cost.verify_seconds),
        },
        "iterations": cost.iterations,
        "network_parameters": cost.parameters,
        "peak_memory_mb": _finite(cost.peak_memory_mb),
        "warnings": list(report.warnings),
    }
    if report.estimates:
        found["estimates"] = {f.field: _finite(f.rel_l2) for f in report.estimates}
    if report.members:
        found["members"] = [
            {k: _finite(v) if isinstance(v, float) else v for k, v in row.items()}
            for row in map(dataclasses.asdict, report.members)
        ]
    if report.reference is not None:
        check = dataclasses.asdict(report.reference)
        found["reference"] = {
            k: _finite(v) if isinstance(v, float) else v for k, v in check.items()
        }
    if report.diagnosis is not None:
        found["diagnosis"] = dataclasses.asdict(report.diagnosis)
    return found


def render_report(report: Report, console: Console) -> None:
    """Print the report, to be read in ten seconds."""
    parts: list[Text | Table] = [_verdict(report)]
    if report.fields:
        parts.append(_fields(report))
    if report.estimates:
        parts.append(_estimates(report))
    if report.members:
        parts.append(Text(members_line(report)))
    if report.equations:
        parts.append(_equations(report))
    if report.conditions:
        parts.append(_conditions(report))
    if report.reference is not None:
        parts.append(_reference(report.reference, alone=not report.equations))
    for warning in report.warnings:
        parts.append(Text(f"warning: {warning}", style="yellow"))
    if report.diagnosis is not None:
        parts += diagnosis_parts(report.diagnosis)
    parts.append(_cost(report))
    # A blank line below each table, none between lines of text.
    spaced = [Padding(p, (0, 0, isinstance(p, Table), 1), expand=False) for p in parts]
    console.print(Group(*spaced))


def verdict_color(verdict: str) -> str:
    """The color of a verdict; `pass (estimated)` has that of `pass`."""
    return COLORS.get(verdict.split(" ")[0], "red")


def members_line(report: Report) -> str:
    """The members of an ensemble in a line: `16 seeds: error 3e-5 (median), ...`."""
    members = report.members
    errors = [m.rel_l2 for m in members]
    what = "error"
    if not all(map(math.isfinite, errors)):
        what, errors = "held-out residual", [m.heldout for m in members]
    passed = sum(m.verdict.startswith("pass") for m in members)
    return (
        f"{len(members)} seeds: {what} best {min(errors):.1e}, median "
        f"{statistics.median(errors):.1e}, worst {max(errors):.1e}; {passed} of "
        f"{len(members)} pass"
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _condition_json(check: ConditionCheck) -> dict[str, object]:
    return {
        "name": check.name,
        "on": check.place,
        "equation": check.text,
        "enforced": check.enforced,
        "points": check.points,
        "violation": _finite(check.violation),
        "relative": _finite(check.relative),
    }


def _verdict(report: Report) -> Text:
    color = verdict_color(report.verdict)
    line = Text(report.verdict.upper(), style=f"bold {color}")
    line.append(f"  {report.reason}" if report.reason else "", style="not bold default")
    if report.suggestion:
        line.append(f"\ntry: {report.suggestion}", style=f"not bold {color}")
    return line


def _fields(report: Report) -> Table:
    table = _table("field", "relative L2 error", "largest error", "against")
    for f in report.fields:
        good = f.rel_l2 <= report.target
        against = f.against if not f.own else f"{f.against} (itself {f.own:.0e})"
        table.add_row(
            Text(f.field),
            Text(f"{f.rel_l2:.2e}", style="green" if good else "red"),
            f"{f.maximum:.2e}",
            Text(against),
        )
    return table


def _estimates(report: Report) -> Table:
    table = _table("field", "estimated relative L2 error")
    for f in report.estimates:
        good = 3 * f.rel_l2 <= report.target
        number = Text(f"{f.rel_l2:.1e}", style="green" if good else "yellow")
        table.add_row(Text(f.field), number)
    return table


def _reference(check: ReferenceCheck, alone: bool) -> Text:
    """What the classical solver did; `alone` where nothing stands beside it."""
    if not check.method:
        return Text(f"no classical solution: {check.reason}", style="dim")
    kind = "reference" if check.method.startswith("file ") else "classical"
    line = Text(f"{kind}: {check.method}; own error {check.error:.0e}", style="dim")
    if math.isfinite(check.seconds_alike) and not alone:
        line.append(f"; {check.seconds_alike:.2g} s to the error reached here")
    return line


def _equations(report: Report) -> Table:
    table = _table("equation", "residual", "/ training", "", text_last=True)
    for e in report.equations:
        table.add_row(
            Text(e.name),
            _number(e.heldout, e.heldout > LOOSE),
            _number(e.ratio, e.ratio > OVERFIT, "{:.2g}"),
            Text(e.text, style="dim"),
        )
    return table


def _conditions(report: Report) -> Table:
    table = _table("condition", "violation", "points", "enforced", "", text_last=True)
    for c in report.conditions:
        table.add_row(
            Text(c.name),
            _number(c.violation, c.relative > LOOSE),
            f"{c.points}",
            Text(c.enforced),
            Text(f"{c.text}  on {c.place}", style="dim"),
        )
    return table


def _cost(report: Report) -> Text:
    cost = report.cost
    if not report.equations and cost.parameters == 0:
        text = f"{cost.train_seconds:.1f} s altogether; target {report.target:.1e}"
        return Text(text, style="dim")
    return Text(
        f"compile {cost.compile_seconds:.1f} s, train {cost.train_seconds:.1f} s, "
        f"verify {cost.verify_seconds:.1f} s; {cost.iterations} iterations, "
        f"{cost.parameters} parameters, {cost.peak_memory_mb:.0f} MB; target "
        f"{report.target:.1e}" + (f"; {report.strategy}" if report.strategy else ""),
        style="dim",
    )


def _table(*columns: str, text_last: bool = False) -> Table:
    """A table whose numbers are to the right; what is too long wraps, but no name."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    numbers = ("error", "residual", "training", "violation", "points")
    for name in columns:
        right = name.endswith(numbers)
        whole = right or (text_last and name == columns[0])
        justify = "right" if right else "left"
        table.add_column(name, justify=justify, no_wrap=whole, overflow="fold")
    return table


def _number(value: float, bad: bool, form: str = "{:.1e}") -> Text:
    return Text(form.format(value), style="red" if bad else "")
