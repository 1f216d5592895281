"""Training: stages of one optimizer each, one compiled program a stage.

The host loop reads the clock, keeps the best model, asks for new points and rolls back
after a failure; everything else happens on the device.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.nonfinite import find
from pinnlab.programs import Inspect, Programs, Stage, compile_stage, compiled
from pinnlab.record import Observation, Record, Stop
from pinnlab.residual import LeastSquares


RESTARTS = 3
SECONDS_A_CALL = 0.5


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
ErrorOf = Callable[[Float[Array, " P"]], Array]


def train(
    objective: LeastSquares,
    theta: Float[Array, " P"],
    stages: tuple[Stage, ...],
    limits: Limits,
    *,
    key: PRNGKeyArray,
    observe: Observe,
    error_of: ErrorOf | None = None,
    inspect: Inspect | None = None,
) -> Trained:
    """Run the stages one after another on the same least-squares problem.

    **Arguments:**

    - `observe`: called after every piece of training.
    - `error_of`: the known relative error of parameters, where there is a truth.
    - `inspect`: called with the compiled programs of every stage.

    **Returns:** the parameters with the smallest held-out residual.
    """
    run = _Run(objective, theta, limits, key, observe, error_of)
    run.inspect = inspect
    stop = Stop.ITERATIONS
    for i, stage in enumerate(stages):
        stop = run.stage(stage)
        if stop not in (Stop.ITERATIONS, Stop.STALLED) or i == len(stages) - 1:
            break
    return Trained(run.best, run.objective, run.record, stop, run.best_heldout)


class _Run:
    """What the host loop carries from stage to stage."""

    def __init__(
        self,
        objective: LeastSquares,
        theta: Float[Array, " P"],
        limits: Limits,
        key: PRNGKeyArray,
        observe: Observe,
        error_of: ErrorOf | None,
    ):
        self.objective = objective
        self.theta = theta
        self.limits = limits
        self.key = key
        self.observe = observe
        self.inspect: Inspect | None = None
        self.record = Record()
        self.best = np.array(theta)
        self.best_heldout = np.full(1, np.inf)
        self.heldout, self.found = np.inf, self.best_heldout
        self.error: float | None = None
        self.error_of = error_of
        if error_of is not None:
            began = time.perf_counter()
            self.error_of = compiled(error_of, theta)
            self.record.compile_seconds += time.perf_counter() - began

    def stage(self, stage: Stage) -> Stop:
        """Run one stage to its end."""
        began = time.perf_counter()
        programs = compile_stage(stage, self.objective, self.theta)
        self.record.compile_seconds += time.perf_counter() - began
        if self.inspect is not None:
            programs = self.inspect(stage, programs)
        try:
            stop = self._loop(stage, programs)
            if stop not in (Stop.DIVERGED, Stop.TARGET):
                self._look(stage, programs, redraw=False)
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        if np.isfinite(self.best_heldout).all():
            self.theta = jnp.asarray(self.best)
        return stop

    def _loop(self, stage: Stage, programs: Programs) -> Stop:
        with self._timed():
            state = programs.start(self.objective, self.theta)
        pace, done, failures, stalls = np.inf, 0, 0, 0
        while True:
            count = self._count(stage, done, pace)
            if count == 0:
                reached = stage.iterations and done >= stage.iterations
                return Stop.ITERATIONS if reached else Stop.BUDGET
            before = self.record.train_seconds
            with self._timed():
                carry, info, steps = programs.advance(
                    self.objective, (self.theta, state), jnp.asarray(count)
                )
                steps, loss = int(steps), float(info.loss)
            self.theta, state = carry
            pace = (self.record.train_seconds - before) / steps
            done += steps
            self.record.iterations += steps
            if not np.isfinite(loss):
                failures += 1
                self._roll_back(stage, done)
                if failures > RESTARTS:
                    return Stop.DIVERGED
                with self._timed():
                    state = programs.start(self.objective, self.theta)
                continue
            stalled = bool(info.stalled)
            if stalled or done % stage.look == 0:
                self._look(stage, programs, stage.redraw)
                with self._timed():
                    state = programs.refresh(self.objective, self.theta, state)
            self._tell(stage, done, loss)
            if self._met():
                self.best, self.best_heldout = np.array(self.theta), self.found
                return Stop.TARGET
            stalls = stalls + 1 if stalled else 0
            if stalls > RESTARTS or (stalled and not stage.redraw):
                return Stop.STALLED

    def _count(self, stage: Stage, done: int, pace: float) -> int:
        """How many steps the next call makes; 0 when it is time to stop."""
        left = self.limits.seconds - self.record.train_seconds
        if left <= 0:
            return 0
        count = stage.look - done % stage.look
        if stage.iterations:
            count = min(count, stage.iterations - done)
        if not np.isfinite(pace):
            return min(count, 1)
        count = min(count, max(1, int(SECONDS_A_CALL / pace)))
        if left < pace / 2:
            return 0
        return min(count, max(1, int(left / pace)))

    def _look(self, stage: Stage, programs: Programs, redraw: bool) -> None:
        """Measure the held-out residual, keep the best model, take the new points."""
        with self._timed():
            self.key, key = jax.random.split(self.key)
            objective, heldout = programs.look(self.objective, self.theta, key)
            found = np.asarray(heldout)
        self.found = found
        self.heldout = float(np.sqrt(np.mean(found**2)))
        if self.heldout < np.sqrt(np.mean(self.best_heldout**2)):
            self.best, self.best_heldout = np.array(self.theta), found
        if self.error_of is not None:
            self.error = float(self.error_of(self.theta))
        if redraw:
            self.objective = objective

    def _met(self) -> bool:
        if self.error is not None:
            return self.error < self.limits.error
        return self.heldout < self.limits.heldout

    def _roll_back(self, stage: Stage, done: int) -> None:
        where = find(self.objective, self.theta) or "the loss is not finite"
        self.record.events.append(
            f"{stage.name}, iteration {done}: {where}; went back to the last good model"
        )
        self.theta = jnp.asarray(self.best)

    def _tell(self, stage: Stage, done: int, loss: float) -> None:
        row = Observation(
            stage.name, done, self.record.train_seconds, loss, self.heldout, self.error
        )
        self.record.rows.append(row)
        self.observe(row)

    def _timed(self) -> "_Timed":
        return _Timed(self.record)


class _Timed:
    """Adds the seconds inside a `with` block to the training time."""

    def __init__(self, record: Record):
        self.record = record

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.record.train_seconds += time.perf_counter() - self.began
