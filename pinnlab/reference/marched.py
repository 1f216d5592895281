"""Choose how to march an evolution, and march it."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from pinnlab.grids import result_grid
from pinnlab.reference import fourier, lines, waves
from pinnlab.reference.collocation import collocate
from pinnlab.reference.evolution import Evolution
from pinnlab.reference.exponential import Lawson
from pinnlab.reference.fourier import Fourier, constant_form, method_for
from pinnlab.reference.lines import Adaptive, SemiImplicit, linear_part
from pinnlab.reference.reference import NoReference, Reference
from pinnlab.reference.refinement import Limits, Resolution, refine
from pinnlab.reference.reflection import periodic_box
from pinnlab.reference.semilinear import space_order
from pinnlab.reference.waves import Waves


FOURIER = {
    1: Limits(256, 16384, fourier.SAVES[1], 16, 1, 2048 * fourier.SAVES[1]),
    2: Limits(64, 256, fourier.SAVES[2], 4, 2, 2048 * fourier.SAVES[2]),
    3: Limits(32, 64, fourier.SAVES[3], 2, 3, 2048 * fourier.SAVES[3]),
}
WAVES = Limits(512, 4096, waves.FEWEST, 4, 3, 64 * waves.FEWEST)
COLLOCATION = {
    0: Limits(1, 1, lines.SAVES[0], 1, 1, lines.FINEST * lines.SAVES[0]),
    1: Limits(48, 256, lines.SAVES[1], 2, 2, lines.FINEST * lines.SAVES[1]),
    2: Limits(15, 30, lines.SAVES[2], 2, 4, lines.FINEST * lines.SAVES[2]),
}
"""By the dimension of space."""
LARGEST_MATRIX = 800


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
    points = result_grid(problem).points
    make, limits = _choose(evolution, deadline)
    refined = refine(make, limits, points, error, deadline)
    return Reference(
        evolution.fields,
        refined.trajectory.at,
        dict(zip(evolution.fields, refined.errors.tolist(), strict=True)),
        time.perf_counter() - begin,
        refined.efforts,
        refined.label,
    )


def _choose(
    evolution: Evolution, deadline: float
) -> tuple[Callable[[int], Resolution], Limits]:
    dimension = len(evolution.space)
    differentiated = space_order(evolution.equations, evolution.time) > 0
    if dimension in FOURIER and differentiated:
        box = periodic_box(evolution)
        form = constant_form(evolution) if box is not None else None
        if box is not None and form is not None:
            box_lines = lambda count: tuple(i.line(count) for i in box)
            limits = FOURIER[dimension]
            first = Fourier(evolution, form, box_lines(limits.count))
            method = method_for(first)
            make = lambda count: replace(first, lines=box_lines(count), method=method)
            if method is Lawson and dimension == 1:
                return (lambda count: Waves(make(count))), WAVES
            return make, limits
    if dimension not in COLLOCATION:
        raise NoReference(f"a box in {dimension} dimensions that is not periodic")
    limits = COLLOCATION[dimension]
    linear = linear_part(evolution)
    size = collocate(evolution, limits.count).size
    if differentiated and linear is not None and size <= LARGEST_MATRIX:

        @cache
        def semi_implicit(count: int) -> SemiImplicit:
            return SemiImplicit(evolution, count, linear, semi_implicit)

        return semi_implicit, limits

    @cache
    def adaptive(count: int) -> Adaptive:
        return Adaptive(evolution, count, deadline, adaptive)

    return adaptive, limits
