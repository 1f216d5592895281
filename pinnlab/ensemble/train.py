"""Training many members at once: the host loop of `pinnlab.train` for all of them.

Each member stops, stalls and rolls back on its own. A member that is ahead waits until
the others are where it is, so that all look at their residuals at the same iterations.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pinnlab.best import Best
from pinnlab.ensemble.programs import (
    Layout,
    Members,
    Programs,
    chosen,
    compile_members,
    optimizers,
)
from pinnlab.ensemble.stack import member
from pinnlab.ensemble.state import (
    MemberState,
    at_look,
    count,
    end,
    next_steps,
    restore,
    snapshot_of,
)
from pinnlab.fields import Model
from pinnlab.nonfinite import find
from pinnlab.programs import Stage, compiled
from pinnlab.record import Observation, Record, Stop
from pinnlab.residual import LeastSquares
from pinnlab.snapshot import Position, Snapshot, filled, named
from pinnlab.train import RESTARTS, Limits, Pause, Trained, row_steps


GOES_ON = (Stop.ITERATIONS, Stop.STALLED)
"""After these a member takes part in the next stage."""
Watch = Callable[[int, Observation], None]
"""Told the number of a member, and where it is."""
ErrorOf = Callable[[Model], Array]


def train_members(
    objectives: LeastSquares,
    thetas: Float[Array, "members P"],
    stages: tuple[Stage, ...],
    limits: Limits,
    *,
    keys: PRNGKeyArray,
    layout: Layout,
    observe: Callable[[Observation], None],
    watch: Watch | None = None,
    errors: ErrorOf | None = None,
    pause: Pause | None = None,
    start: Snapshot | None = None,
) -> list[Trained]:
    """Run the stages for all members of stacked objectives.

    **Arguments:**

    - `limits`: the seconds are those of all members together.
    - `keys`: [members], as `train` has one.
    - `observe`: told about the member with the smallest held-out residual.
    - `watch`: told about every member, with an equal part of all seconds.
    - `errors`: stacked functions for the known relative errors of models.
    - `pause`, `start`: as in `train`; a snapshot has all members.

    **Returns:** for each member what `train` returns; the times in its record are its
    share: equal parts of what was spent while it trained.
    """
    run = _Run(objectives, thetas, limits, keys, layout, observe, errors)
    run.pause, run.watch = pause, watch
    first = 0
    if start is not None:
        run.restore(start)
        first = start.position.stage
    for index in range(first, len(stages)):
        for m in run.members if start is None or index > first else ():
            if m.stop is None or m.stop in GOES_ON:
                m.at, m.stop = Position(stage=index), None
        if all(m.stop is not None for m in run.members):
            break
        run.stage(stages[index], index)
    return run.results()


class _Run:
    """What the host loop carries from stage to stage."""

    def __init__(
        self,
        objectives: LeastSquares,
        thetas: Float[Array, "members P"],
        limits: Limits,
        keys: PRNGKeyArray,
        layout: Layout,
        observe: Callable[[Observation], None],
        errors: ErrorOf | None,
    ):
        self.objectives = layout.placed(objectives)
        # A copy: what is advanced is donated.
        self.thetas = layout.placed(jnp.array(thetas))
        self.keys = layout.placed(keys)
        self.limits, self.layout, self.observe = limits, layout, observe
        self.members = [MemberState(Best(np.asarray(t))) for t in thetas]
        self.record = Record()
        self.pause: Pause | None = None
        self.watch: Watch | None = None
        self.saved: Snapshot | None = None
        self.errors = self._compiled_errors(errors)

    def _compiled_errors(self, errors: ErrorOf | None) -> Callable | None:
        if errors is None:
            return None
        placed = self.layout.placed(errors)

        def error(of: ErrorOf, objective: LeastSquares, theta: Array) -> Array:
            return of(objective.model(theta))

        with self._clock("compile_seconds"):
            over = self.layout.over(error)
            program = compiled(over, placed, self.objectives, self.thetas)
        return lambda: np.asarray(program(placed, self.objectives, self.thetas))

    def stage(self, stage: Stage, index: int) -> None:
        """Run one stage until every member has a reason to stop."""
        taking_part = [m for m in self.members if m.at.stage == index]
        try:
            programs = self._programs(stage)
            self._loop(stage, programs)
            ended = (Stop.DIVERGED, Stop.TARGET)
            last = [m in taking_part and m.stop not in ended for m in self.members]
            self._look(stage, programs, np.array(last), redraw=False)
        except KeyboardInterrupt:
            for m in self._active():
                m.stop = Stop.INTERRUPTED
        for m in taking_part:
            if m.best.known:
                self._put(m, m.best.theta)

    def _active(self) -> list[MemberState]:
        return [m for m in self.members if m.stop is None]

    def _put(self, one: MemberState, theta: np.ndarray) -> None:
        thetas = self.thetas.at[self.members.index(one)].set(theta)
        self.thetas = self.layout.placed(thetas)

    def _together(self, stage: Stage) -> Members:
        rollbacks = [m.at.rollbacks for m in self.members]
        made = optimizers(stage, rollbacks, self.thetas.dtype)
        return Members(self.objectives, self.layout.placed(made))

    def _programs(self, stage: Stage) -> Programs:
        with self._clock("compile_seconds"):
            every = self._together(stage)
            return compile_members(stage, every, self.thetas, self.keys, self.layout)

    def _loop(self, stage: Stage, programs: Programs) -> None:
        every, pace = self._together(stage), np.inf
        states = self._first_states(stage, programs, every)
        while self._active():
            self._pause(states)
            left = self.limits.seconds - self.record.train_seconds
            counts = next_steps(self.members, stage, left, pace)
            if not counts.any():
                end(self.members, stage)
                return
            before = self.record.train_seconds
            with self._clock("train_seconds"):
                asked = self.layout.placed(jnp.asarray(counts))
                self.thetas, states, progress = programs.advance(
                    every, self.thetas, states, asked
                )
                steps, loss = np.asarray(progress.steps), np.asarray(progress.loss)
                stalled = np.asarray(progress.stalled) & (counts > 0)
            pace = (self.record.train_seconds - before) / max(1, steps.max())
            count(self.members, steps)
            lost = (counts > 0) & ~np.isfinite(loss)
            if lost.any():
                self._roll_back(stage, lost)
                every = self._together(stage)
                states = self._restarted(programs, every, states, lost)
            due = (counts > 0) & ~lost & (stalled | at_look(self.members, stage))
            if due.any():
                self._look(stage, programs, due, stage.changes)
                every = dataclasses.replace(every, objectives=self.objectives)
                with self._clock("train_seconds"):
                    who = self.layout.placed(jnp.asarray(due))
                    states = programs.refresh(every, self.thetas, states, who)
            self._judge(stage, (counts > 0) & ~lost, stalled, loss)

    def _pause(self, states: object) -> None:
        """Let a checkpoint be taken; an interrupt that waited acts here."""
        if self.pause is not None and self.pause(lambda: self.snapshot(states)):
            raise KeyboardInterrupt

    def _first_states(self, stage: Stage, programs: Programs, every: Members):
        """The optimizers' states where training begins or goes on."""
        with self._clock("train_seconds"):
            states = programs.start(every, self.thetas)
        saved, self.saved = self.saved, None
        if saved is None:
            return states
        if saved.complete:
            return self.layout.placed(filled(states, saved.arrays, "state"))
        self.record.events.append(
            f"{stage.name}: the optimizers' states were too large for the checkpoint "
            "and start anew"
        )
        return states

    def snapshot(self, states: object) -> Snapshot:
        """Everything that the members need to go on."""
        arrays = {
            "thetas": self.thetas,
            "keys": jax.random.key_data(self.keys),
            **named(self.objectives, "objective"),
            **named(states, "state"),
        }
        return snapshot_of(self.members, arrays, self.record)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot; the optimizers' states follow when it is compiled."""
        arrays, placed = snapshot.arrays, self.layout.placed
        self.thetas = placed(filled(self.thetas, arrays, "thetas"))
        self.keys = placed(jax.random.wrap_key_data(jnp.array(arrays["keys"])))
        self.objectives = placed(filled(self.objectives, arrays, "objective"))
        restore(self.members, arrays)
        self.saved = snapshot
        compiling = self.record.compile_seconds
        self.record = snapshot.record
        self.record.compile_seconds += compiling

    def _roll_back(self, stage: Stage, lost: np.ndarray) -> None:
        """To the best models; a member that was lost too often stops there."""
        for index in np.flatnonzero(lost).tolist():
            m = self.members[index]
            m.at = dataclasses.replace(m.at, rollbacks=m.at.rollbacks + 1)
            objective = member(self.objectives, index)
            where = find(objective, self.thetas[index]) or "the loss is not finite"
            m.record.events.append(
                f"{stage.name}, iteration {m.at.done}: {where}; went back to the last "
                "good model, with shorter steps"
            )
            self._put(m, m.best.theta)
            if m.at.rollbacks > RESTARTS:
                m.stop = Stop.DIVERGED

    def _restarted(self, programs: Programs, every: Members, states, lost: np.ndarray):
        with self._clock("train_seconds"):
            fresh = programs.start(every, self.thetas)
            return self.layout.placed(chosen(jnp.asarray(lost), fresh, states))

    def _look(
        self, stage: Stage, programs: Programs, who: np.ndarray, redraw: bool
    ) -> None:
        """Measure some members, keep their best models, take their new points."""
        with self._clock("train_seconds"):
            asked = self.layout.placed(jnp.asarray(who))
            new = jnp.full_like(asked, redraw)
            found = programs.look(
                self._together(stage), self.thetas, self.keys, asked, new
            )
            # Empty arrays leave a program without their devices.
            self.objectives, heldout, self.keys = self.layout.placed(found)
            heldout, thetas = np.asarray(heldout), np.asarray(self.thetas)
            errors = self.errors() if self.errors else None
        for index in np.flatnonzero(who):
            error = None if errors is None else float(errors[index])
            self.members[index].best.measured(thetas[index], heldout[index], error)

    def _judge(
        self, stage: Stage, who: np.ndarray, stalled: np.ndarray, loss: np.ndarray
    ) -> None:
        """Write down where members are, and stop those that have a reason to."""
        for index in np.flatnonzero(who):
            m, stuck = self.members[index], bool(stalled[index])
            self._tell(stage, m, float(loss[index]), stuck)
            stalls = m.at.stalls + 1 if stuck else 0
            m.at = dataclasses.replace(m.at, stalls=stalls)
            if m.best.met(self.limits.heldout, self.limits.error):
                m.best.keep(np.asarray(self.thetas[index]))
                m.stop = Stop.TARGET
            elif stalls > RESTARTS or (stuck and not stage.redraw):
                m.stop = Stop.STALLED
            elif m.at.done == stage.iterations:
                m.stop = Stop.ITERATIONS
        rows = [m.record.rows[-1] for m in self.members if m.record.rows]
        if rows:
            first = min(rows, key=lambda row: row.heldout)
            self.observe(dataclasses.replace(first, elapsed=self.record.train_seconds))
        share = self.record.train_seconds / len(self.members)
        for index, m in enumerate(self.members):
            if self.watch and m.record.rows:
                self.watch(index, dataclasses.replace(m.record.rows[-1], elapsed=share))

    def _tell(self, stage: Stage, one: MemberState, loss: float, stalled: bool) -> None:
        at, best = one.at.done, one.best
        ended = stalled or at == stage.iterations
        if ended or at % stage.look % row_steps(stage) == 0:
            spent = one.record.train_seconds
            row = Observation(stage.name, at, spent, loss, best.size, best.error)
            one.record.rows.append(row)

    def results(self) -> list[Trained]:
        """What every member led to."""
        found = []
        for index, m in enumerate(self.members):
            m.record.compile_seconds = self.record.compile_seconds / len(self.members)
            objective = member(self.objectives, index)
            m.record.events += self.record.events
            stop = m.stop or Stop.ITERATIONS
            best = m.best
            found.append(Trained(best.theta, objective, m.record, stop, best.heldout))
        return found

    @contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        """Adds the seconds inside a `with` block to one of the times."""
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            setattr(self.record, name, getattr(self.record, name) + spent)
            sharing = self._active() or self.members
            for m in sharing if name == "train_seconds" else ():
                m.record.train_seconds += spent / len(sharing)
