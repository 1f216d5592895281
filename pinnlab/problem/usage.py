"""Parameters and definitions that nothing uses: usually a name misspelled elsewhere."""

from collections.abc import Iterator, Mapping

from pinnlab.equation.tokens import names_in
from pinnlab.errors import ProblemError


def check_usage(table: Mapping[str, object]) -> None:
    """Raises `ProblemError` for a parameter or definition that no text mentions.

    A callable may use anything; then nothing can be said.
    """
    sections = ("coordinates", "definitions", "parameters", "equations", "conditions")
    used: set[str] = set()
    for section in (*sections, "exact", "outputs"):
        for text in _texts(table.get(section, {})):
            if text is None:
                return
            used |= names_in(text)
    for section in ("parameters", "definitions"):
        names = table.get(section, {})
        assert isinstance(names, Mapping)
        for name in names:
            if name not in used:
                raise ProblemError(
                    f"'{name}' is not used anywhere", key=f"{section}.{name}"
                )


def _texts(value: object) -> Iterator[str | None]:
    """Every text in a table; None for a callable."""
    if isinstance(value, str):
        yield value
    elif callable(value):
        yield None
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "enforce":
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
