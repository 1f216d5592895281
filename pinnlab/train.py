"""Training: stages of one optimizer each, one compiled program a stage.

The host loop reads the clock, keeps the best model, asks for new points and rolls back
after a failure; everything else happens on the device. The clock decides only when to
stop and how many steps a call makes, which changes no number that is computed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.best import Best
from pinnlab.devices import replicated, single
from pinnlab.fields import Model
from pinnlab.nonfinite import find
from pinnlab.programs import Inspect, Programs, Stage, compile_stage, compiled
from pinnlab.record import Observation, Record, Stop
from pinnlab.residual import LeastSquares
from pinnlab.snapshot import Position, Snapshot, filled, named


RESTARTS = 3
RESOLVED = 1e-4
"""Below this relative held-out residual another network may take what is left."""
SECONDS_A_CALL = 0.5
ROWS_A_LOOK = 10
"""Rows of the history between two looks: at iterations that no clock decides."""


@dataclass(frozen=True)
class Limits:
    """When to stop: seconds of training, a held-out residual, or a known error."""

    seconds: float
    heldout: float
    error: float


@dataclass(frozen=True)
class Trained:
    """The best parameters found, the last objective, and the history.

    `heldout` is every term's held-out RMS residual at `theta`, relative to its scale.
    """

    theta: np.ndarray
    objective: LeastSquares
    record: Record
    stop: Stop
    heldout: np.ndarray


Observe = Callable[[Observation], None]
ErrorOf = Callable[[Model], Array]
Pause = Callable[[Callable[[], Snapshot]], bool]
Decide = Callable[[float], float]


@dataclass(frozen=True)
class Hooks:
    """What others do while training goes on.

    - `observe`: called after every piece of training.
    - `error_of`: the known relative error of a model, where there is a truth.
    - `inspect`: called with the compiled programs of every stage.
    - `pause`: called between pieces with a function that takes a snapshot; True ends
        training as an interrupt does.
    - `decide`: gives what the first of several processes read from its clock.
    """

    observe: Observe
    error_of: ErrorOf | None = None
    inspect: Inspect | None = None
    pause: Pause | None = None
    decide: Decide = float


def train(
    objective: LeastSquares,
    theta: Float[Array, " P"],
    stages: tuple[Stage, ...],
    limits: Limits,
    *,
    key: PRNGKeyArray,
    hooks: Hooks,
    start: Snapshot | None = None,
) -> Trained:
    """Run the stages one after another on the same least-squares problem.

    Its points are split over the devices of its mesh.

    **Arguments:**

    - `start`: goes on from there, to the same bits that would have been reached.

    **Returns:** the parameters with the smallest held-out residual.

    Raises `ProblemError` for a snapshot of another objective.
    """
    run = _Run(objective, theta, limits, key, hooks)
    if start is not None:
        for stage in stages[: start.position.stage + 1]:
            run.begin(stage)
        run.restore(start)
    stop = Stop.ITERATIONS
    for i in range(run.at.stage, len(stages)):
        if i > run.at.stage:
            run.at = Position(stage=i)
            run.begin(stages[i])
        stop = run.stage(stages[i])
        if stop not in (Stop.ITERATIONS, Stop.STALLED):
            break
    best = run.best
    return Trained(best.theta, run.objective, run.record, stop, best.heldout)


class _Run:
    """What the host loop carries from stage to stage."""

    def __init__(
        self,
        objective: LeastSquares,
        theta: Float[Array, " P"],
        limits: Limits,
        key: PRNGKeyArray,
        hooks: Hooks,
    ):
        self.mesh = objective.mesh
        self.objective = objective.on(self.mesh)
        self.theta: Array = replicated(theta, self.mesh)
        self.limits = limits
        self.key = key
        self.hooks = hooks
        self.at = Position()
        self.record = Record()
        self.saved: Snapshot | None = None
        self.made: Programs | None = None
        self.best = Best(theta, self._error_of())

    def _error_of(self) -> Callable[[Array], Array] | None:
        known, objective = self.hooks.error_of, self.objective.on(single())
        if known is None:
            return None
        began = time.perf_counter()
        found = compiled(lambda theta: known(objective.model(theta)), self.theta)
        self.record.compile_seconds += time.perf_counter() - began
        return found

    def begin(self, stage: Stage) -> None:
        """Take the stage's own objective and parameters, where it has such."""
        if stage.begin is None:
            return
        alone, best = self.objective.on(single()), jnp.asarray(self.best.theta)
        residual = self.best.worst if self.best.known else 1.0
        objective, theta = stage.begin(alone, best, residual)
        self.objective = objective.on(self.mesh)
        self.theta = replicated(theta, self.mesh)
        self.best = self.best.renewed(theta, self._error_of())

    def stage(self, stage: Stage) -> Stop:
        """Run one stage to its end."""
        self.made = None
        programs = self._programs(stage)
        try:
            stop, programs = self._loop(stage, programs)
            if stop not in (Stop.DIVERGED, Stop.TARGET):
                self._look(programs, redraw=False)
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        if self.best.known:
            self.theta = replicated(jnp.asarray(self.best.theta), self.mesh)
        return stop

    def _programs(self, stage: Stage) -> Programs:
        began = time.perf_counter()
        careful = stage.careful(self.at.rollbacks)
        self.made = compile_stage(careful, self.objective, self.theta, self.made)
        programs = self.made
        self.record.compile_seconds += time.perf_counter() - began
        if self.hooks.inspect is not None:
            programs = self.hooks.inspect(stage, programs)
        return programs

    def _loop(self, stage: Stage, programs: Programs) -> tuple[Stop, Programs]:
        """Until a reason to stop; the programs are others after a divergence."""
        state, pace = self._first_state(stage, programs), np.inf
        while True:
            if self._interrupted(state):
                return Stop.INTERRUPTED, programs
            count = int(self.hooks.decide(self._count(stage, pace)))
            if count == 0:
                reached = stage.iterations and self.at.done >= stage.iterations
                return Stop.ITERATIONS if reached else Stop.BUDGET, programs
            before = self.record.train_seconds
            with self._timed():
                carry, info, steps = programs.advance(
                    self.objective,
                    (self.theta, state),
                    replicated(jnp.asarray(count), self.mesh),
                )
                steps, loss = int(steps), float(info.loss)
            self.theta, state = carry
            pace = (self.record.train_seconds - before) / steps
            self.at = replace(self.at, done=self.at.done + steps)
            self.record.iterations += steps
            if not np.isfinite(loss):
                self._roll_back(stage)
                if self.at.rollbacks > RESTARTS:
                    return Stop.DIVERGED, programs
                programs = self._programs(stage)
                state = self._first_state(stage, programs)
                continue
            stalled = bool(info.stalled)
            if stalled or self.at.done % stage.look == 0:
                self._look(programs, stage.changes)
                with self._timed():
                    state = programs.refresh(self.objective, self.theta, state)
            self._tell(stage, loss, stalled)
            if self.best.met(self.limits.heldout, self.limits.error):
                self.best.keep(self.theta)
                return Stop.TARGET, programs
            if self._hands_over(stage):
                return Stop.ITERATIONS, programs
            self.at = replace(self.at, stalls=self.at.stalls + 1 if stalled else 0)
            if self.at.stalls > RESTARTS or (stalled and not stage.redraw):
                return Stop.STALLED, programs

    def _hands_over(self, stage: Stage) -> bool:
        """Whether the next stage will do more: this is resolved and its share used."""
        if stage.share == 1 or self.at.done % stage.look:
            return False
        used = self.hooks.decide(self.record.train_seconds)
        return used > stage.share * self.limits.seconds and self.best.size < RESOLVED

    def _first_state(self, stage: Stage, programs: Programs):
        """The optimizer's state where training begins or goes on."""
        with self._timed():
            state = programs.start(self.objective, self.theta)
        saved, self.saved = self.saved, None
        if saved is None:
            return state
        if saved.complete:
            return replicated(filled(state, saved.arrays, "state"), self.mesh)
        self.record.events.append(
            f"{stage.name}, iteration {self.at.done}: the optimizer's state was too "
            "large for the checkpoint and starts anew"
        )
        return state

    def _count(self, stage: Stage, pace: float) -> int:
        """How many steps the next call makes; 0 when it is time to stop."""
        left = self.limits.seconds - self.record.train_seconds
        if left <= 0:
            return 0
        done, row = self.at.done % stage.look, row_steps(stage)
        count = min(stage.look - done, row - done % row)
        if stage.iterations:
            count = min(count, stage.iterations - self.at.done)
        if not np.isfinite(pace):
            return min(count, 1)
        count = min(count, max(1, int(SECONDS_A_CALL / pace)))
        if left < pace / 2:
            return 0
        return min(count, max(1, int(left / pace)))

    def _look(self, programs: Programs, redraw: bool) -> None:
        """Measure the held-out residual, keep the best model, take the new points."""
        with self._timed():
            self.key, key = jax.random.split(self.key)
            key = replicated(key, self.mesh)
            fresh = self.best.look(programs, self.objective, self.theta, key)
        if redraw:
            self.objective = fresh

    def _roll_back(self, stage: Stage) -> None:
        self.at = replace(self.at, rollbacks=self.at.rollbacks + 1)
        alone, theta = self.objective.on(single()), jnp.asarray(np.asarray(self.theta))
        where = find(alone, theta) or "the loss is not finite"
        self.record.events.append(
            f"{stage.name}, iteration {self.at.done}: {where}; went back to the last "
            "good model, with shorter steps"
        )
        self.theta = replicated(jnp.asarray(self.best.theta), self.mesh)

    def _tell(self, stage: Stage, loss: float, stalled: bool) -> None:
        at, seconds, best = self.at.done, self.record.train_seconds, self.best
        row = Observation(stage.name, at, seconds, loss, best.size, best.error)
        if stalled or at == stage.iterations or at % stage.look % row_steps(stage) == 0:
            self.record.rows.append(row)
        self.hooks.observe(row)

    def _interrupted(self, state: object) -> bool:
        pause = self.hooks.pause
        return pause is not None and pause(lambda: self.snapshot(state))

    def snapshot(self, state: object) -> Snapshot:
        """Everything that training needs to go on; arrays that the next call reuses."""
        return Snapshot(
            self.at,
            {
                "theta": self.theta,
                "key": jax.random.key_data(self.key),
                **self.best.arrays(),
                **named(self.objective.on(single()), "objective"),
                **named(state, "state"),
            },
            self.record,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot; the optimizer's state follows when it is compiled."""
        theta = filled(self.theta, snapshot.arrays, "theta")
        self.theta = replicated(theta, self.mesh)
        alone = self.objective.on(single())
        alone = filled(alone, snapshot.arrays, "objective")
        self.objective = alone.on(self.mesh)
        self.key = jax.random.wrap_key_data(jnp.array(snapshot.arrays["key"]))
        self.best.restore(snapshot.arrays)
        self.at, self.saved = snapshot.position, snapshot
        compiling = self.record.compile_seconds
        self.record = snapshot.record
        self.record.compile_seconds += compiling

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Adds the seconds inside a `with` block to the training time."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.record.train_seconds += time.perf_counter() - began


def row_steps(stage: Stage) -> int:
    """Iterations between two rows of the history."""
    return max(1, stage.look // ROWS_A_LOOK)
