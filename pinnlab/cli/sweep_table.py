"""A sweep on the terminal: a live line or table, and where it stands."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pinnlab.cli.progress import clock
from pinnlab.cli.terminal import console


if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from pinnlab.sweep.table import Row

PERIOD = 10.0
MOST_ROWS = 40


class SweepProgress:
    """Shows how many runs are done and how long the rest may take."""

    def __init__(self, runs: int):
        self._console = console(error=True)
        self._runs = runs
        self._began = self._last = time.monotonic()
        self._first: int | None = None
        self._shown = ""
        self._bar: Bar | None = None

    def __enter__(self) -> "SweepProgress":
        if self._console.is_terminal:
            self._bar = _bar(self._console)
            self._bar.add_task("", total=self._runs, status="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, left: int, done: int, failed: int, best: float) -> None:
        """Show the newest numbers of runs."""
        now = time.monotonic()
        if self._first is None:
            self._first = done + failed
        ended = done + failed - self._first
        rest = f", {clock((now - self._began) / ended * left)} left" if ended else ""
        status = f"{done} done, {failed} failed, {left} to go"
        if best < math.inf:
            rest = f", best {best:.1e}{rest}"
        if self._bar is not None:
            text = status + rest
            self._bar.update(
                self._bar.task_ids[0], completed=done + failed, status=text
            )
        elif status != self._shown and (now - self._last >= PERIOD or not left):
            self._last, self._shown = now, status
            self._console.print(status + rest, soft_wrap=True, markup=False)


def status_json(folder: Path, rows: Sequence["Row"]) -> dict[str, object]:
    """The state of a sweep as an object that `json.dumps` takes."""
    counts = Counter(r.state for r in rows)
    return {
        "folder": str(folder),
        "runs": len(rows),
        "states": dict(counts),
        "passed": sum(r.passed for r in rows),
        "rows": [
            {k: None if _nan(v) else v for k, v in vars(row).items()} for row in rows
        ],
    }


def render_status(folder: Path, rows: Sequence["Row"], terminal: "Console") -> None:
    """Print where a sweep stands: counts, the runs, the errors of failed ones."""
    from rich.text import Text

    counts = Counter(r.state for r in rows)
    parts = ", ".join(f"{n} {name}" for name, n in counts.items())
    passed = sum(r.passed for r in rows)
    terminal.print(Text(f"{folder}: {parts}; {passed} of {len(rows)} passed"))
    errors = sorted(r.rel_l2 for r in rows if not math.isnan(r.rel_l2))
    if errors:
        middle = statistics.median(errors)
        line = (
            f"error: best {errors[0]:.1e}, median {middle:.1e}, worst {errors[-1]:.1e}"
        )
        terminal.print(Text(line))
    terminal.print(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        terminal.print(Text(f"... and {len(rows) - MOST_ROWS} more in sweep.csv"))


def _table(rows: Sequence["Row"]):
    from rich.table import Table
    from rich.text import Text

    from pinnlab.report import verdict_color

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    for key in rows[0].settings if rows else ():
        table.add_column(key.rpartition(".")[2], justify="right")
    for name in ("error", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in rows:
        word = row.verdict or row.state
        reason = f"  {row.error.splitlines()[0]}" if row.error else ""
        color = verdict_color(word) if row.verdict or row.error else "default"
        table.add_row(
            Text(row.id[:8], style="dim"),
            *(Text(str(v)) for v in row.settings.values()),
            "" if math.isnan(row.rel_l2) else f"{row.rel_l2:.1e}",
            "" if math.isnan(row.train_seconds) else f"{row.train_seconds:.1f}",
            Text(word, style=color).append(reason, style="default"),
        )
    return table


def _nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _bar(terminal: "Console") -> "Bar":
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        BarColumn(bar_width=30),
        TextColumn("{task.fields[status]}", markup=False),
        console=terminal,
        transient=True,
    )
