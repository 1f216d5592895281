"""Second derivatives in time by velocities, fields that follow from others.

Collocation of the second derivative itself is unstable for waves that are fast for a
slab. Here the velocity v of a field u is a polynomial of its own, with dt(u) = v at
Radau's nodes only, as for equations of first order: that damps such waves (van der
Houwen, Sommeijer and Nguyen Huu Cong, 1991; Hairer and Wanner, 1996).
"""

from dataclasses import replace

from pinnlab.equation.expression import Expression, Partial, rebuild
from pinnlab.newton.structure import Evolution, rewritten
from pinnlab.problem.problem import Unknown
from pinnlab.system.system import System
from pinnlab.system.terms import Term


def with_velocities(system: System, evolution: Evolution) -> tuple[System, Evolution]:
    """The system with one field more for each that has a second derivative in time.

    The fields of the problem come first. The same system where there is none.
    """
    axis, fields = evolution.axis, system.fields
    second = [f for f, n in zip(fields, evolution.initial, strict=True) if n == 2]
    # A space keeps the name apart from those that a problem may use.
    names = {f: f"velocity of {f}" for f in second}
    if not names:
        return system, evolution

    def change(node: Expression) -> Expression:
        if isinstance(node, Partial) and node.orders[axis] and node.field in names:
            orders = tuple(n - (i == axis) for i, n in enumerate(node.orders))
            return Partial(names[node.field], orders, node.at)
        return rebuild(node, change)

    def changed(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(rewritten(t, change) for t in terms)

    every = (*system.problem.fields, *(Unknown(v) for v in names.values()))
    new = replace(
        system,
        problem=replace(system.problem, fields=every),
        equations=changed(system.equations),
        conditions=changed(system.conditions),
    )
    return new, replace(
        evolution,
        initial=(*(min(n, 1) for n in evolution.initial), *(1 for _ in second)),
        start=changed(evolution.start),
        conditions=changed(evolution.conditions),
        velocity_of={len(fields) + k: fields.index(f) for k, f in enumerate(second)},
    )
