"""Verification of outcomes: what is known of a solution serves all of a problem."""

import dataclasses
import time
from dataclasses import dataclass, field

import jax
import numpy as np

from pinnlab.assembly import network_of
from pinnlab.fields import Model
from pinnlab.grids import ResultGrid, result_grid
from pinnlab.network import AbstractNetwork, Scaled
from pinnlab.outcome import Job, Outcome, Tried, chosen
from pinnlab.probe import Probe
from pinnlab.problem.problem import Problem
from pinnlab.record import Stop
from pinnlab.solution import Solution
from pinnlab.solved import solution_of
from pinnlab.verify.against import Truth
from pinnlab.verify.evidence import Evidence
from pinnlab.verify.verified import Known, Verified, distances, known, verify


LEAST_SECONDS = 20.0


def seconds_of(budget: float) -> float:
    """What verification may take of a budget of training."""
    return max(LEAST_SECONDS, budget / 2)


@dataclass
class Verifier:
    """Verifies the solutions of one problem, one after another.

    - `seconds`: for the first of them, and again for all `others` together.
    - `facts`: what is known by now; `grid`: of the results; `probe`: compiled for
        the one before, and good for all that share its system.
    """

    problem: Problem
    warnings: tuple[str, ...]
    seconds: float
    others: int = 0
    facts: Known | None = None
    probe: Probe | None = None
    grid: ResultGrid = field(init=False)

    def __post_init__(self) -> None:
        self.grid = result_grid(self.problem)

    def verified(self, tried: Tried, job: Job) -> Solution:
        """The best outcome for a job as a solution, with its report."""
        began = time.perf_counter()
        system, points = tried.outcomes[-1].system, self.grid.points
        seconds = self.seconds
        if self.facts is not None:
            seconds /= max(1, self.others)
        try:
            if self.facts is None:
                _announce(tried, job)
                self.facts = known(system, points, job.target, seconds)
            outcome = _best(tried, self.facts.truth, points)
            probe = self._probe(outcome)
            rivals = [
                (Probe(o.system), o.model)
                for o in tried.outcomes
                if o.model is not outcome.model
            ]
            verified = verify(
                probe, outcome.model, outcome.points, points, job.target, seconds,
                self.facts, rivals,
            )  # fmt: skip
        except KeyboardInterrupt:
            outcome = dataclasses.replace(chosen(tried), stop=Stop.INTERRUPTED)
            probe = self._probe(outcome)
            verified = Verified(Evidence((), (), ()), None, None)
        self.facts = verified.known or self.facts
        made = solution_of(
            outcome, probe, job, self.warnings, verified, self.grid, began
        )
        return dataclasses.replace(made, model=_plain(outcome, job.seed))

    def _probe(self, outcome: Outcome) -> Probe:
        if self.probe is None or self.probe.system is not outcome.system:
            self.probe = Probe(outcome.system)
        return self.probe


def _announce(tried: Tried, job: Job) -> None:
    """Show that training has ended: what follows may take longer."""
    if tried.outcomes[-1].stop is not Stop.INTERRUPTED:
        for row in tried.record.rows[-1:]:
            job.observe(dataclasses.replace(row, stage="verifying"))


def _best(tried: Tried, truth: Truth | None, grid: np.ndarray) -> Outcome:
    """The outcome that is nearest to the truth, if one is known.

    Between two whose worst fields are equally near, the next field decides.
    """
    if truth is None:
        return chosen(tried)
    return chosen(tried, lambda o: distances(o.system, o.model, truth, grid))


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
