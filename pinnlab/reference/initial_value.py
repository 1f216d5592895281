"""Read a problem as an evolution, or say why it is none."""

import jax.numpy as jnp
import numpy as np

from pinnlab.equation.calculus import substitute
from pinnlab.equation.expression import Expression, Integral, Number, Partial, walk
from pinnlab.equation.structure import affine, partials
from pinnlab.problem.problem import Problem
from pinnlab.reference.evolution import Component, Evolution
from pinnlab.reference.reference import NoReference
from pinnlab.system.terms import (
    Term,
    condition_terms,
    coordinates,
    equation_terms,
    real_fields,
)


def marching(problem: Problem) -> tuple[str, float, float] | None:
    """The coordinate to march in, from where and to where; None if there is none.

    It is `t`, or the only coordinate, with conditions at one of its ends alone.
    """
    names = coordinates(problem)
    name = "t" if "t" in names else names[0]
    if (name != "t" and len(names) > 1) or name in problem.periodic:
        return None
    axis = problem.axis(name)
    places = [p for c in problem.conditions for p in c.on]
    fixed = {dict(p.fixed)[name] for p in places if name in dict(p.fixed)}
    if len(names) == 1 and any(not p.fixed for p in places):
        return None
    if fixed == {axis.lower}:
        return name, axis.lower, axis.upper
    if fixed == {axis.upper}:
        return name, axis.upper, axis.lower
    return None


def read_evolution(problem: Problem) -> Evolution:
    """The problem as an evolution. Raises `NoReference` where it is none."""
    course = marching(problem)
    if course is None:
        raise NoReference("no coordinate with all its conditions at one end")
    name, start, end = course
    time = coordinates(problem).index(name)
    if any(f.of for f in problem.fields):
        raise NoReference("a field depends on fewer coordinates than the others")
    equations = tuple(_expression(t) for t in equation_terms(problem))
    fields = real_fields(problem)
    orders = _orders(fields, equations, time, coordinates(problem))
    first, walls = _conditions(problem, name)
    bare = Evolution(problem, time, start, end, fields, orders, equations, (), walls)
    initial = tuple(_initial(bare, first, c) for c in bare.components)
    return Evolution(
        problem, time, start, end, fields, orders, equations, initial, walls
    )


def _expression(term: Term) -> Expression:
    if not isinstance(term.residual, Expression):
        raise NoReference(f"'{term.name}' is given as a Python function")
    return term.residual


def _orders(
    fields: tuple[str, ...],
    equations: tuple[Expression, ...],
    time: int,
    names: tuple[str, ...],
) -> tuple[int, ...]:
    if len(equations) != len(fields):
        raise NoReference(f"{len(equations)} equations for {len(fields)} fields")
    every = {p for e in equations for p in partials(e)}
    inside = {
        p for e in equations for n in walk(e) if isinstance(n, Integral)
        for p in partials(n)
    }  # fmt: skip
    here = {n: i for i, n in enumerate(names)}
    for p in every - inside:
        if any(getattr(a, "name", None) != n for n, a in zip(here, p.at, strict=True)):
            raise NoReference(f"a value of '{p.field}' at another place or time")
    orders = tuple(
        max((p.orders[time] for p in every if p.field == f), default=0) for f in fields
    )
    for field, order in zip(fields, orders, strict=True):
        if order == 0:
            raise NoReference(
                f"no equation has a time derivative of '{field}': the equations are "
                "differential-algebraic, which marching does not solve"
            )
    for p in every:
        top = orders[fields.index(p.field)]
        if p.orders[time] == top and sum(p.orders) > top:
            raise NoReference(
                f"the highest time derivative of '{p.field}' is differentiated in space"
            )
    return orders


def _conditions(problem: Problem, name: str) -> tuple[list[Term], tuple[Term, ...]]:
    """Those at the start, and those on the faces of space."""
    first: list[Term] = []
    walls: list[Term] = []
    for term in condition_terms(problem):
        _expression(term)
        if term.place.where is not None:
            raise NoReference(f"condition '{term.name}' holds on a part of a face")
        if tuple(n for n, _ in term.place.fixed) == (name,):
            first.append(term)
        elif term.place.face(problem) is not None:
            walls.append(term)
        else:
            raise NoReference(f"condition '{term.name}' does not hold on a face")
    return first, tuple(walls)


def _initial(
    evolution: Evolution, terms: list[Term], component: Component
) -> Expression:
    """The value that the conditions at the start give to a component."""
    still = (0,) * len(evolution.space)
    wanted = (component[0], evolution.key(component[1], still))
    for term in terms:
        form = affine(_expression(term))
        if form is None or len(form.coefficients) != 1:
            raise NoReference(f"condition '{term.name}' is not a plain initial value")
        ((atom, coefficient),) = form.coefficients.items()
        if isinstance(atom, Partial) and (atom.field, atom.orders) == wanted:
            name = evolution.names[evolution.time]
            value = -form.rest / coefficient
            return substitute(value, {name: Number(evolution.start)})
    field, order = component
    what = f"'{field}'" if order == 0 else f"the time derivative of '{field}'"
    raise NoReference(f"no initial value of {what}")


def _check_mass(evolution: Evolution) -> None:
    """Raise where the equations do not determine every time derivative.

    At a random point, for random values of the fields' derivatives.
    """
    mass, _ = evolution.solved
    rng = np.random.default_rng(1)
    axes = evolution.space
    point = np.array([[a.lower + (a.upper - a.lower) * rng.random() for a in axes]])
    keys = {(p.field, p.orders) for m in mass for p in partials(m)}
    jets = {k: jnp.asarray(rng.normal(size=1)) for k in sorted(keys)}
    found = evolution.values(mass, evolution.start, jnp.asarray(point), jets, {})
    size = len(evolution.fields)
    if np.linalg.matrix_rank(np.asarray(found).reshape(size, size)) < size:
        raise NoReference(
            "the equations do not determine every time derivative: they are "
            "differential-algebraic, which marching does not solve"
        )
