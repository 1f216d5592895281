"""Panels of many solutions show the right shares, orders and times."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from PIL import Image

from pinnlab.errors import ProblemError
from pinnlab.plotting import band, convergence, film, intervals, save_movie
from pinnlab.plotting.panels import log_across, log_axis


GRID = np.linspace(0, 1, 5)


@pytest.mark.parametrize("log", [False, True])
def test_a_band_holds_its_share_of_the_members(log: bool):
    sign = -1 if log else 1
    members = sign * np.linspace(1, 2, 101)[:, None] * np.ones(5)
    ax = Figure().add_subplot()
    assert band((("x", GRID), members, {"exact": GRID + 1}), ax, log=log) is ax
    spans = []
    for area in ax.collections:
        assert isinstance(area, PolyCollection)
        heights = np.concatenate([p.vertices for p in area.get_paths()])[:, 1]
        spans.append((heights.min(), heights.max()))
    np.testing.assert_allclose(spans, [(1.05, 1.95), (1.25, 1.75)])
    middle, truth = (np.asarray(line.get_ydata()) for line in ax.lines)
    np.testing.assert_allclose(middle, 1.5)
    np.testing.assert_allclose(truth, GRID + 1)


def test_intervals_stand_at_their_labels():
    ax = Figure().add_subplot()
    found = {"k": (2.0, 1.0, 4.0), "nu": (0.5, 0.4, 0.7)}
    assert intervals((found, {"nu": 0.45}), ax) is ax
    assert [t.get_text() for t in ax.get_yticklabels()] == ["k", "nu"]
    drawn = [(np.asarray(n.get_xdata()), np.asarray(n.get_ydata())) for n in ax.lines]
    np.testing.assert_allclose(drawn[0], [[1, 4], [0, 0]])
    np.testing.assert_allclose(drawn[-1], [[0.45], [1]])
    assert len(drawn) == 5  # A bar and a point each, and one truth.


def test_convergence_joins_medians_and_shows_the_worst():
    sizes = np.array([10, 20, 40])
    errors = sizes[:, None] ** -2.0 * [1, 3, 10]
    ax = Figure().add_subplot()
    assert convergence((("n", sizes), {"a": errors}), ax, orders=(2,)) is ax
    median, slope = (np.asarray(line.get_ydata()) for line in ax.lines)
    np.testing.assert_allclose(median, errors[:, 1])
    np.testing.assert_allclose(slope, 2 * errors[:, 1])
    (worst,) = ax.collections
    assert isinstance(worst, LineCollection)
    ends = [segment[-1, 1] for segment in map(np.asarray, worst.get_segments())]
    np.testing.assert_allclose(ends, errors[:, 2])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["10", "20", "40"]


def test_a_film_has_the_values_of_its_times_in_one_scale():
    t, x, y = np.linspace(0, 1, 9), np.linspace(0, 1, 4), np.linspace(0, 2, 6)
    values = t[:, None, None] + np.outer(x, y)
    picture = Figure()
    ax = picture.add_subplot()
    assert film((("t", t), ("x", x), ("y", y), values), ax, count=3) is ax
    for part, i in zip(ax.child_axes, (0, 4, 8), strict=True):
        assert isinstance(part, Axes)
        (mesh,) = part.collections
        shown = np.asarray(mesh.get_array()).reshape(6, 4)
        np.testing.assert_array_equal(shown, values[i].T)
        assert mesh.get_clim() == (0, 3)
        assert f"{t[i]:.3g}" in part.get_title() + part.get_title(loc="left")


@pytest.mark.parametrize("ends", [(0.3, 1), (0.02, 0.5), (1e-5, 1), (1e-12, 1)])
def test_numbers_along_a_logarithmic_axis_do_not_touch(ends: tuple[float, float]):
    picture = Figure(figsize=(4, 1.8))
    ax = picture.add_subplot()
    values = np.geomspace(*ends, 50)
    ax.plot(values)
    log_axis(ax, [values], decades=1e-16)
    picture.canvas.draw()
    labels = ax.get_yticklabels() + ax.get_yticklabels(minor=True)
    boxes = [t.get_window_extent() for t in labels if t.get_text()]
    bottom, top = ax.bbox.y0, ax.bbox.y1
    inside = sorted((b.y0, b.y1) for b in boxes if bottom <= b.y1 and b.y0 <= top)
    assert len(inside) >= 2
    assert all(a[1] < b[0] for a, b in pairwise(inside))


@pytest.mark.parametrize("ends", [(0.3, 1), (3, 70), (1e-3, 1e3)])
def test_numbers_along_a_logarithmic_horizontal_axis_do_not_touch(
    ends: tuple[float, float],
):
    picture = Figure(figsize=(4, 2))
    ax = picture.add_subplot()
    ax.plot(np.geomspace(*ends, 50), np.ones(50))
    log_across(ax)
    picture.canvas.draw()
    labels = ax.get_xticklabels() + ax.get_xticklabels(minor=True)
    boxes = [t.get_window_extent() for t in labels if t.get_text()]
    left, right = ax.bbox.x0, ax.bbox.x1
    inside = sorted((b.x0, b.x1) for b in boxes if left <= b.x1 and b.x0 <= right)
    assert len(inside) >= 2
    assert all(a[1] < b[0] for a, b in pairwise(inside))


def test_a_movie_of_ones_own_figure(tmp_path: Path):
    picture = Figure(figsize=(2, 2))
    seen: list[int] = []

    def draw(index: int) -> None:
        seen.append(index)
        picture.clear()
        picture.add_subplot().plot([0, index])

    path = save_movie((picture, draw, [1, 5, 7]), tmp_path / "own.gif", dpi=40)
    with Image.open(path) as movie:
        assert movie.n_frames == 3  # pyright: ignore[reportAttributeAccessIssue]
    assert seen[-3:] == [1, 5, 7]
    with pytest.raises(ProblemError, match=r"\.gif or \.mp4"):
        save_movie((picture, draw, [1]), tmp_path / "own.avi")
