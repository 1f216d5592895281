"""The tree of an expression as a picture: what the program sees in an equation."""

from matplotlib.axes import Axes

from pinnlab.equation.expression import (
    FUNCTIONS,
    Apply,
    Derivative,
    Expression,
    Field,
    Integral,
    NormalDerivative,
    Number,
    children,
)
from pinnlab.equation.format import INTEGRAL, PARTIAL, pretty
from pinnlab.plotting.style import COLORS, GRAY


SIGNS = {"*": "\N{MULTIPLICATION SIGN}", "-": "\N{MINUS SIGN}", "neg": "\N{MINUS SIGN}"}


def expression_tree(expression: Expression, ax: Axes) -> Axes:
    """The tree, root above: fields in blue, derivatives in orange, the rest in gray."""
    places: list[tuple[float, int, Expression]] = []
    lines: list[tuple[float, float, int]] = []
    width = _place(expression, 0, 0.0, places, lines)
    for above, below, depth in lines:
        ax.plot([above, below], [-depth, -depth - 1], color=GRAY, lw=0.8, zorder=0)
    for x, depth, node in places:
        ax.text(
            x, -depth, label(node), ha="center", va="center", color="white",
            bbox={"boxstyle": "round,pad=0.3", "fc": _color(node), "ec": "none"},
        )  # fmt: skip
    ax.set_xlim(-0.6, width - 0.4)
    ax.set_ylim(-max(d for _, d, _ in places) - 0.5, 0.5)
    ax.set_axis_off()
    return ax


def label(node: Expression) -> str:
    """A node without what is below it."""
    match node:
        case Apply(function, _):
            return SIGNS.get(function, function)
        case Derivative(_, names):
            return f"{PARTIAL}{''.join(names)}"
        case NormalDerivative(_):
            return f"{PARTIAL}n"
        case Integral(_, variable):
            return f"{INTEGRAL}d{variable}"
        case _ if children(node):
            return type(node).__name__.lower()
        case _:
            return pretty(node)


def _place(
    node: Expression,
    depth: int,
    left: float,
    places: list[tuple[float, int, Expression]],
    lines: list[tuple[float, float, int]],
) -> float:
    """Leaves side by side, a parent in the middle above; the next free place."""
    below: list[float] = []
    right = left
    for child in children(node):
        right = _place(child, depth + 1, right, places, lines)
        below.append(places[-1][0])
    x = (below[0] + below[-1]) / 2 if below else left
    lines += [(x, b, depth) for b in below]
    places.append((x, depth, node))
    return right if below else left + 1


def _color(node: Expression) -> str:
    if isinstance(node, Field):
        return COLORS[0]
    if isinstance(node, Derivative | NormalDerivative):
        return COLORS[1]
    operator = isinstance(node, Apply) and node.function not in FUNCTIONS
    return GRAY if operator or isinstance(node, Number) else COLORS[2]
