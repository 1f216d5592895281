"""The order in which texts that name each other can be read."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from pinnlab.equation.tokens import names_in
from pinnlab.errors import ProblemError, located


def reading_order(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    """The names of a table, each after those that its text mentions.

    Raises `ProblemError` where texts need each other.
    """
    needs: dict[str, list[str]] = {}
    for name, value in table.items():
        with located(key=f"{key}.{name}"):
            used = names_in(value) if isinstance(value, str) else frozenset()
        needs[name] = [other for other in table if other in used]
    try:
        return tuple(TopologicalSorter(needs).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        first, text = cycle[0], table[cycle[0]]
        shown = " -> ".join(cycle if len(cycle) < 8 else (*cycle[:6], "...", first))
        raise ProblemError(
            f"the definition is circular: {shown}",
            key=f"{key}.{first}",
            text=text if isinstance(text, str) else None,
        ) from None
