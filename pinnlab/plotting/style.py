"""How pictures look: fonts, color-blind-safe colors, and names as mathematics."""

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import RcKeyType


RC: dict[RcKeyType, object] = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.5,
    "axes.linewidth": 0.7,
    "axes.titlepad": 7.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": 9.0,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "lines.linewidth": 1.8,
    "mathtext.fontset": "dejavusans",
}
"""Used inside `matplotlib.rc_context`, so that nothing global changes."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe and Ito (2008): told apart by every kind of color vision."""

INK = "#222222"
GRAY = "#777777"
SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"
LOGARITHMIC = "cividis"
VERDICTS = {"pass": "#00734C", "unverified": "#A66B00", "fail": "#B03000"}

GREEK = frozenset(
    """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho
    sigma tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon
    Phi Psi Omega""".split()  # noqa: SIM905
)


def math(name: str) -> str:
    """A name as mathtext: `theta` is the letter, `u` is italic, `h_real` is Re h."""
    return f"${_symbol(name)}$"


def _symbol(name: str) -> str:
    for suffix, operator in (("_real", r"\mathrm{Re}\,"), ("_imag", r"\mathrm{Im}\,")):
        if name.endswith(suffix) and name != suffix:
            return operator + _symbol(name.removesuffix(suffix))
    head, _, tail = name.partition("_")
    number = re.fullmatch(r"([A-Za-z]+)(\d+)", head)
    if number and not tail:
        head, tail = number.groups()
    if tail and (len(head) == 1 or head in GREEK):
        return f"{_symbol(head)}_{{{_symbol(tail)}}}"
    if name in GREEK:
        return f"\\{name}"
    if len(name) == 1:
        return name
    return r"\mathrm{" + name.replace("_", r"\_").replace(" ", r"\ ") + "}"


def scientific(value: float) -> str:
    """A number with two digits as mathtext, `3.1 x 10^-5`."""
    if not np.isfinite(value):
        return str(value)
    mantissa, exponent = f"{value:.1e}".split("e")
    if -2 <= int(exponent) <= 2:
        return f"${value:.2g}$"
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"


def tidy(ax: Axes) -> None:
    """A few round ticks on linear axes."""
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
