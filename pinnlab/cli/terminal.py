"""What all commands share: consoles, exit statuses, errors as one clean message."""

import errno
import functools
import json
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import typer

from pinnlab.errors import Preempted, ProblemError


if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")


class Status(IntEnum):
    """Exit statuses, which scripts rely on."""

    PASS = 0
    NOT_PASSED = 1
    WRONG_INPUT = 2
    FAILED = 3
    CHECKPOINTED = 75
    INTERRUPTED = 130


def console(*, error: bool = False) -> "Console":
    """Standard output, or with `error` standard error, at its width now."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, soft_wrap=False)


def friendly(command: Callable[P, None]) -> Callable[P, None]:
    """The command with every error as a message and an exit status."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = kwargs.get("as_json") is True
        try:
            command(*args, **kwargs)
        except ProblemError as error:
            leave(Status.WRONG_INPUT, f"error: {error}", as_json)
        except FloatingPointError as error:
            leave(Status.FAILED, f"failed: {error}", as_json)
        except Preempted as stopped:
            leave(Status.CHECKPOINTED, str(stopped), as_json)
        except KeyboardInterrupt:
            leave(Status.INTERRUPTED, "interrupted; nothing was written", as_json)
        except BrokenPipeError:
            raise  # The reader went away, as in `| head`: click ends quietly.
        except OSError as error:
            # A name that no file can have is wrong input; a full disk is not.
            wrong = error.errno == errno.ENAMETOOLONG
            status = Status.WRONG_INPUT if wrong else Status.FAILED
            leave(status, f"failed: {error}", as_json)
        except MemoryError as error:
            leave(Status.FAILED, f"failed: out of memory {error}", as_json)
        except (typer.Exit, typer.Abort):
            raise
        except Exception:
            # A defect of pinnlab; status 1 would say that a solution was judged.
            leave(Status.FAILED, traceback.format_exc(), as_json)

    return wrapped


def leave(status: Status, message: str, as_json: bool = False) -> NoReturn:
    """End the command with a message on standard error.

    With `as_json` standard output has one object too, so that a script can read it.
    """
    if as_json:
        typer.echo(json.dumps({"verdict": "failed", "error": message.rstrip()}))
    sys.stdout.flush()
    typer.echo(message.rstrip(), err=True)
    raise typer.Exit(int(status))
