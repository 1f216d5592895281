"""Pictures: every kind of result has one, with the truth of the numbers in it."""

import dataclasses
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import LogNorm, TwoSlopeNorm
from matplotlib.figure import Figure
from synthetic import make_result

from pinnlab.errors import ProblemError
from pinnlab.plotting import (
    curves,
    figure,
    history,
    magnitude_map,
    save_figure,
    signed_map,
)
from pinnlab.plotting.maps import magnitude_norm, value_norm
from pinnlab.plotting.panels import running
from pinnlab.plotting.style import math


def grid(**sizes: int) -> dict[str, np.ndarray]:
    return {n: np.linspace(0, 1, s) for n, s in sizes.items()}


AXES = {
    "1-D": grid(t=20),
    "t, x": grid(t=8, x=9),
    "x, t": grid(x=9, t=8),
    "x, y": grid(x=8, y=9),
    "t, x, y": grid(t=5, x=6, y=7),
    "x, y, z": grid(x=5, y=6, z=7),
    "4-D": {n: np.random.default_rng(2).random(30) for n in "txyz"},
}


@pytest.mark.parametrize(
    ("fields", "truth"), [(("u",), True), (("u", "v"), False)], ids=["one", "two"]
)
@pytest.mark.parametrize("axes", AXES.values(), ids=AXES.keys())
def test_every_kind_of_result_has_a_picture(
    axes: dict[str, np.ndarray], fields: tuple[str, ...], truth: bool, tmp_path: Path
):
    before = dict(matplotlib.rcParams)
    result = make_result(axes, fields, truth=truth)
    path = save_figure(figure(result), tmp_path / "run.png", dpi=20)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_the_title_has_the_verdict_and_the_error():
    head = figure(make_result(AXES["t, x"])).axes[0]
    words = " ".join(t.get_text() for t in head.texts)
    assert "A made-up problem" in words
    assert "pass" in words and r"3.3 \times 10^{-6}" in words


def test_outputs_of_fewer_coordinates_are_curves_and_constants_no_panel():
    result = make_result(AXES["t, x"])
    count = len(figure(result).axes)
    extra = {"mass": np.arange(8.0)[:, None], "total": np.ones((1, 1))}
    more = dataclasses.replace(result, variables=result.variables | extra)
    picture = figure(more)
    assert any(a.get_title(loc="left") == r"$\mathrm{mass}$" for a in picture.axes)
    assert len(picture.axes) == count + 1


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [0.0, 3.0, np.nan, np.inf])
def test_degenerate_values_are_drawn(value: float, tmp_path: Path):
    result = make_result(AXES["t, x"])
    flat = {n: np.full_like(v, value) for n, v in result.variables.items()}
    odd = dataclasses.replace(result, variables=flat)
    save_figure(figure(odd), tmp_path / "run.png", dpi=20)


def test_a_result_without_history_is_drawn(tmp_path: Path):
    result = make_result(AXES["1-D"])
    none = {n: v[:0] for n, v in result.history.items()}
    empty = dataclasses.replace(result, history=none, history_stage=())
    save_figure(figure(empty), tmp_path / "run.png", dpi=20)


def test_the_history_of_another_way_to_solve_is_a_line_of_its_own():
    stages = ["separable"] * 2 + ["adam"] * 2 + ["ssbroyden"] * 2
    columns = {"step": np.array([1, 2, 1, 2, 1, 2]), "loss": 10.0 ** -np.arange(6)}
    ax = history((columns, stages), Figure().add_subplot())
    (line,) = (found for found in ax.lines if found.get_label() == "loss")
    broken = np.isnan(np.asarray(line.get_ydata(), float))
    assert broken.tolist() == [False, False, True, False, False, False, False]


def test_panels_take_data_and_an_axis_and_return_it():
    ax = Figure().add_subplot()
    t = np.linspace(0, 1, 5)
    assert curves((("t", t), {"u": t}, {"exact": t}), ax) is ax
    assert len(ax.lines) == 2
    columns = {"step": np.arange(5), "loss": 10.0 ** -np.arange(5)}
    ax = Figure().add_subplot()
    assert history((columns, ["a"] * 2 + ["b"] * 3), ax) is ax
    assert ax.get_yscale() == "log"
    values = np.outer(t, t) - 0.5
    for draw in (signed_map, magnitude_map):
        ax = Figure().add_subplot()
        assert draw((("t", t), ("x", t), values), ax) is ax
        assert ax.get_xlabel() == "$t$" and ax.get_ylabel() == "$x$"


def test_a_map_shows_the_value_where_it_is():
    ax = Figure().add_subplot()
    values = np.zeros((3, 4))
    values[2, 1] = 5.0
    grids = ("t", np.arange(3.0)), ("x", np.arange(4.0))
    signed_map((*grids, values), ax)
    shown = np.asarray(ax.collections[0].get_array()).reshape(4, 3)
    assert shown[1, 2] == 5.0  # Row: x = 1; column: t = 2.


def test_colors_are_centered_at_zero_only_where_both_signs_matter():
    both = value_norm(np.array([-1.0, 3.0]))
    assert isinstance(both, TwoSlopeNorm)
    assert (both.vmin, both.vcenter, both.vmax) == (-3.0, 0.0, 3.0)
    assert not isinstance(value_norm(np.array([-0.01, 3.0])), TwoSlopeNorm)
    sizes = magnitude_norm(np.array([1e-30, 1e-3, -0.5]))
    assert isinstance(sizes, LogNorm) and sizes.vmax == 0.5
    assert sizes.vmin is not None and 1e-6 < sizes.vmin < 1e-3


def test_stages_that_count_anew_follow_each_other():
    np.testing.assert_array_equal(
        running(np.array([0, 5, 10, 2, 4])), [0, 5, 10, 12, 14]
    )
    np.testing.assert_array_equal(
        running(np.array([0, 5, 10, 12, 14])), [0, 5, 10, 12, 14]
    )
    # Tries of one stage, such as slabs of another number.
    np.testing.assert_array_equal(
        running(np.array([1, 2, 3, 1, 2, 1])), [1, 2, 3, 4, 5, 6]
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("u", "$u$"),
        ("theta", r"$\theta$"),
        ("h_real", r"$\mathrm{Re}\,h$"),
        ("x1", "$x_{1}$"),
        ("nu_t", r"$\nu_{t}$"),
        ("T_in", r"$T_{\mathrm{in}}$"),
        ("wall_heat", r"$\mathrm{wall\_heat}$"),
    ],
)
def test_names_are_mathematics(name: str, text: str):
    assert math(name) == text


def test_an_unknown_kind_of_picture_is_refused(tmp_path: Path):
    with pytest.raises(ProblemError, match=r"\.pdf"):
        save_figure(figure(make_result(AXES["1-D"])), tmp_path / "run.docx")
