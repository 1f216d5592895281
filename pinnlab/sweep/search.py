"""The table `[search]`: what a search looks for, and how long."""

from collections.abc import Mapping
from dataclasses import dataclass

from pinnlab.errors import ProblemError
from pinnlab.sweep.reading import boolean, choice, integer, known_keys, read_table


JOURNAL = "search.journal"
"""What Optuna knows, in the folder of a search."""

TRIAL = "trial"
"""The dimension of a search in its table."""

OBJECTIVES = ("error", "residual", "error*seconds", "residual*seconds")


@dataclass(frozen=True)
class Search:
    """A search for the settings with the smallest objective.

    - `objective`: the error (its estimate where there is no truth) or the held-out
      residual of a run, as it is or times its seconds of training.
    - `trials`: runs in all; `prune`: stop hopeless ones early.
    - `seed`: of what is tried.
    - `seeds`: each trial is a run with each of them, and its objective their median;
      without any it is one run.
    """

    objective: str = "error"
    trials: int = 50
    prune: bool = True
    seed: int = 0
    seeds: tuple[int, ...] = ()

    @property
    def repetitions(self) -> int:
        """The runs of a trial."""
        return max(1, len(self.seeds))


def read_search(top: Mapping[str, object]) -> Search | None:
    """The search of an experiment; None where there is none.

    Raises `ProblemError` naming the key and what would be accepted.
    """
    if "search" not in top:
        return None
    table, plain, where = read_table(top, "search"), Search(), "search."
    known_keys(table, tuple(vars(plain)), "search")
    if "trials" not in table:
        raise ProblemError("missing, as in trials = 50", key="search.trials")
    return Search(
        choice(
            table.get("objective", plain.objective), where + "objective", OBJECTIVES
        ),
        integer(table["trials"], where + "trials", 1, 100_000),
        boolean(table.get("prune", plain.prune), where + "prune"),
        integer(table.get("seed", plain.seed), where + "seed", 0, 2**31 - 1),
        _seeds(top, table),
    )


def _seeds(top: Mapping[str, object], table: Mapping[str, object]) -> tuple[int, ...]:
    """`seeds = 3` means three from the experiment's own on."""
    if "seeds" not in table:
        return ()
    count = integer(table["seeds"], "search.seeds", 1, 1000)
    first = integer(top.get("seed", 0), "seed", 0, 2**31 - 1 - count)
    return tuple(range(first, first + count))
