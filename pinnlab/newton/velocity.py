"""Second derivatives in time by velocities, fields of their own: dt(u) = v.

Collocation of the second derivative itself is unstable for waves that are fast for a
slab; collocation of first derivatives at Radau's nodes damps them (van der Houwen,
Sommeijer and Nguyen Huu Cong, 1991; Hairer and Wanner, 1996).
"""

from dataclasses import replace

from pinnlab.equation.expression import Coordinate, Expression, Partial, rebuild
from pinnlab.newton.structure import Evolution
from pinnlab.problem.problem import Unknown
from pinnlab.system.system import System
from pinnlab.system.terms import EVERYWHERE, Term


def with_velocities(system: System, evolution: Evolution) -> System:
    """The system with one field more for each that has a second derivative in time.

    The fields of the problem come first. The system itself where there is none.
    """
    axis, names = evolution.axis, system.coordinates
    known = zip(system.fields, evolution.initial, strict=True)
    # A space keeps the name apart from those that a problem may use.
    velocities = {f: f"velocity of {f}" for f, initial in known if initial == 2}
    if not velocities:
        return system
    here = tuple(Coordinate(c) for c in names)
    still = (0,) * len(names)
    once = tuple(int(i == axis) for i in range(len(names)))

    def change(node: Expression) -> Expression:
        if isinstance(node, Partial) and node.orders[axis] and node.field in velocities:
            orders = tuple(n - o for n, o in zip(node.orders, once, strict=True))
            return Partial(velocities[node.field], orders, node.at)
        return rebuild(node, change)

    def changed(term: Term) -> Term:
        assert isinstance(term.residual, Expression)
        return replace(term, residual=change(term.residual))

    slopes = [
        Term(
            v,
            "equation",
            v,
            EVERYWHERE,
            Partial(f, once, here) - Partial(v, still, here),
        )
        for f, v in velocities.items()
    ]
    fields = (*system.problem.fields, *(Unknown(v) for v in velocities.values()))
    return replace(
        system,
        problem=replace(system.problem, fields=fields),
        equations=(*map(changed, system.equations), *slopes),
        conditions=tuple(map(changed, system.conditions)),
    )
