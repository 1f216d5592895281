"""What all commands share: consoles, exit statuses, errors as one clean message."""

import functools
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, ParamSpec

import typer

from pinnlab.errors import ProblemError


if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")


class Status(IntEnum):
    """Exit statuses, which scripts rely on."""

    PASS = 0
    NOT_PASSED = 1
    WRONG_INPUT = 2
    FAILED = 3
    INTERRUPTED = 130


def console(*, error: bool = False) -> "Console":
    """Standard output, or with `error` standard error, at its width now."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, soft_wrap=False)


def friendly(command: Callable[P, None]) -> Callable[P, None]:
    """The command with every error as a message and an exit status."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except ProblemError as error:
            leave(Status.WRONG_INPUT, f"error: {error}")
        except FloatingPointError as error:
            leave(Status.FAILED, f"failed: {error}")
        except KeyboardInterrupt:
            leave(Status.INTERRUPTED, "interrupted; nothing was written")
        except BrokenPipeError:
            raise  # The reader went away, as in `| head`: click ends quietly.
        except OSError as error:
            leave(Status.FAILED, f"failed: {error}")
        except MemoryError as error:
            leave(Status.FAILED, f"failed: out of memory {error}")
        except (typer.Exit, typer.Abort):
            raise
        except Exception:
            # A defect of pinnlab; status 1 would say that a solution was judged.
            leave(Status.FAILED, traceback.format_exc())

    return wrapped


def leave(status: Status, message: str) -> None:
    """End the command with a message on standard error."""
    sys.stdout.flush()
    typer.echo(message.rstrip(), err=True)
    raise typer.Exit(int(status))
