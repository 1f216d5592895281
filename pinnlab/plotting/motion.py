"""Time as frames: curves at several times, and a moving picture."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.animation import (
    AbstractMovieWriter,
    FFMpegWriter,
    FuncAnimation,
    PillowWriter,
)
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pinnlab.atomic import replacing
from pinnlab.errors import ProblemError
from pinnlab.plotting import maps
from pinnlab.plotting.maps import Axis
from pinnlab.plotting.style import COLORS, RC, SEQUENTIAL, math, tidy
from pinnlab.plotting.view import Quantity, fields
from pinnlab.result import Result


def _mp4(speed: int) -> AbstractMovieWriter:
    # Players want an even number of pixels and this format of colors.
    even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
    return FFMpegWriter(fps=speed, codec="libx264", extra_args=even)


MOVIES = {".gif": lambda speed: PillowWriter(fps=speed), ".mp4": _mp4}
MOST_FRAMES = 60
MARGIN = 0.05


def frames(data: tuple[Axis, Axis, np.ndarray], ax: Axes, *, count: int = 6) -> Axes:
    """Curves over the second coordinate at several values of the first, its colors.

    **Arguments:**

    - `data`: `((time, grid), (coordinate, grid), values)`, values `[n, m]`.
    - `count`: how many curves.
    """
    (time, times), (name, grid), values = data
    colors = ScalarMappable(Normalize(times[0], times[-1]), SEQUENTIAL)
    for i in np.linspace(0, len(times) - 1, count).round().astype(int):
        ax.plot(grid, values[i], color=colors.to_rgba(times[i]), lw=1.6)
    ax.set_xlabel(math(name))
    ax.set_xlim(grid[0], grid[-1])
    tidy(ax)
    figure = ax.get_figure()
    if figure is not None:
        bar = figure.colorbar(colors, ax=ax, pad=0.02, aspect=22, label=math(time))
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return ax


def film(
    data: tuple[Axis, Axis, Axis, np.ndarray], ax: Axes, *, count: int = 4
) -> Axes:
    """Maps over two coordinates at several times, side by side in one axis.

    All have the colors of one scale, that of all times.

    **Arguments:**

    - `data`: `((time, grid), (coordinate, grid), (coordinate, grid), values)`, values
        `[n, m, k]`.
    - `count`: how many maps.
    """
    (time, times), first, second, values = data
    norm = maps.value_norm(values)
    indices = np.linspace(0, len(times) - 1, count).round().astype(int)
    for column, i in enumerate(indices):
        part = ax.inset_axes((column / count, 0, 0.9 / count, 1))
        mesh = maps.colored(
            (first, second, values[i]), part, norm, maps.value_colors(norm)
        )
        part.xaxis.set_major_locator(MaxNLocator(2, prune="upper"))
        part.set_title(f"{math(time)} = {times[i]:.3g}")
        if column:
            part.set(ylabel="", yticklabels=[])
        else:
            maps.color_bar(mesh, ax)
    ax.set_axis_off()
    return ax


def save_animation(
    result: Result,
    path: str | Path,
    *,
    count: int = MOST_FRAMES,
    seconds: float = 6.0,
    dpi: int = 80,
) -> Path:
    """A movie of the first field over time: a curve, or a color map of two coordinates.

    **Arguments:**

    - `path`: ends in .gif, or in .mp4, which needs the program ffmpeg.
    - `count`: of frames, at most.

    Raises `ProblemError` without ffmpeg where it is needed, for a result without time,
    or with no or three coordinates in space.
    """
    _kind(path)
    shown = next((f for f in fields(result) if _moves(f)), None)
    if shown is None:
        raise ProblemError(
            "an animation needs a field over 't' and one or two more coordinates; "
            f"the coordinates are {', '.join(result.axes)}"
        )
    with matplotlib.rc_context(RC):
        picture, draw = scene(shown)
    return save_movie(
        (picture, draw, _frame_indices(shown, count)), path, seconds=seconds, dpi=dpi
    )


def save_movie(
    data: tuple[Figure, Callable[[int], None], Sequence[int]],
    path: str | Path,
    *,
    seconds: float = 6.0,
    dpi: int = 80,
) -> Path:
    """A movie of a figure of your own.

    **Arguments:**

    - `data`: the figure, what draws a frame into it, and with which number each time.
    - `path`: ends in .gif, or in .mp4, which needs the program ffmpeg.

    Raises `ProblemError` without ffmpeg where it is needed, or for another ending.
    """
    picture, draw, indices = data
    path, kind = Path(path), _kind(path)
    speed = max(1, round(len(indices) / seconds))
    with replacing(path, force=True) as draft, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"frames{kind}"
        with matplotlib.rc_context(RC):
            moving = FuncAnimation(picture, draw, indices, init_func=list)
            moving.save(file, writer=MOVIES[kind](speed), dpi=dpi)
        draft.write_bytes(file.read_bytes())
    return path


def _kind(path: str | Path) -> str:
    """The ending of a movie's name, one that can be written here."""
    kind = Path(path).suffix.lower()
    if kind not in MOVIES:
        message = f"an animation's name ends in {' or '.join(MOVIES)}"
        raise ProblemError(f"cannot write {path}: {message}")
    if kind == ".mp4" and not FFMpegWriter.isAvailable():
        raise ProblemError(
            f"cannot write {path}: .mp4 needs the program ffmpeg, which is not there",
            hint="install it (apt install ffmpeg, conda install ffmpeg), or take .gif",
        )
    return kind


def scene(quantity: Quantity) -> tuple[Figure, Callable[[int], None]]:
    """A figure of a quantity, and what draws a time into it by its index.

    Axes and colors are those of all times.
    """
    place = [n for n, _ in quantity.axes].index("t")
    times = quantity.axes[place][1]
    space = quantity.axes[:place] + quantity.axes[place + 1 :]
    values = np.moveaxis(quantity.values, place, 0)
    picture = Figure(figsize=(4.6, 3.4), layout="constrained")
    ax = picture.add_subplot()
    show = _curve(ax, space[0], values) if len(space) == 1 else _map(ax, space, values)

    def draw(index: int) -> None:
        show(values[index])
        ax.set_title(f"{quantity.title} at {math('t')} = {times[index]:.3g}")

    return picture, draw


def _curve(ax: Axes, axis: Axis, values: np.ndarray) -> Callable[[np.ndarray], None]:
    name, grid = axis
    (line,) = ax.plot(grid, values[0], color=COLORS[0])
    low, high = np.nanmin(values), np.nanmax(values)
    margin = MARGIN * (high - low) or 1.0
    ax.set_xlim(grid[0], grid[-1])
    ax.set_ylim(low - margin, high + margin)
    ax.set_xlabel(math(name))
    tidy(ax)
    return line.set_ydata


def _map(
    ax: Axes, space: tuple[Axis, ...], values: np.ndarray
) -> Callable[[np.ndarray], None]:
    first, second = space
    maps.signed_map((first, second, values[0]), ax, norm=maps.value_norm(values))
    mesh = ax.collections[0]
    return lambda now: mesh.set_array(np.ma.masked_invalid(now.T))


def _moves(quantity: Quantity) -> bool:
    names = [n for n, _ in quantity.axes]
    return "t" in names and len(names) in (2, 3) and quantity.values.ndim == len(names)


def _frame_indices(quantity: Quantity, most: int) -> list[int]:
    count = len(dict(quantity.axes)["t"])
    shown = np.linspace(0, count - 1, min(count, most))
    return np.unique(shown.round().astype(int)).tolist()
