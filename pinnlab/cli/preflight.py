"""What `check` prints."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text


if TYPE_CHECKING:
    from pinnlab.verify.preflight import Preflight


def render_preflight(found: "Preflight", title: str, console: Console) -> None:
    """Print everything that preflight knows about a problem."""
    console.print(Text(title or "problem", style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, text in found.equations:
        table.add_row(Text(name, style="cyan"), Text(text))
    console.print(table)
    if found.conditions:
        console.print(_conditions(found))
    render_findings(found, console)
    console.print(
        Text(
            f"{found.strategy}; a network would have about {found.parameters} "
            f"parameters and need {found.memory_mb:.0f} MB",
            style="dim",
        )
    )
    if not found.errors:
        console.print(Text("ready to solve", style="green"))


def render_findings(
    found: "Preflight", console: Console, *, notes: bool = True
) -> None:
    """Print errors, warnings and notes."""
    kinds = [("error", found.errors, "red"), ("warning", found.warnings, "yellow")]
    if notes:
        kinds.append(("note", found.notes, "blue"))
    for kind, texts, color in kinds:
        for text in texts:
            console.print(
                Text(f"{kind}: ", style=f"bold {color}").append(
                    text, style="not bold default"
                )
            )


def _conditions(found: "Preflight") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("condition", "on", "equation"):
        table.add_column(name)
    table.add_column("points", justify="right")
    table.add_column("by a network")
    for c in found.conditions:
        table.add_row(
            Text(c.name, style="cyan"),
            Text(c.place),
            Text(c.text),
            str(c.points),
            Text(c.enforced),
        )
    return table
