"""Whether runs that are alike may share a process: `batch` in an experiment."""

from enum import StrEnum

from pinnlab.errors import ProblemError


class Batch(StrEnum):
    """`AUTO`: where that is faster and leaves the same results; the others: always."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def read_batch(value: object) -> Batch:
    """What `batch` is in a file: true, false or "auto", as which a missing one counts.

    Raises `ProblemError` for anything else.
    """
    if isinstance(value, bool):
        return Batch.ALWAYS if value else Batch.NEVER
    if value == "auto":
        return Batch.AUTO
    message = f'expected true, false or "auto", found {value!r}'
    raise ProblemError(message, key="batch")
