"""The gallery of problem files: found by name, listed by group."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import pinnlab
from pinnlab.cli.terminal import console, friendly
from pinnlab.errors import ProblemError, nearest


@dataclass(frozen=True)
class Entry:
    """A problem of the gallery; `about` is its first comment line."""

    name: str
    path: Path
    title: str
    group: str
    about: str


def gallery_folder() -> Path | None:
    """Where the gallery is: inside the package, or at the root of a checkout."""
    package = Path(pinnlab.__file__).resolve().parent
    if (package / "problems").is_dir():
        return package / "problems"
    root = package.parent
    # Some other project's `problems` beside an installed package is not ours.
    checkout = (root / "pyproject.toml").is_file() and (root / "problems").is_dir()
    return root / "problems" if checkout else None


def gallery() -> list[Entry]:
    """Every problem of the gallery, by group and name."""
    folder = gallery_folder()
    files = sorted(folder.rglob("*.toml")) if folder else []
    return sorted((_entry(f) for f in files), key=lambda e: (e.group, e.name))


def find_problem(name: str) -> Path:
    """The file that `name` means: a path first, then a name of the gallery."""
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise ProblemError(f"{name}: is a folder, not a problem file")
    folder = gallery_folder()
    known = {f.stem: f for f in folder.rglob("*.toml")} if folder else {}
    if name in known:
        return known[name]
    if "/" in name or path.suffix:
        raise ProblemError(f"{name}: no such file", hint=nearest(path.stem, known))
    raise ProblemError(
        f"{name}: neither a file nor a problem of the gallery",
        hint=nearest(name, known) or "`pinnlab problems` lists the gallery",
    )


@friendly
def problems(
    name: Annotated[
        str | None, typer.Argument(help="Print this problem file instead.")
    ] = None,
) -> None:
    """List the gallery, or print one of its files (to start your own from)."""
    if name is not None:
        typer.echo(find_problem(name).read_text(encoding="utf-8"), nl=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    group = None
    for entry in gallery():
        if entry.group != group:
            if group is not None:
                table.add_row("", "")
            table.add_row(Text(entry.group, style="bold"), "")
            group = entry.group
        table.add_row(Text(f"  {entry.name}", style="cyan"), Text(entry.about))
    console().print(table)


def _entry(path: Path) -> Entry:
    text = path.read_text(encoding="utf-8")
    comments = [m[1] for m in re.finditer(r"^#\s*(.*)$", text.split("\n\n")[0], re.M)]
    group = re.search(r"^#.*\bGroup:\s*([\w -]+)", text, re.M)
    try:
        title = str(tomllib.loads(text).get("title", path.stem))
    except tomllib.TOMLDecodeError:
        title = path.stem
    return Entry(
        path.stem,
        path,
        title,
        group[1].strip() if group else path.parent.name,
        comments[0] if comments else title,
    )
