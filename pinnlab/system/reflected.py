"""An evolution on a line as one on a period of twice its length, without walls."""

from dataclasses import replace

from pinnlab.system.system import System


def reflected(system: System) -> System:
    """The system of `t` and one more coordinate, whose ends are taken for mirrors.

    Whether they are is for `pinnlab.newton.mirror` to say.
    """
    problem = system.problem
    (line,) = (a for a in problem.axes if a.name != "t")
    longer = replace(line, upper=2 * line.upper - line.lower)
    axes = tuple(longer if a is line else a for a in problem.axes)
    return replace(
        system,
        problem=replace(problem, axes=axes, periodic=(line.name,)),
        conditions=tuple(c for c in system.conditions if "t" in dict(c.place.fixed)),
    )
