"""The solutions of an ensemble, how far they are apart, and the file about them."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from pinnlab.hdf5 import write_result
from pinnlab.result import Cost, MemberCheck, Report, Result
from pinnlab.solution import Solution


@dataclass(frozen=True, eq=False)
class Ensemble(Sequence[Solution]):
    """Solutions from several seeds, or for several values of parameters, as a list.

    `warnings`: members that found no finite loss, and why.
    """

    solutions: tuple[Solution, ...]
    warnings: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Solution: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Solution, ...]: ...

    def __getitem__(self, index: int | slice) -> Solution | tuple[Solution, ...]:
        return self.solutions[index]

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.solutions)

    @property
    def best(self) -> Solution:
        """The one with the smallest error, or held-out residual where none is known."""
        return min(self.solutions, key=lambda s: _rank(s.report))

    @property
    def spread(self) -> dict[str, np.ndarray]:
        """The standard deviation of each real field over the members, on the grid.

        How much the solution depends on chance in training. What all members have in
        common, such as a network that is too small, does not show in it.

        Raises `ValueError` where the members solve different problems.
        """
        self._check_same_problem()
        return {
            name: np.std([s.result.variables[name] for s in self.solutions], axis=0)
            for name in self.best.system.fields
        }

    def result(self) -> Result:
        """The best member's result with the members and their spread in it.

        Raises `ValueError` where the members solve different problems.
        """
        spread = {f"{name}_spread": v for name, v in self.spread.items()}
        best = self.best.complete_result()
        report = dataclasses.replace(
            best.report,
            members=tuple(_checked(s) for s in self.solutions),
            cost=_total([s.report.cost for s in self.solutions]),
            warnings=(*best.report.warnings, *self.warnings),
        )
        variables = best.variables | spread
        return dataclasses.replace(best, variables=variables, report=report)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write one result file; an existing file is moved aside unless `force`.

        Raises `ValueError` where the members solve different problems: save each one.
        """
        return write_result(Path(path), self.result(), force=force)

    def _check_same_problem(self) -> None:
        if any(s.problem != self.best.problem for s in self.solutions):
            raise ValueError(
                "the members solve different problems: save and compare each on its own"
            )


def _rank(report: Report) -> tuple[bool, float]:
    error = report.rel_l2
    known = error is not None and math.isfinite(error)
    return not known, error if error is not None and known else _heldout(report)


def _heldout(report: Report) -> float:
    return max((e.heldout for e in report.equations), default=math.inf)


def _checked(solution: Solution) -> MemberCheck:
    report = solution.report
    return MemberCheck(
        seed=solution.seed,
        heldout=_heldout(report),
        condition=max((c.relative for c in report.conditions), default=0.0),
        rel_l2=math.nan if report.rel_l2 is None else report.rel_l2,
        estimate=max((e.rel_l2 for e in report.estimates), default=math.nan),
        iterations=report.cost.iterations,
        verdict=report.verdict,
        stop=str(solution.result.attributes["stop"]),
    )


def _total(costs: list[Cost]) -> Cost:
    """The seconds and iterations of all; a member's times are its share."""
    return Cost(
        sum(c.compile_seconds for c in costs),
        sum(c.train_seconds for c in costs),
        sum(c.verify_seconds for c in costs),
        sum(c.iterations for c in costs),
        costs[0].parameters,
        max(c.peak_memory_mb for c in costs),
    )
