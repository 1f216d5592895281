"""A live progress bar on a terminal, a line every ten seconds in a log."""

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING

from pinnlab.cli.terminal import console


if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from pinnlab.record import Observation

PERIOD = 10.0


class TrainingProgress:
    """Shows how training goes on, on standard error.

    !!! example
        ```python
        with TrainingProgress() as progress:
            solve(problem, progress=progress)
        ```
    """

    def __init__(self, *, period: float = PERIOD):
        self._console = console(error=True)
        self._period = period
        self._bar: Bar | None = None
        self._last = -math.inf
        self._stage = ""

    def __enter__(self) -> "TrainingProgress":
        if self._console.is_terminal:
            self._bar = _bar(self._console)
            self._bar.add_task("compiling", total=None, status="", left="")
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

    def update(self, row: "Observation", budget: float) -> None:
        """Show the newest numbers; seconds count training only."""
        status = f"iteration {row.iteration}  loss {row.loss:.1e}"
        status += f"  held-out {row.heldout:.1e}"
        if row.error is not None and math.isfinite(row.error):
            status += f"  error {row.error:.1e}"
        left = max(budget - row.elapsed, 0.0)
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0],
                description=row.stage,
                total=budget,
                completed=min(row.elapsed, budget),
                status=status,
                left=f"{clock(left)} left",
            )
        elif row.stage != self._stage or time.monotonic() - self._last >= self._period:
            self._last, self._stage = time.monotonic(), row.stage
            line = f"{row.elapsed:7.1f} s  {row.stage:<12} {status}"
            self._console.print(line, soft_wrap=True, markup=False)


def clock(seconds: float) -> str:
    """Seconds as people read them: `42 s`, `3:05`, `2:00:00`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(terminal: "Console") -> "Bar":
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("[bold]{task.description}", markup=True),
        BarColumn(bar_width=18),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[status]}", markup=False, style="dim"),
        console=terminal,
        transient=True,
    )
