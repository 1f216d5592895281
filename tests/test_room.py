"""A process that solves many problems does not run out of memory maps."""

import jax
import jax.numpy as jnp
import pytest

from pinnlab import room


@pytest.fixture
def limit(tmp_path, monkeypatch):
    """Sets the system's limit, in parts of what this process uses."""

    def to(part: float) -> None:
        file = tmp_path / "max_map_count"
        file.write_text(f"{int(part * room._used())}\n")
        monkeypatch.setattr(room, "LIMIT", file)

    return to


@pytest.mark.parametrize(("part", "traces"), [(1.5, 2), (4.0, 1)])
def test_programs_are_forgotten_before_there_is_no_room(limit, part, traces):
    count = 0

    @jax.jit
    def f(x):
        nonlocal count
        count += 1
        return 2 * x

    f(jnp.ones(3))
    limit(part)
    assert room.make_room() == (traces == 2)
    assert float(f(jnp.ones(3))[0]) == 2
    assert count == traces


def test_compiled_programs_take_maps_and_give_them_back(limit):
    programs = [jax.jit(lambda x, k=k: jnp.sin(k * x)) for k in range(20)]
    before = room._used()
    for program in programs:
        program(jnp.ones(3))
    full = room._used()
    assert full >= before + 20
    limit(1.0)
    assert room.make_room()
    assert room._used() < full - 10


def test_where_the_system_has_no_such_limit_nothing_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "USED", tmp_path / "none")
    monkeypatch.setattr(room, "LIMIT", tmp_path / "none")
    assert not room.make_room()
