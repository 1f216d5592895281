"""Problem files: TOML text to a `Problem` and back. A file is data; nothing is run."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from pinnlab.errors import ProblemError, nearest, quoted
from pinnlab.problem.build import make_problem
from pinnlab.problem.problem import Problem


MAX_BYTES = 1_000_000
MAX_DOTS = 1000

OPTIONAL = ("solver", "reference")
"""Tables that a problem may lack; settings put values into them all the same."""


def load_problem(
    path: str | Path, overrides: Mapping[str, object] | None = None
) -> Problem:
    """The problem in a file.

    **Arguments:**

    - `overrides`: dotted keys and values put into the tables before they are read,
      such as `{"parameters.nu": 0.01}`.

    Raises `ProblemError` for a file that cannot be read or is wrong.
    """
    path = Path(path)
    try:
        # A pipe or a device could be endless, or wait for ever.
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no regular file"
            raise ProblemError(f"cannot be read: it is {what}", file=str(path))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise ProblemError(f"cannot be read: {reason}", file=str(path)) from None
    return _loads(data, path.stem, path.name, overrides or {}, path.parent)


def loads_problem(
    text: str, name: str = "problem", overrides: Mapping[str, object] | None = None
) -> Problem:
    """The problem in a text. `name` stands for the file in errors."""
    data = text.encode("utf-8", "surrogatepass")
    return _loads(data, name.removesuffix(".toml"), name, overrides or {})


def _loads(
    data: bytes,
    name: str,
    file: str,
    overrides: Mapping[str, object],
    folder: Path | None = None,
) -> Problem:
    if len(data) > MAX_BYTES:
        raise ProblemError(f"more than {MAX_BYTES} bytes", file=file)
    _check_dots(data, file)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        table = tomllib.loads(text.replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        raise ProblemError(message, file=file) from None
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(f"not valid TOML: {error}", file=file) from None
    except RecursionError:
        message = "not valid TOML: nested too deeply"
        raise ProblemError(message, file=file) from None
    except MemoryError:
        raise ProblemError("not valid TOML: too large", file=file) from None
    except ValueError as error:
        # Python refuses integers of more than 4300 digits while tomllib reads them.
        raise ProblemError(f"not valid TOML: {error}", file=file) from None
    for key, value in overrides.items():
        _override(table, key, value, file)
    if folder is not None:
        _resolve(table, folder)
    return make_problem(table, name, file)


def _resolve(table: dict[str, object], folder: Path) -> None:
    """Files are named relative to the problem file, and found from anywhere."""
    reference = table.get("reference")
    if isinstance(reference, dict) and isinstance(reference.get("file"), str):
        reference["file"] = str(folder.absolute() / reference["file"])


def _check_dots(data: bytes, file: str) -> None:
    """Refuses a.a.a...: tomllib needs the square of a key's length in time."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.count(b".") > MAX_DOTS:
            message = f"line {number} has more than {MAX_DOTS} dots"
            raise ProblemError(message, file=file)


def _override(table: dict[str, object], key: str, value: object, file: str) -> None:
    """Put a value under a dotted key; tables begin only below those that are options,
    and a parameter must be there already."""
    *path, last = key.split(".")
    if not all((*path, last)):
        raise ProblemError(f"{quoted(key)} is no key such as parameters.nu", file=file)
    for depth, part in enumerate(path, start=1):
        if part not in table and path[0] not in OPTIONAL:
            _refuse(".".join(path[:depth]), table, file)
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ProblemError(f"'{part}' is not a table", file=file, key=key)
        table = inner
    if path == ["parameters"] and last not in table:
        _refuse(key, table, file)
    table[last] = value


def _refuse(key: str, table: Mapping[str, object], file: str) -> NoReturn:
    last = key.split(".")[-1]
    known = ", ".join(table) or "none"
    message = f"there is no {quoted(key)} to set (there are: {known})"
    raise ProblemError(message, file=file, hint=nearest(last, table))


def dump_problem(problem: Problem) -> str:
    """The problem as TOML text that loads to an equal problem.

    Raises `ProblemError` where equations are Python functions.
    """
    if not problem.source:
        raise ProblemError(
            "equations given as Python functions cannot be written to a file",
            file=problem.file,
        )
    return problem.source
