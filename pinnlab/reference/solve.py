"""The entry: a classical solution of a problem, by whatever method suits it."""

import time

import jax

from pinnlab.problem.problem import Problem
from pinnlab.reference.initial_value import marching, read_evolution
from pinnlab.reference.reference import NoReference, Reference
from pinnlab.reference.steady import solve_steady
from pinnlab.room import make_room


def solve_reference(problem: Problem, *, error: float, seconds: float) -> Reference:
    """Solve a problem classically to a relative L2 error, within some seconds.

    **Arguments:**

    - `error`: refinement stops when the estimate for every field is below it.
    - `seconds`: no refinement is begun that would probably take longer than this. The
        estimate may then be above `error`; it is stated all the same.

    **Returns:** a `Reference`, which states its own error.

    Raises `NoReference` with the reason where no method here can solve the problem.

    !!! example
        ```python
        reference = solve_reference(load_problem("burgers"), error=1e-8, seconds=20)
        reference.at(np.array([[0.5, 0.1]]))
        ```
    """
    if problem.shape is not None:
        raise NoReference(
            "no classical method here solves on shapes: give [exact], or the solution "
            "of another program by [reference] file"
        )
    begin = time.perf_counter()
    make_room()
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        if marching(problem) is None:
            return solve_steady(problem, error=error, seconds=seconds)
        try:
            evolution = read_evolution(problem)
            # Diffrax takes a second to import, and steady problems do not need it.
            from pinnlab.reference.marched import march_evolution

            return march_evolution(evolution, error=error, deadline=begin + seconds)
        except NoReference as first:
            left = seconds - (time.perf_counter() - begin)
            try:
                # Time is one more axis of a collocation then.
                return solve_steady(problem, error=error, seconds=left)
            except NoReference as second:
                both = f"{first.reason}; in space and time: {second.reason}"
                raise NoReference(both) from second
