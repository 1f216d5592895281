"""The report of a sweep: one HTML page that needs nothing else."""

import base64
import html
import io
import json
import math
import string
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files as package_files
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import pinnlab
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import read_result
from pinnlab.plotting.figure import figure
from pinnlab.plotting.style import RC
from pinnlab.report import report_json
from pinnlab.sweep.columns import short_names
from pinnlab.sweep.dataset import Dataset, read_dataset
from pinnlab.sweep.folder import files
from pinnlab.sweep.pictures import panel_figures
from pinnlab.sweep.plan import Plan
from pinnlab.sweep.table import Row
from pinnlab.sweep.values import Value, is_number, label


COLUMNS = {
    "rel_l2": "error",
    "estimate": "estimated error",
    "residual": "residual",
    "train_seconds": "seconds",
    "iterations": "iterations",
}
"""Columns of the table and what the page calls them."""
DPI, SMALL_DPI = 110, 70
PANEL = "errors over settings of the sweep, or against the time"


def report_page(folder: Path, plan: Plan, rows: Sequence[Row], pictures: int) -> str:
    """The page: a sortable table with each run's truth report and picture.

    **Arguments:**

    - `rows`: of `collect`, which has also left `sweep.h5`.
    - `pictures`: the most runs that have one, those with the largest errors first.
    """
    worst = sorted(rows, key=lambda r: -r.rel_l2 if r.rel_l2 == r.rel_l2 else math.inf)
    drawn = {r.id for r in worst[:pictures]}
    names = short_names(plan.axes)
    known = [c for c in COLUMNS if any(math.isfinite(getattr(r, c)) for r in rows)]
    table = {
        "settings": list(names.values()),
        "found": {name: COLUMNS[name] for name in known},
        "runs": [_run(folder, row, names, row.id in drawn) for row in rows],
    }
    # In a script element only "<" could end it.
    data = json.dumps(table, allow_nan=False).replace("<", "\\u003c")
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return _template("page.html").substitute(
        title=html.escape(plan.title),
        summary=html.escape(_summary(rows)),
        made=html.escape(f"pinnlab {pinnlab.__version__}, {when}"),
        panels=_panels(read_dataset(folder / "sweep.h5")),
        style=_text("page.css"),
        script=_text("page.js"),
        data=data,
    )


def _run(folder: Path, row: Row, names: dict[str, str], drawn: bool) -> dict:
    found: dict[str, object] = {
        "id": row.id,
        "state": row.state,
        "verdict": row.verdict,
        "error": row.error,
        "settings": [_plain(row.settings[k]) for k in names],
        "found": {name: _finite(getattr(row, name)) for name in COLUMNS},
    }
    if row.verdict:
        try:
            result = read_result(files(folder, row.id).result)
        except ProblemError as error:
            return found | {"error": str(error)}
        found["report"] = report_json(result.report)
        if drawn:
            found["picture"] = _inline(figure(result), SMALL_DPI)
    return found


def _panels(dataset: Dataset) -> str:
    """The pictures of the sweep as elements, so that a phone has one in a row."""
    found = (_inline(f, DPI) for f in panel_figures(dataset))
    return "\n".join(f'<img src="{f}" alt="{html.escape(PANEL)}">' for f in found)


def _summary(rows: Sequence[Row]) -> str:
    counts = Counter(r.verdict or r.state for r in rows)
    parts = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    words = f"{len(rows)} runs: {parts}"
    hidden = sum(bool(r.verdict) and not _shown(r) for r in rows)
    if 0 < hidden < len(rows):
        words += f"; {hidden} of them have no known error and are in no picture"
    return words


def _shown(row: Row) -> bool:
    return math.isfinite(row.rel_l2) or math.isfinite(row.estimate)


def _inline(picture: Figure, dpi: int) -> str:
    content = io.BytesIO()
    with matplotlib.rc_context(RC):
        picture.savefig(content, format="png", dpi=dpi)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def _plain(value: Value) -> str | float:
    """Numbers stay, so that a column of them sorts."""
    return value if is_number(value) else label(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _template(name: str) -> string.Template:
    return string.Template(_text(name))


def _text(name: str) -> str:
    return package_files("pinnlab.sweep").joinpath(name).read_text(encoding="utf-8")
