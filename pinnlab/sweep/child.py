"""The process of some runs: `python -m pinnlab.sweep.child FOLDER RUN RUN ...`."""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pinnlab.errors import Preempted
from pinnlab.signals import Listener, listening
from pinnlab.sweep.batches import members
from pinnlab.sweep.folder import (
    files,
    forget_checkpoints,
    read_json,
    record_error,
)


STOPPED = 75
"""The exit status that asks to be queued again."""


def main(folder: Path, run: str, along: tuple[str, ...] = ()) -> None:
    """Solve what the specification says; leave the result, or the reason for none.

    With it go those runs `along` that nobody else works on.

    SIGTERM and SIGUSR1 leave a checkpoint and the status `STOPPED`.
    """
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    try:
        with listening() as signals, _stops(signals):
            solve_spec(folder, run, signals, along)
    except Preempted as stopped:
        print(stopped, flush=True)
        sys.exit(STOPPED)
    except (ValueError, ArithmeticError, MemoryError) as error:
        _give_up(folder, run, type(error).__name__, str(error))
    except Exception as error:
        # A defect: the driver goes on with the other runs, the log has the details.
        traceback.print_exc()
        _give_up(folder, run, type(error).__name__, f"{error} (see its log)")


@contextmanager
def _stops(signals: Listener) -> Iterator[None]:
    """An error after a signal is a stop: code that it cuts off, such as a callback of
    compiled code, may turn it into an error of its own."""
    try:
        yield
    except Exception as error:
        if signals.received is None or isinstance(error, Preempted):
            raise
        raise Preempted(f"stopped by a signal ({type(error).__name__})") from error


def solve_spec(
    folder: Path, run: str, signals: Listener, along: tuple[str, ...] = ()
) -> None:
    """Solve a run in this process, and others along with it; save the results.

    Goes on from the checkpoint of an attempt that was cut off, with the same runs.
    Where several fail together, as for want of memory, the run is solved alone.
    """
    from pinnlab.cache import keep_compiled_programs
    from pinnlab.checkpoint import kept
    from pinnlab.keeper import Keeper
    from pinnlab.problem.file import loads_problem
    from pinnlab.solver import solve
    from pinnlab.sweep.going import Reporter

    keep_compiled_programs()
    if along or members(folder, run):
        from pinnlab.sweep.batch import solve_batch

        try:
            solve_batch(folder, run, along, signals)
            return
        except (MemoryError, RuntimeError) as error:
            if signals.received is not None or files(folder, run).result.exists():
                raise
            _say(f"several together failed, now alone: {error}")
            forget_checkpoints(folder, run)
    own = files(folder, run)
    own.batch.unlink(missing_ok=True)
    spec = read_json(own.spec)
    resume = kept(own.checkpoint)
    keeper = Keeper(own.checkpoint, resume=resume, say=_say, signals=signals)
    solution = solve(
        loads_problem(spec["problem"], spec["name"]),
        target=spec["target"],
        budget=spec["budget"],
        seed=spec["seed"],
        reference=spec["reference"],
        progress=Reporter(own.going),
        keeper=keeper,
    )
    with signals.deferred():
        solution.save(own.result, force=True)
        keeper.finish()


def _give_up(folder: Path, run: str, kind: str, message: str) -> None:
    """Record a failure. The next attempt starts anew, not from what led to it."""
    forget_checkpoints(folder, run)
    record_error(folder, run, kind, message)


def _say(message: str) -> None:
    print(message, flush=True)


def _end_with_the_input() -> None:
    """End the process when whoever started it closes its input, or dies.

    At once, without a checkpoint: somebody else may own the run already.
    """
    # Not sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 4096):
        pass
    os._exit(STOPPED)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], tuple(sys.argv[3:]))
