"""Panels of vectors, planes, spectra, frames and trees show what is there."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from mpl_toolkits.mplot3d import Axes3D
from PIL import Image
from synthetic import make_result
from typer.testing import CliRunner

from pinnlab import loads_problem
from pinnlab.cli.main import app
from pinnlab.errors import ProblemError
from pinnlab.hdf5 import write_result
from pinnlab.plotting import (
    arrows,
    expression_tree,
    frames,
    isosurfaces,
    planes,
    save_animation,
    spectrum,
    streamlines,
)
from pinnlab.plotting.motion import scene
from pinnlab.plotting.spectra import amplitudes
from pinnlab.plotting.surfaces import triangulated
from pinnlab.plotting.view import fields


X, Y = np.linspace(0, 2, 41), np.linspace(0, 1, 21)
GRID = ("x", X), ("y", Y)


def panel() -> Figure:
    return Figure(figsize=(3, 2))


def test_arrows_point_along_the_field_and_the_longest_fills_a_cell():
    u, v = np.meshgrid(X, -2 * Y, indexing="ij")
    ax = panel().add_subplot()
    assert arrows((*GRID, u, v), ax) is ax
    (quiver,) = ax.collections
    assert isinstance(quiver, Quiver) and quiver.scale is not None
    at = np.asarray(quiver.get_offsets())
    np.testing.assert_allclose(np.asarray(quiver.U), at[:, 0], atol=1e-12)
    np.testing.assert_allclose(np.asarray(quiver.V), -2 * at[:, 1], atol=1e-12)
    length = np.hypot(quiver.U, quiver.V).max() / quiver.scale
    cells = [np.ptp(c) / (len(np.unique(c)) - 1) for c in at.T]
    assert length == pytest.approx(min(cells))


def test_streamlines_follow_circles():
    x = np.linspace(-1, 1, 41)
    a, b = np.meshgrid(x, x, indexing="ij")
    ax = panel().add_subplot()
    assert streamlines((("x", x), ("y", x), -b, a), ax) is ax
    (lines,) = ax.collections
    assert isinstance(lines, LineCollection)
    segments = np.concatenate(lines.get_segments()).reshape(-1, 2, 2)
    middle, along = segments.mean(axis=1), np.diff(segments, axis=1)[:, 0]
    moves = np.hypot(*along.T) > 0
    sizes = np.hypot(*middle[moves].T) * np.hypot(*along[moves].T)
    # A circle is everywhere perpendicular to its radius.
    assert np.median(abs((middle * along).sum(1)[moves] / sizes)) < 0.02
    with pytest.raises(ValueError, match="uniform"):
        streamlines((("x", x**3), ("y", x), -b, a), ax)


def test_planes_have_the_color_of_the_values_at_their_place():
    z = np.linspace(0, 3, 9)
    values = np.broadcast_to(np.linspace(1, 2, 9), (41, 21, 9)).copy()
    ax = panel().add_subplot(projection="3d")
    assert isinstance(ax, Axes3D)
    assert planes((*GRID, ("z", z), values), ax) is ax
    assert len(ax.collections) == 12
    flat = [c for c in ax.collections if len(np.unique(c.get_facecolor(), axis=0)) == 1]
    assert len(flat) == 4  # The quarters of the plane z = 1.5, where all is 1.5.
    bar = ax.get_figure().axes[1]  # pyright: ignore[reportOptionalMemberAccess]
    assert bar.get_ylim() == pytest.approx((1, 2))


def test_an_isosurface_is_a_closed_sphere():
    grid = np.linspace(-1, 1, 25)
    a, b, c = np.meshgrid(grid, grid, grid, indexing="ij")
    radii = np.sqrt(a**2 + b**2 + c**2)
    triangles = triangulated([grid] * 3, radii, 0.7)
    # A chord across a cell, sqrt(3)/12 long, is 0.004 from the middle of its arc.
    assert np.linalg.norm(triangles, axis=-1) == pytest.approx(0.7, abs=5e-3)
    one, two, three = np.moveaxis(triangles, 1, 0)
    areas = np.linalg.norm(np.cross(two - one, three - one), axis=-1) / 2
    assert areas.sum() == pytest.approx(4 * np.pi * 0.7**2, rel=1e-2)
    # Closed: every edge has a triangle on both sides.
    _, names = np.unique(triangles.reshape(-1, 3).round(9), axis=0, return_inverse=True)
    whole = names.reshape(-1, 3)[areas > 1e-12]
    edges = np.sort(np.concatenate([whole[:, i] for i in ([0, 1], [1, 2], [2, 0])]))
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}


def test_isosurfaces_are_drawn_at_their_levels_and_not_where_nothing_is_known():
    z = np.linspace(0, 3, 9)
    values = np.broadcast_to(z, (41, 21, 9)).copy()
    values[:20] = np.nan
    ax = panel().add_subplot(projection="3d")
    assert isinstance(ax, Axes3D)
    assert isosurfaces((*GRID, ("z", z), values), ax, levels=(1.0, 2.0)) is ax
    assert len(ax.collections) == 2
    surface = triangulated([X, Y, z], values, 1.0)
    assert surface[..., 2] == pytest.approx(1.0) and surface[..., 0].min() == X[20]


def test_a_wave_has_its_amplitude_at_its_wave_number():
    grid = np.linspace(0, 2, 257)
    wave = 3 * np.cos(2 * np.pi * 4 * grid + 1) + 0.01 * np.sin(2 * np.pi * 20 * grid)
    waves, sizes = amplitudes(grid, wave)
    assert sizes[np.argmin(abs(waves - 4))] == pytest.approx(3, rel=1e-12)
    assert sizes[np.argmin(abs(waves - 20))] == pytest.approx(0.01, rel=1e-9)
    assert sizes[np.argmin(abs(waves - 10))] < 1e-12
    ax = panel().add_subplot()
    assert spectrum((("x", grid), {"a": wave, "b": wave}), ax) is ax
    assert ax.get_xscale() == ax.get_yscale() == "log" and len(ax.lines) == 2


def test_frames_are_the_first_the_last_and_some_between():
    t = np.linspace(0, 1, 11)
    values = np.outer(t, X)
    ax = panel().add_subplot()
    assert frames((("t", t), ("x", X), values), ax, count=3) is ax
    slopes = [np.asarray(line.get_ydata())[-1] / X[-1] for line in ax.lines]
    np.testing.assert_allclose(slopes, [0, 0.5, 1])
    assert len({to_hex(line.get_color()) for line in ax.lines}) == 3


@pytest.mark.parametrize("names", ["tx", "xt", "txy", "xyt"])
def test_a_frame_shows_the_values_at_its_time(names: str):
    axes = {n: np.linspace(0, 1, 5 + i) for i, n in enumerate(names)}
    result = make_result(axes)
    (shown,) = fields(result)
    picture, draw = scene(shown)
    draw(2)
    ax = picture.axes[0]
    expected = np.take(result.variables["u"], 2, names.index("t"))
    if len(names) == 2:
        found = np.asarray(ax.lines[0].get_ydata())
    else:
        found = np.asarray(ax.collections[0].get_array()).T
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    assert f"{axes['t'][2]:.3g}" in ax.get_title(loc="left") + ax.get_title()


def test_an_animation_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    axes = {"t": np.linspace(0, 1, 4), "x": np.linspace(0, 1, 9)}
    write_result("run.h5", make_result(axes))
    command = ["plot", "run.h5", "-o", "run.gif", "--dpi", "60"]
    assert CliRunner().invoke(app, command).exit_code == 0
    with Image.open("run.gif") as movie:
        assert movie.n_frames == 4  # pyright: ignore[reportAttributeAccessIssue]
        pictures = []
        for i in range(4):
            movie.seek(i)
            pictures.append(np.asarray(movie.convert("L"), float))
    assert all(abs(a - b).max() > 50 for a, b in pairwise(pictures))


def test_an_animation_has_as_many_frames_as_wanted(tmp_path: Path):
    axes = {"t": np.linspace(0, 1, 9), "x": np.linspace(0, 1, 5)}
    path = save_animation(make_result(axes), tmp_path / "run.gif", count=3, dpi=40)
    with Image.open(path) as movie:
        assert movie.n_frames == 3  # pyright: ignore[reportAttributeAccessIssue]


def test_an_mp4_is_made_of_all_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Stands for ffmpeg: leaves what it was given in the file that it was asked for.
    program = tmp_path / "ffmpeg"
    program.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    axes = {"t": np.linspace(0, 1, 4), "x": np.linspace(0, 1, 9)}
    path = save_animation(make_result(axes), tmp_path / "run.mp4", dpi=50)
    pixels = round(4.6 * 50) * round(3.4 * 50)
    assert path.stat().st_size == 4 * pixels * 4


def test_an_mp4_without_ffmpeg_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    axes = {"t": np.linspace(0, 1, 4), "x": np.linspace(0, 1, 9)}
    with pytest.raises(ProblemError, match=r"needs the program ffmpeg[^.]*\n.*\.gif"):
        save_animation(make_result(axes), tmp_path / "run.mp4")


@pytest.mark.parametrize("names", ["t", "xy", "txyz"])
def test_what_does_not_move_is_refused(names: str, tmp_path: Path):
    rng = np.random.default_rng(0)
    result = make_result({n: np.sort(rng.random(6)) for n in names})
    with pytest.raises(ProblemError, match="an animation needs"):
        save_animation(result, tmp_path / "run.gif")
    with pytest.raises(ProblemError, match=r"\.gif or \.mp4"):
        save_animation(result, tmp_path / "run.avi")
    assert not list(tmp_path.iterdir())


def test_a_tree_has_a_label_for_each_node_and_a_line_for_each_child():
    text = (
        'coordinates = { t = [0, 1], x = [0, 1] }\nfields = ["u"]\n'
        '[parameters]\nnu = 1\n[equations]\ne = "dt(u) + u*dx(u) = nu*dxx(u)"'
    )
    residual = loads_problem(text, "burgers").equations[0].residual
    ax = panel().add_subplot()
    assert expression_tree(residual, ax) is ax
    labels = sorted(t.get_text() for t in ax.texts)
    wanted = "u u u u \u2202t \u2202x \u2202xx \u03bd \u00d7 \u00d7 + \u2212"
    assert labels == sorted(wanted.split())
    assert len(ax.lines) == len(labels) - 1
