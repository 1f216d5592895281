"""The measurement of growth: its slopes, its cases, its picture, one case for real."""

import dataclasses

import pytest
import scaling


def series(over: str, power: float) -> list[scaling.Measured]:
    plain = scaling.Measured(over, 100, 100, 1, 1.0, 1.0, 1.0, 1.0, 1.0)
    sizes = (1, 2, 4)
    return [
        dataclasses.replace(plain, **{over: n}, gradient_seconds=3.0 * n**power)
        for n in sizes
    ]


@pytest.mark.parametrize("power", [-1.0, 0.5, 1.0])
def test_the_exponent_is_that_of_a_power(power: float):
    assert scaling.exponent(series("points", power), "points") == pytest.approx(power)


def test_each_series_changes_one_size():
    for large in (False, True):
        found = scaling.cases(large)
        for over in ("points", "parameters", "devices"):
            kinds = [dataclasses.asdict(c) for c in found if c.over == over]
            changing = {k for k in kinds[0] if len({c[k] for c in kinds}) > 1}
            size = "width" if over == "parameters" else over
            assert changing <= {size}
        assert max(c.devices for c in found) <= scaling.cores()


def test_the_picture_has_time_and_memory_of_each_series():
    rows = [r for o in ("points", "parameters", "devices") for r in series(o, 1.0)]
    axes = scaling.draw(rows).axes
    assert len(axes) == 6
    # Two measured, each with its theory; three memories.
    assert [len(a.lines) for a in axes] == [4, 4, 4, 3, 3, 3]


@pytest.mark.slow
def test_a_small_case_is_measured():
    found = scaling.measure(scaling.Case("points", 200, 4), 1)
    assert found.gradient_seconds > 0 and found.look_seconds > 0
    assert found.points == 200 and found.gradient_mb > 0
