"""Checks of the compiled programs while they train: `solve --debug`.

Wraps the programs of each stage, so that training without it costs nothing.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pinnlab.devices import disagreement, fingerprint, single
from pinnlab.memory import free_device_memory
from pinnlab.points import look
from pinnlab.programs import Programs, Stage
from pinnlab.residual import LeastSquares
from pinnlab.result import RunCheck
from pinnlab.team import ALONE, Team


COMPILED = "/jax/core/compile/backend_compile_duration"
MEGABYTE = 2**20
CAUSE = re.compile(r"^\s+\* (at .*)$", re.M)
LONGEST = 120


@dataclass
class Watch:
    """What is seen of a run. `inspect` is given to `solve`.

    - `team`: the processes that train together.
    - `objective`, `theta`: those of the last measurement, on one device; None without
        training.
    - `step_memory`: bytes that the largest stage's program needs.
    """

    team: Team = ALONE
    objective: LeastSquares | None = None
    theta: Array | None = None
    step_memory: int = 0
    recompiled: list[str] = field(default_factory=list)
    transfers: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    keys: set[bytes] = field(default_factory=set)
    events: list[str] = field(default_factory=list)

    def inspect(self, stage: Stage, programs: Programs) -> Programs:
        """The programs with checks around them.

        Raises `MemoryError` where one step needs more memory than is free.
        """
        needed = memory_of(programs.advance)
        self.step_memory = max(self.step_memory, needed)
        free = free_device_memory()
        if free is not None and needed > free:
            raise MemoryError(
                f"({stage.name}: a step needs {needed / MEGABYTE:.0f} MB, "
                f"{free / MEGABYTE:.0f} MB are free; lower solver.points)"
            )
        self.alive.clear()
        return eqx.tree_at(
            lambda p: (p.advance, p.look),
            programs,
            (self._advancing(programs.advance), self._looking(stage, programs.look)),
            is_leaf=callable,
        )

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hears what JAX compiles, and why, inside the block."""

        def listener(event: str, duration_secs: float, **kwargs: str | int) -> None:
            if event == COMPILED:
                self.events.append(str(kwargs.get("fun_name", "a program")))

        causes = _Causes(self.events)
        logger = logging.getLogger("jax")
        spread = logger.propagate
        jax.monitoring.register_event_duration_secs_listener(listener)
        logger.addHandler(causes)
        logger.propagate = False
        try:
            with jax.explain_cache_misses(True):
                yield
        finally:
            logger.propagate = spread
            logger.removeHandler(causes)
            jax.monitoring.unregister_event_duration_listener(listener)

    def checks(self) -> tuple[RunCheck, ...]:
        """What the checks found."""
        grown = len(self.alive) > 3 and bool(np.all(np.diff(self.alive[1:]) > 0))
        last = self.alive[-1] if self.alive else 0
        return (
            _check("compiled once", self.recompiled),
            _check("no transfers in a step", self.transfers),
            _check("random keys used once", self.reused),
            _check("replicas agree", self.differing),
            RunCheck("no arrays leak", not grown, f"{last} arrays alive at the end"),
        )

    def _advancing(self, advance: Callable) -> Callable:
        known: list[int] = []

        def watched(objective: LeastSquares, carry: tuple, count: Array) -> tuple:
            self.alive.append(len(jax.live_arrays()))
            if known:
                self.recompiled += self.events[known.pop() :]
            try:
                with jax.transfer_guard("disallow"):
                    found = advance(objective, carry, count)
            except jax.errors.JaxRuntimeError as error:
                self.transfers.append(str(error).splitlines()[0])
                found = advance(objective, carry, count)
            self._compare((objective, found[0]))
            # After a loss that is not finite its cause is searched, by new programs.
            if bool(jnp.isfinite(found[1].loss)):
                known.append(len(self.events))
            return found

        return watched

    def _compare(self, tree: tuple) -> None:
        differs = disagreement(tree, "training")
        if differs is not None:
            self.differing.append(f"{differs} is not the same on all devices")
        seen = self.team.gathered([fingerprint(tree)])
        if any(s != seen[0] for s in seen):
            self.differing.append("training is not the same on all processes")

    def _looking(self, stage: Stage, measure: Callable) -> Callable:
        def watched(objective: LeastSquares, theta: Array, key: Array) -> tuple:
            before = len(self.events)
            self.objective = objective.on(single())
            self.theta = jnp.asarray(np.asarray(theta))
            # What the watch itself compiles is not the run's.
            del self.events[before:]
            if not self.keys:
                self._check_keys(stage, self.objective, self.theta)
            bits = np.asarray(jax.random.key_data(key)).tobytes()
            if bits in self.keys:
                self.reused.append(f"{stage.name}: two looks had the same key")
            self.keys.add(bits)
            return measure(objective, theta, key)

        return watched

    def _check_keys(self, stage: Stage, objective: LeastSquares, theta: Array) -> None:
        before = len(self.events)
        try:
            with jax.debug_key_reuse(True):
                once = eqx.filter_jit(lambda o, t, k: look(o, t, k, stage.pool))
                once(objective, theta, jax.random.key(0))
        except jax.errors.KeyReuseError as error:
            self.reused.append(str(error).splitlines()[0])
        del self.events[before:]


class _Causes(logging.Handler):
    """Collects the lines in which JAX explains why a program is traced again."""

    def __init__(self, events: list[str]):
        logging.Handler.__init__(self)
        self.events = events
        self.spare = logging.StreamHandler()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith("TRACING CACHE MISS"):
            self.events.extend(c[:LONGEST] for c in CAUSE.findall(message)[:1])
        elif "PERSISTENT COMPILATION CACHE" not in message.upper() and (
            not message.startswith("Not writing persistent cache")
        ):
            # Whatever else JAX warns of is shown as it would be without the watch.
            self.spare.handle(record)


def memory_of(program: Callable) -> int:
    """Bytes that a compiled program needs: arguments, results and what is between."""
    compiled = getattr(program, "compiled", None)
    found = compiled.memory_analysis() if compiled is not None else None
    if found is None:
        return 0
    return (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )


def _check(name: str, problems: list[str]) -> RunCheck:
    kept = list(dict.fromkeys(problems))
    return RunCheck(name, not kept, "; ".join(kept[:3]))
