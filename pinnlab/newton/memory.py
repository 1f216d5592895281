"""Integrals from the start up to now become fields of their own.

The integral of k(s, x, u(s, x)) over s from the start to t is the field w with
dt(w) = k(t, x, u) and w = 0 at the start. So an equation with memory is a local one,
which marches.
"""

from dataclasses import replace

from pinnlab.equation.calculus import substitute
from pinnlab.equation.expression import (
    Coordinate,
    Expression,
    Integral,
    Number,
    Partial,
    rebuild,
    walk,
)
from pinnlab.equation.structure import uses_fields
from pinnlab.newton.structure import rewritten
from pinnlab.problem.problem import Place, Unknown
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term


def localized(system: System) -> System:
    """The system with a field more for each integral that is a memory.

    The fields of the problem come first. The system itself where there is none, or
    where a kernel depends on the time at which it is remembered.
    """
    name = "t" if "t" in system.coordinates else system.coordinates[0]
    start = Number(system.problem.axis(name).lower)
    terms = (*system.equations, *system.conditions)
    nodes = dict.fromkeys(
        n for t in terms if isinstance(t.residual, Expression) for n in walk(t.residual)
    )
    memories = [n for n in nodes if isinstance(n, Integral) and _is(n, name, start)]
    if not memories:
        return system
    plain = tuple(Coordinate(c) for c in system.coordinates)
    axis = system.coordinates.index(name)
    values = {}
    equations, conditions = list(system.equations), list(system.conditions)
    for i, memory in enumerate(memories):
        # A space keeps the name apart from those that a problem may use.
        field = f"memory {i + 1}"
        still = (0,) * len(plain)
        values[memory] = Partial(field, still, plain)
        rate = Partial(field, tuple(int(j == axis) for j in range(len(plain))), plain)
        now = substitute(memory.body, {memory.variable: Coordinate(name)})
        begins = Place(f"{name} = start", ((name, start.value.real),), None)
        equations.append(Term(field, "equation", field, EVERYWHERE, rate - now))
        conditions.append(
            Term(field, "condition", field, begins, values[memory], enforced="rows")
        )
    fields = (*system.problem.fields, *(Unknown(v.field) for v in values.values()))
    return replace(
        system,
        problem=replace(system.problem, fields=fields),
        equations=tuple(_with(t, values) for t in equations),
        conditions=tuple(_with(t, values) for t in conditions),
    )


def _is(node: Integral, name: str, start: Number) -> bool:
    return (
        uses_fields(node.body)
        and (node.lower, node.upper) == (start, Coordinate(name))
        and Coordinate(name) not in set(walk(node.body))
    )


def _with(term: Term, values: dict[Integral, Partial]) -> Term:
    def change(node: Expression) -> Expression:
        if isinstance(node, Integral) and node in values:
            return values[node]
        return rebuild(node, change)

    return rewritten(term, change)
