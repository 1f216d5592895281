"""A sweep on the terminal: a live line or table, and where it stands."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pinnlab.cli.progress import clock
from pinnlab.cli.terminal import console


if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

    from pinnlab.sweep.drive import Tally
    from pinnlab.sweep.plan import Run
    from pinnlab.sweep.table import Row

PERIOD = 10.0
MOST_ROWS = 40
MOST_TRAINING = 12


class SweepProgress:
    """Shows how far the runs are and how long the rest may take.

    On a terminal there is a line for each run that trains.
    """

    def __init__(self, folder: Path):
        self._console = console(error=True)
        self._folder = folder
        self._began = self._last = time.monotonic()
        self._first: int | None = None
        self._shown = ""
        self._live: Live | None = None

    def __enter__(self) -> "SweepProgress":
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, tally: "Tally", submitted: Collection[tuple["Run", ...]]) -> None:
        """Show the newest numbers of runs.

        The runs of a batch end together: for the time left they count as one.
        """
        now = time.monotonic()
        runs = [run for batch in submitted for run in batch]
        left = tally.left - len(runs) + len(submitted)
        if self._first is None:
            self._first = left
        newly = self._first - left
        status = f"{tally.done} done, {tally.failed} failed, "
        status += f"{tally.pruned} pruned, " if tally.pruned else ""
        status += f"{tally.left} to go"
        rest = f", best {tally.best:.1e}" if tally.best < math.inf else ""
        if newly > 0:
            rest += f", {clock((now - self._began) / newly * left)} left"
        if self._live is not None:
            shown = live_table(self._folder, status + rest, runs)
            self._live.update(shown, refresh=True)
        elif status != self._shown and (now - self._last >= PERIOD or not tally.left):
            self._last, self._shown = now, status
            self._console.print(status + rest, soft_wrap=True, markup=False)


def live_table(folder: Path, text: str, submitted: Collection["Run"]) -> "Group":
    """The numbers, and the runs that train: how far they are, the held-out residual."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from pinnlab.sweep.going import training

    found = training(folder, [r.id for r in submitted])
    table = Table.grid(padding=(0, 2))
    for run in [r for r in submitted if r.id in found][:MOST_TRAINING]:
        now = found[run.id]
        settings = ", ".join(
            f"{k.rpartition('.')[2]} {_short(v)}" for k, v in run.settings.items()
        )
        table.add_row(
            Text(run.id[:8], style="dim"),
            Text(settings),
            ProgressBar(total=1.0, completed=now.share, width=12),
            Text(f"{clock(max(now.budget - now.elapsed, 0.0))} left"),
            Text(f"{now.stage}  held-out {now.heldout:.1e}", style="dim"),
        )
    return Group(Text(f"{len(found)} training, {text}"), table)


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
            *(Text(_short(v)) for v in row.settings.values()),
            "" if math.isnan(row.rel_l2) else f"{row.rel_l2:.1e}",
            "" if math.isnan(row.train_seconds) else f"{row.train_seconds:.1f}",
            Text(word, style=color).append(reason, style="default"),
        )
    return table


def _short(value: object) -> str:
    from pinnlab.sweep.values import label

    return f"{value:.6g}" if isinstance(value, float) else label(value)


def _nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
