"""What one member of an ensemble solves."""

from dataclasses import dataclass

from pinnlab.problem.problem import Problem


@dataclass(frozen=True)
class Member:
    """A problem and a seed. Equal problems are the same object."""

    problem: Problem
    seed: int
