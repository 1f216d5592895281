"""Parameters and definitions that nothing uses: usually a name misspelled elsewhere."""

from collections.abc import Iterator, Mapping

from pinnlab.equation.tokens import names_in
from pinnlab.errors import ProblemError
from pinnlab.problem.tables import Table, subtable


def check_usage(table: Table) -> None:
    """Raises `ProblemError` for a parameter or definition that no text mentions.

    A callable may use anything; then nothing can be said.
    """
    if has_functions(table):
        return
    sections = ("coordinates", "definitions", "parameters", "equations", "conditions",
        "geometry")  # fmt: skip
    used: set[str] = set()
    for section in (*sections, "exact", "outputs"):
        for value in subtable(table, section).values():
            for text in _texts(value):
                used |= names_in(text)
    for section in ("parameters", "definitions"):
        for name in subtable(table, section):
            if name not in used:
                raise ProblemError(
                    f"'{name}' is not used anywhere", key=f"{section}.{name}"
                )


def has_functions(table: Table) -> bool:
    """Whether an equation or a condition is given as a Python function."""
    stack: list[object] = [table.get("equations"), table.get("conditions")]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif callable(value):
            return True
    return False


def _texts(value: object) -> Iterator[str]:
    """Every text in a value, but not the word behind `enforce`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "enforce":
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
