"""The main panels look as they did: pictures without words, compared with kept ones.

Words are left out because fonts differ between versions of Matplotlib. After a change
that is meant, `python tests/test_images.py` draws the kept pictures anew: look at them.
"""

from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles
from mpl_toolkits.mplot3d import Axes3D

from pinnlab.plotting import (
    arrows,
    band,
    collocation_points,
    convergence,
    curves,
    film,
    frames,
    history,
    intervals,
    isosurfaces,
    magnitude_map,
    planes,
    signed_map,
    spectrum,
    streamlines,
)
from pinnlab.plotting.style import RC


FOLDER = Path(__file__).parent / "images"
TOLERANCE = 3.0
"""RMS over the pixels, of 255; rounding in another version's rasterizer is below 1."""

GRID = np.linspace(0, 1, 41)
T, X, Y = ("t", GRID), ("x", GRID), ("y", GRID)
A, B = np.meshgrid(GRID, GRID, indexing="ij")
WAVE = np.sin(2 * np.pi * A) * np.cos(np.pi * B)
COARSE = np.linspace(-1, 1, 13)
CUBE = ("x", COARSE), ("y", COARSE), ("z", COARSE)
P, Q, R = np.meshgrid(*[COARSE] * 3, indexing="ij")


def members(phase: float) -> np.ndarray:
    shift = np.linspace(-1, 1, 9)[:, None] ** 3
    return np.sin(2 * np.pi * GRID + phase) + 0.2 * shift * GRID


def residual_and_points(ax: Axes, phase: float) -> None:
    magnitude_map((T, X, np.sin(3 * A + phase) * B), ax)
    points = np.modf(np.outer([0.7548777, 0.5698403], np.arange(60)) + phase)[0]
    collocation_points((("t", points[0]), ("x", points[1])), ax)


def errors(phase: float) -> dict[str, np.ndarray]:
    sizes = np.array([8.0, 16, 32, 64])
    return {"a": sizes**-2, "b": sizes[:, None] ** (-3 - phase) * [1, 2, 9]}


def stages(phase: float) -> tuple[dict[str, np.ndarray], list[str]]:
    step = np.arange(60.0)
    loss = np.exp(-step / (6 + phase))
    columns = {"step": step, "loss": loss, "heldout": 3 * np.sqrt(loss)}
    return columns, ["adam"] * 20 + ["ssbroyden"] * 40


def pulse(phase: float) -> np.ndarray:
    return np.exp(-20 * (B - 0.2 - 0.6 * A - 0.1 * phase) ** 2)


def moving(phase: float) -> np.ndarray:
    return np.cos(np.pi * (GRID + phase))[:, None, None] * WAVE


def ball(phase: float) -> np.ndarray:
    return P**2 + Q**2 + (R - 0.4 * phase) ** 2


FLAT: dict[str, Callable[[Axes, float], object]] = {
    "arrows": lambda ax, s: arrows((X, Y, A - 0.5, B - s), ax),
    "band": lambda ax, s: band((X, members(s), {"exact": members(s)[4]}), ax),
    "convergence": lambda ax, s: convergence(
        (("points", np.array([8, 16, 32, 64])), errors(s)), ax, orders=(2,)
    ),
    "curves": lambda ax, s: curves(
        (X, {"a": np.sin(6 * GRID + s)}, {"b": np.cos(5 * GRID)}), ax
    ),
    "film": lambda ax, s: film((T, X, Y, moving(s)), ax, count=3),
    "frames": lambda ax, s: frames((T, X, pulse(s)), ax, count=4),
    "history": lambda ax, s: history(stages(s), ax),
    "intervals": lambda ax, s: intervals(
        ({"a": (1 + s, 0.5, 2), "b": (2, 1, 2.5)}, {"a": 1.2}), ax
    ),
    "residual": residual_and_points,
    "signed": lambda ax, s: signed_map((X, Y, np.sin(6 * A + s) * B), ax),
    "spectrum": lambda ax, s: spectrum(
        (X, {"a": np.exp(-50 * (GRID - 0.5) ** 2 * (1 + s))}), ax
    ),
    "streamlines": lambda ax, s: streamlines((X, Y, 0.5 - B + s, A - 0.5), ax),
}
SOLID: dict[str, Callable[[Axes3D, float], object]] = {
    "isosurfaces": lambda ax, s: isosurfaces((*CUBE, ball(s)), ax, levels=(0.4, 0.9)),
    "planes": lambda ax, s: planes((*CUBE, P * Q + R + s * P), ax),
}
NAMES = sorted([*FLAT, *SOLID])


def draw(name: str, path: Path, phase: float = 0.0) -> Path:
    """The panel of that name without words, as a PNG file."""
    style: dict = RC | {"axes.grid": False}
    with matplotlib.rc_context(style):
        picture = Figure(figsize=(3, 2.2), dpi=60)
        if name in FLAT:
            FLAT[name](picture.add_subplot(), phase)
        else:
            ax = picture.add_subplot(projection="3d")
            assert isinstance(ax, Axes3D)
            SOLID[name](ax, phase)
        remove_ticks_and_titles(picture)
        for ax in (a for one in picture.axes for a in (one, *one.child_axes)):
            assert isinstance(ax, Axes)
            ax.set(xlabel="", ylabel="", xticklabels=[], yticklabels=[])
            ax.set_title("", loc="left")
            if isinstance(ax, Axes3D):
                ax.set_zlabel("")
            if legend := ax.get_legend():
                legend.remove()
        picture.savefig(path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_looks_as_it_did_and_another_one_does_not(name: str, tmp_path: Path):
    kept = FOLDER / f"{name}.png"
    same = draw(name, tmp_path / "same.png")
    assert compare_images(str(kept), str(same), TOLERANCE) is None
    # The tolerance sees a change of the data.
    other = draw(name, tmp_path / "other.png", phase=0.3)
    assert compare_images(str(kept), str(other), TOLERANCE) is not None


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in NAMES:
        draw(each, FOLDER / f"{each}.png")
