"""All that a report asks of a model, compiled once for all questions.

Compiling is what takes the time: the residuals of conditions share most of their work
with those of the equations, and pieces of an edge have one residual.
"""

import numpy as np

from pinnlab.equation.expression import Coordinate, Expression
from pinnlab.equation.structure import partials
from pinnlab.evaluation import Evaluator, field_expressions, sized, with_summands
from pinnlab.fields import Model
from pinnlab.network import in_arrays
from pinnlab.system.system import System
from pinnlab.system.terms import Term, outputs


Wanted = tuple[Term | Expression, ...]


class Probe:
    """Measures models of one system at points."""

    def __init__(self, system: System):
        self.system = system
        every = (*system.equations, *system.conditions)
        asked = [w for t in every for w in with_summands(t)]
        asked += outputs(system.problem).values()
        here = tuple(Coordinate(c) for c in system.coordinates)
        # Integrals and traces take long at every point; they are computed where asked.
        near = [
            w
            for w in dict.fromkeys(asked)
            if isinstance(w, Expression) and all(p.at == here for p in partials(w))
        ]
        self._columns: dict[Term | Expression, int] = {w: i for i, w in enumerate(near)}
        self._every = Evaluator(system, near)
        self._others: dict[Wanted, Evaluator] = {}

    def fields(self, model: Model, points: np.ndarray) -> np.ndarray:
        """The fields [n, fields] at [n, dim] points."""
        return self._alone(model, field_expressions(self.system), points)

    def term(
        self, model: Model, term: Term, points: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """A term's residual [n] at points, and the RMS of its largest summand."""
        return sized(self.values(model, with_summands(term), points))

    def values(self, model: Model, wanted: Wanted, points: np.ndarray) -> np.ndarray:
        """What is wanted [n, len(wanted)] at points."""
        columns = [self._columns.get(w, -1) for w in wanted]
        # What is not compiled need not be shared.
        if min(columns) >= 0 and in_arrays(model.network) is None:
            return self._every(model, points)[:, columns]
        return self._alone(model, wanted, points)

    def _alone(self, model: Model, wanted: Wanted, points: np.ndarray) -> np.ndarray:
        if wanted not in self._others:
            self._others[wanted] = Evaluator(self.system, wanted)
        return self._others[wanted](model, points)
