"""The process of one run: `python -m pinnlab.sweep.child FOLDER RUN`."""

import os
import sys
import threading
import traceback
from pathlib import Path

from pinnlab.sweep.folder import files, load_plan, read_json, record_error


STOPPED = 75
"""The exit status that asks to be queued again."""


def main(folder: Path, run: str) -> None:
    """Solve what the specification says; leave the result, or the reason for none."""
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    try:
        solve_spec(folder, run)
    except (ValueError, ArithmeticError, MemoryError) as error:
        record_error(folder, run, type(error).__name__, str(error))
    except Exception as error:
        # A defect: the driver goes on with the other runs, the log has the details.
        traceback.print_exc()
        record_error(folder, run, type(error).__name__, f"{error} (see its log)")


def solve_spec(folder: Path, run: str) -> None:
    """Solve a run in this process and save the result."""
    from pinnlab.cache import keep_compiled_programs
    from pinnlab.problem.file import loads_problem
    from pinnlab.solver import solve

    keep_compiled_programs()
    plan = load_plan(folder)
    if plan.batch:
        from pinnlab.sweep.batch import solve_batch

        solve_batch(folder, plan, run)
        return
    own = files(folder, run)
    spec = read_json(own.spec)
    solution = solve(
        loads_problem(spec["problem"], spec["name"]),
        target=spec["target"],
        budget=spec["budget"],
        seed=spec["seed"],
        reference=spec["reference"],
    )
    solution.save(own.result, force=True)


def _end_with_the_input() -> None:
    """End the process when whoever started it closes its input, or dies."""
    # Not sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 4096):
        pass
    os._exit(STOPPED)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
