"""Ends of a line that are mirrors: harmonics on a period of twice its length.

A function that is odd or even about both ends goes on as a periodic one, as smooth as
it is (see `pinnlab.reference.reflection`), and harmonics in space make a march whose
work does not grow with the square of their number.
"""

from pinnlab.newton import harmonic
from pinnlab.newton.structure import evolution_of
from pinnlab.reference.initial_value import read_evolution
from pinnlab.reference.reference import NoReference
from pinnlab.reference.reflection import is_mirrored
from pinnlab.system.reflected import reflected
from pinnlab.system.system import System


def mirrored(system: System) -> System | None:
    """The problem on twice the line, whose solution is that on the line, restricted.

    None where the ends are no mirrors, or harmonics do not suit.
    """
    names = system.coordinates
    if "t" not in names or len(names) != 2 or system.problem.periodic:
        return None
    longer = reflected(system)
    evolution = evolution_of(longer)
    if evolution is None or not harmonic.suits(longer, evolution):
        return None
    try:
        read = read_evolution(system.problem)
    except NoReference:
        return None
    return longer if is_mirrored(read, *read.space) else None
