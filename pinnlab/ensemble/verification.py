"""Verification of members: what is known of a problem's solution serves all of them."""

import dataclasses
import time
from dataclasses import dataclass, field

import jax

from pinnlab.assembly import network_of
from pinnlab.fields import Model
from pinnlab.grids import ResultGrid, result_grid
from pinnlab.network import AbstractNetwork, Scaled
from pinnlab.outcome import Job, Outcome
from pinnlab.probe import Probe
from pinnlab.problem.problem import Problem
from pinnlab.record import Stop
from pinnlab.solution import Solution
from pinnlab.solver import solution_of
from pinnlab.verify.evidence import Evidence
from pinnlab.verify.verified import Known, Verified, known, verify


@dataclass
class Verifier:
    """Verifies the solutions of one problem, one after another.

    - `seconds`: for the first of them, and again for all `others` together.
    - `facts`: what is known by now; `grid`: of the results; `probe`: compiled for
        the member before, and good for all that share its system.
    """

    problem: Problem
    warnings: tuple[str, ...]
    seconds: float
    others: int
    facts: Known | None = None
    probe: Probe | None = None
    grid: ResultGrid = field(init=False)

    def __post_init__(self) -> None:
        self.grid = result_grid(self.problem)

    def verified(self, outcome: Outcome, job: Job) -> Solution:
        """The solution of the member of a job, with its report."""
        began = time.perf_counter()
        first = self.facts is None
        if self.probe is None or self.probe.system is not outcome.system:
            self.probe = Probe(outcome.system)
        probe = self.probe
        seconds = self.seconds if first else self.seconds / max(1, self.others)
        try:
            facts = self.facts or known(
                outcome.system, self.grid.points, job.target, seconds
            )
            self.facts = facts
            verified = verify(
                probe, outcome.model, outcome.points, self.grid.points,
                job.target, seconds, facts,
            )  # fmt: skip
        except KeyboardInterrupt:
            outcome = dataclasses.replace(outcome, stop=Stop.INTERRUPTED)
            verified = Verified(Evidence((), (), ()), None, None)
        self.facts = verified.known or self.facts
        made = solution_of(
            outcome, probe, job, self.warnings, verified, self.grid, began
        )
        return dataclasses.replace(made, model=_plain(outcome, job.seed))


def _plain(outcome: Outcome, seed: int) -> Model:
    """The model with its sizes in the network again, as a file holds it."""
    network: AbstractNetwork = outcome.model.network
    if not isinstance(network, Scaled):
        return outcome.model
    _, key, _ = jax.random.split(jax.random.key(seed), 3)
    blank = network_of(outcome.system, outcome.settings, outcome.scales, key)
    leaves = jax.tree.leaves(network.inner)
    plain = jax.tree.unflatten(jax.tree.structure(blank), leaves)
    return Model(plain, outcome.model.parameters)
