"""The diagnosis of a run for people: a few lines and a small table."""

from rich.table import Table
from rich.text import Text

from pinnlab.result import Diagnosis


def diagnosis_parts(found: Diagnosis) -> list[Text | Table]:
    """What `--debug` adds to the report."""
    parts: list[Text | Table] = [Text("diagnosis", style="bold")]
    for failure in found.failures:
        parts.append(Text(f"not finite: {failure}", style="red"))
    for check in found.checks:
        word, color = ("ok", "green") if check.passed else ("NO", "red")
        line = Text(f"{word}  ", style=color)
        detail = f" ({check.detail})" if check.detail else ""
        parts.append(line.append(f"{check.name}{detail}", style="default"))
    if found.step_memory_mb:
        parts.append(Text(f"a step needs {found.step_memory_mb:.1f} MB"))
    if len(found.gradients) > 1:
        rows = [(g.term, f"{g.share:.0%}", f"{g.cosine:+.2f}") for g in found.gradients]
        parts.append(_table(("gradient of", "share", "cosine with the rest"), rows))
    if found.spectra:
        rows = [
            (f"{s.equation} along {s.coordinate}", *_shares(s.low, s.middle, s.high))
            for s in found.spectra
        ]
        parts.append(_table(("residual of", "low", "middle", "high"), rows))
    if found.suggestion:
        parts.append(Text(f"try: {found.suggestion}", style="yellow"))
    return parts


def _shares(*values: float) -> tuple[str, ...]:
    return tuple(f"{v:.0%}" for v in values)


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for i, name in enumerate(names):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
