"""Questions about an expanded expression: what it depends on, whether it is affine."""

from dataclasses import dataclass

from pinnlab.equation.expression import (
    ZERO,
    Apply,
    Coordinate,
    Expression,
    Integral,
    Number,
    Partial,
    call,
    children,
    walk,
)


STEPS = {"sign", "heaviside", "where"}
KINKED = STEPS | {"abs", "min", "max"}


def partials(node: Expression) -> tuple[Partial, ...]:
    """Every distinct `Partial` in the expression."""
    return tuple(n for n in walk(node) if isinstance(n, Partial))


def uses_fields(node: Expression) -> bool:
    """Whether the expression depends on any field."""
    return degree(node) > 0


def uses_coordinates(node: Expression) -> bool:
    """Whether the expression depends on the point (or has a bound variable)."""
    return any(isinstance(n, Coordinate) for n in walk(node))


def has_steps(node: Expression) -> bool:
    """Whether a function that can jump acts on the coordinates."""
    return any(
        isinstance(n, Apply) and n.function in STEPS and uses_coordinates(n)
        for n in walk(node)
    )


def is_kinked(node: Expression) -> bool:
    """Whether a non-smooth function acts on something that varies."""
    return any(
        isinstance(n, Apply) and n.function in KINKED and uses_coordinates(n)
        for n in walk(node)
    )


def static_nodes(node: Expression) -> tuple[Expression, ...]:
    """The maximal sub-expressions that depend on the point but on no field.

    Their values can be computed once for each set of points.
    """
    found: dict[Expression, None] = {}
    seen: set[Expression] = set()

    def visit(node: Expression) -> None:
        if node in seen:
            return
        seen.add(node)
        if not uses_fields(node):
            if children(node) and uses_coordinates(node) and not _has_free_bound(node):
                found[node] = None
            return
        if not isinstance(node, Partial | Integral):
            for child in children(node):
                visit(child)

    visit(node)
    return tuple(found)


def _has_free_bound(node: Expression) -> bool:
    bound = {n.variable for n in walk(node) if isinstance(n, Integral)}
    return any(
        isinstance(n, Coordinate) and n.name.startswith("$") and n.name not in bound
        for n in walk(node)
    )


def degree(node: Expression) -> int:
    """0 without fields, 1 where the fields enter affinely, 2 otherwise."""
    # Kept on the node: trees share nodes, and this is asked of every one of them.
    known = node.__dict__.get("_degree")
    if known is None:
        known = _degree(node)
        object.__setattr__(node, "_degree", known)
    return known


def _degree(node: Expression) -> int:
    match node:
        case Partial():
            return 1
        case Apply("+" | "-" | "neg", arguments):
            return max(degree(a) for a in arguments)
        case Apply("*", (a, b)):
            return min(2, degree(a) + degree(b))
        case Apply("/", (a, b)):
            return degree(a) if degree(b) == 0 else 2
        case Apply("where", (c, a, b)):
            return max(degree(a), degree(b)) if degree(c) == 0 else 2
        case Apply(_, arguments):
            return 0 if all(degree(a) == 0 for a in arguments) else 2
        case Integral(body, _, lower, upper):
            limits = max(degree(lower), degree(upper))
            return degree(body) if limits == 0 else 2
        case _:
            return 0


Atom = Partial | Integral


@dataclass(frozen=True)
class Affine:
    """sum_i coefficients[i] * atoms[i] + rest, the coefficients without fields.

    An atom is a partial derivative, or an integral over an expression of fields.
    """

    coefficients: dict[Atom, Expression]
    rest: Expression


def affine(node: Expression) -> Affine | None:
    """The expression as an affine function of partials and integrals; None if not."""
    match node:
        case _ if not uses_fields(node):
            return Affine({}, node)
        case Partial():
            return Affine({node: Number(1.0)}, ZERO)
        case Integral(body, _, lower, upper):
            if uses_fields(lower) or uses_fields(upper) or degree(body) > 1:
                return None
            return Affine({node: Number(1.0)}, ZERO)
        case Apply("neg", (a,)):
            return _combine("*", Affine({}, Number(-1.0)), affine(a))
        case Apply("where", (condition, a, b)):
            return _chosen(condition, affine(a), affine(b))
        case Apply(function, (a, b)):
            return _combine(function, affine(a), affine(b))
        case _:
            return None


def _chosen(condition: Expression, a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None or uses_fields(condition):
        return None
    keys = dict.fromkeys((*a.coefficients, *b.coefficients))
    either = lambda x, y: call("where", condition, x, y)
    return Affine(
        {
            k: either(a.coefficients.get(k, ZERO), b.coefficients.get(k, ZERO))
            for k in keys
        },
        either(a.rest, b.rest),
    )


def _combine(function: str, a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None:
        return None
    if function in ("+", "-"):
        keys = dict.fromkeys((*a.coefficients, *b.coefficients))
        return Affine(
            {
                k: call(
                    function, a.coefficients.get(k, ZERO), b.coefficients.get(k, ZERO)
                )
                for k in keys
            },
            call(function, a.rest, b.rest),
        )
    if function == "*" and a.coefficients and not b.coefficients:
        a, b = b, a
    scaled = (a, b) if function == "*" else (b, a)
    factor, other = scaled
    if function not in ("*", "/") or factor.coefficients:
        return None
    apply = (
        (lambda e: factor.rest * e) if function == "*" else (lambda e: e / factor.rest)
    )
    return Affine(
        {k: apply(c) for k, c in other.coefficients.items()}, apply(other.rest)
    )
