"""Problem files: TOML text to a `Problem` and back. A file is data; nothing is run."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pinnlab.errors import ProblemError
from pinnlab.problem.build import make_problem
from pinnlab.problem.problem import Problem


MAX_BYTES = 1_000_000


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
        if path.stat().st_size > MAX_BYTES:
            raise ProblemError(f"more than {MAX_BYTES} bytes", file=path.name)
        data = path.read_bytes()
    except OSError as error:
        raise ProblemError(f"cannot be read: {error.strerror}", file=str(path)) from None
    return _loads(data, path.stem, path.name, overrides or {})


def loads_problem(
    text: str, name: str = "problem", overrides: Mapping[str, object] | None = None
) -> Problem:
    """The problem in a text. `name` stands for the file in errors."""
    return _loads(text.encode("utf-8", "surrogatepass"), name, name, overrides or {})


def _loads(
    data: bytes, name: str, file: str, overrides: Mapping[str, object]
) -> Problem:
    if len(data) > MAX_BYTES:
        raise ProblemError(f"more than {MAX_BYTES} bytes", file=file)
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
    except ValueError as error:
        # Python refuses integers of more than 4300 digits while tomllib reads them.
        raise ProblemError(f"not valid TOML: {error}", file=file) from None
    for key, value in overrides.items():
        _override(table, key, value, file)
    return make_problem(table, name, file)


def _override(table: dict, key: str, value: object, file: str) -> None:
    *path, last = key.split(".")
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ProblemError(f"'{part}' is not a table", file=file, key=key)
    table[last] = value


def dump_problem(problem: Problem) -> str:
    """The problem as TOML text that loads to an equal problem.

    Raises `ProblemError` where equations are Python functions.
    """
    if not problem.source:
        raise ProblemError(
            "equations given as Python functions cannot be written to a file",
            file=problem.name,
        )
    return problem.source
