"""pinnlab: solve differential equations with physics-informed neural networks.

!!! example
    ```python
    from pinnlab import load_problem, solve

    solution = solve(load_problem("problems/oscillator.toml"), budget=10)
    print(solution.report.verdict, solution(t=1.0))
    ```
"""

from importlib import import_module
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pinnlab.ensemble.ensemble import Ensemble
    from pinnlab.ensemble.solve import solve_ensemble
    from pinnlab.errors import ProblemError
    from pinnlab.problem.build import make_problem
    from pinnlab.problem.file import dump_problem, load_problem, loads_problem
    from pinnlab.problem.problem import Problem
    from pinnlab.solution import Solution
    from pinnlab.solver import solve

__version__ = "0.1.0"
__all__ = [
    "Ensemble",
    "Problem",
    "ProblemError",
    "Solution",
    "dump_problem",
    "load_problem",
    "loads_problem",
    "make_problem",
    "solve",
    "solve_ensemble",
]

_HOMES = {
    "Ensemble": "pinnlab.ensemble.ensemble",
    "Problem": "pinnlab.problem.problem",
    "ProblemError": "pinnlab.errors",
    "Solution": "pinnlab.solution",
    "dump_problem": "pinnlab.problem.file",
    "load_problem": "pinnlab.problem.file",
    "loads_problem": "pinnlab.problem.file",
    "make_problem": "pinnlab.problem.build",
    "solve": "pinnlab.solver",
    "solve_ensemble": "pinnlab.ensemble.solve",
}


def __getattr__(name: str) -> object:
    # Names are looked up when used, so that `pinnlab --help` does not import JAX.
    if name not in _HOMES:
        raise AttributeError(f"module 'pinnlab' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
