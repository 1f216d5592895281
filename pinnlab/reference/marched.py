"""Choose how to march an evolution, and march it."""

import time

from pinnlab.reference.evolution import Evolution
from pinnlab.reference.fourier import SAVES, Fourier, constant_form
from pinnlab.reference.reference import NoReference, Reference
from pinnlab.reference.refinement import Limits, Refined, refine
from pinnlab.reference.reflection import periodic_box
from pinnlab.solution import grid_axes, grid_points


FOURIER_LIMITS = {
    1: Limits(256, 8192, SAVES[1]),
    2: Limits(64, 256, SAVES[2]),
    3: Limits(32, 64, SAVES[3]),
}


def march_evolution(
    evolution: Evolution, *, error: float, deadline: float
) -> Reference:
    """A reference solution, refined until its error is below `error` or time is up.

    **Arguments:**

    - `deadline`: a value of `time.perf_counter()`.

    Raises `NoReference` where no method suits.
    """
    begin = time.perf_counter()
    problem = evolution.problem
    points = grid_points(problem, grid_axes(problem))
    dimension = len(evolution.space)
    box = periodic_box(evolution) if dimension in FOURIER_LIMITS else None
    form = constant_form(evolution) if box is not None else None
    if box is None or form is None:
        raise NoReference("not yet")
    make = lambda count: Fourier(evolution, form, tuple(i.line(count) for i in box))
    refined = refine(make, FOURIER_LIMITS[dimension], points, error, deadline)
    method = f"Fourier {refined.count}, ETDRK4, {refined.steps} steps"
    return _reference(evolution, refined, method, time.perf_counter() - begin)


def _reference(
    evolution: Evolution, refined: Refined, method: str, seconds: float
) -> Reference:
    errors = dict(zip(evolution.fields, refined.errors.tolist(), strict=True))
    return Reference(
        evolution.fields,
        refined.trajectory.at,
        errors,
        seconds,
        refined.efforts,
        method,
    )
