"""Terms at many points: few programs, compiled on a clock of their own."""

import numpy as np

from pinnlab import loads_problem
from pinnlab.clock import Clock
from pinnlab.newton import pointwise
from pinnlab.newton.pointwise import Compiled
from pinnlab.system.system import build_system


TEXT = """
coordinates = { x = [0, 1] }
fields = ["u"]
[equations]
balance = "dxx(u) + x*u^2 = 0"
[conditions]
ends = { on = "boundary", equation = "u = 1" }
"""


def test_numbers_of_points_share_programs_and_pieces_give_the_same(monkeypatch):
    system = build_system(loads_problem(TEXT), "rows")
    monkeypatch.setattr(pointwise, "MOST", 128)
    clock = Clock()
    term = Compiled(system, clock).of(system.equations)
    for count in (1, 30, 64, 65, 128, 129, 300):
        points = np.linspace(0, 1, count)[:, None]
        values = np.stack([np.arange(count), np.ones(count)], axis=1)
        by_order = {p.orders[0]: values[:, j] for j, p in enumerate(term.partials)}
        residual, slopes = term(points, values)
        u, bend = by_order[0], by_order[2]
        np.testing.assert_allclose(residual[:, 0], bend + points[:, 0] * u**2)
        own = [p.orders[0] for p in term.partials].index(0)
        np.testing.assert_allclose(slopes[:, 0, own], 2 * points[:, 0] * u)
    assert len(term._programs) == 2
    assert clock.compiling > 0


def test_compilation_is_not_charged():
    clock = Clock()
    with clock.compilation():
        before = clock.compiling
    assert before == 0
    assert clock.compiling > 0
    spent = clock.spent
    clock.compiling += 5
    assert clock.spent < spent - 4
