"""Training the members of an ensemble: those whose programs are the same in one."""

import dataclasses
from collections.abc import Iterator
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import tomli_w

from pinnlab.checkpoint import Identity
from pinnlab.ensemble.programs import Layout, default_layout
from pinnlab.ensemble.stack import difference, stacked
from pinnlab.ensemble.train import Watch, train_members
from pinnlab.keeper import Keeper
from pinnlab.outcome import Job, Outcome
from pinnlab.settings import settings_table
from pinnlab.training import Prepared, limits_of, trained_outcome
from pinnlab.verify.known import KnownError, error_of


Found = Outcome | FloatingPointError
"""What a member led to."""


def trained_in_groups(
    prepared: list[Prepared],
    job: Job,
    layout: Layout | None,
    watch: Watch | None = None,
) -> list[Found]:
    """Those whose programs are the same in one; the groups one after another.

    **Arguments:**

    - `watch`: as in `train_members`.
    """
    found: dict[int, Found] = {}
    left, waiting = job.budget, len(prepared)
    for index, group in enumerate(_groups(prepared)):
        seconds = left * len(group) / waiting
        own = dataclasses.replace(job, keeper=keeper_of(job, index))
        those = [prepared[i] for i in group]
        theirs = watch and _renumbered(watch, group)
        outcomes = _trained_together(those, own, seconds, layout, theirs)
        found |= dict(zip(group, outcomes, strict=True))
        records = [o.record for o in outcomes if isinstance(o, Outcome)]
        left = max(1.0, left - sum(r.train_seconds for r in records))
        waiting -= len(group)
    return [found[i] for i in range(len(prepared))]


def _renumbered(watch: Watch, group: list[int]) -> Watch:
    return lambda index, row: watch(group[index], row)


def _groups(prepared: list[Prepared]) -> Iterator[list[int]]:
    left = list(range(len(prepared)))
    while left:
        first = prepared[left[0]]
        group = [
            i
            for i in left
            if prepared[i].plan.settings == first.plan.settings
            and not difference(first.objective, prepared[i].objective)
        ]
        yield group
        left = [i for i in left if i not in group]


def _trained_together(
    prepared: list[Prepared],
    job: Job,
    seconds: float,
    layout: Layout | None,
    watch: Watch | None,
) -> list[Found]:
    errors = [error_of(p.system) for p in prepared]
    known_ones = [e for e in errors if e is not None]
    keeper = job.keeper
    with keeper.deferring() if keeper else nullcontext():
        trained = train_members(
            stacked([p.objective for p in prepared]),
            jnp.stack([p.theta for p in prepared]),
            prepared[0].plan.stages,
            limits_of(job, seconds),
            keys=jnp.stack([p.key for p in prepared]),
            layout=layout or default_layout(len(prepared)),
            observe=job.observe,
            watch=watch,
            errors=_stacked_errors(known_ones),
            pause=keeper.pause if keeper else None,
            start=keeper.start(_identity(prepared, job)) if keeper else None,
        )
    found: list[Found] = []
    for p, t in zip(prepared, trained, strict=True):
        try:
            found.append(trained_outcome(p, t))
        except FloatingPointError as error:
            found.append(error)
    return found


def keeper_of(job: Job, index: int) -> Keeper | None:
    """That of one of several trainings."""
    return job.keeper.part(index) if job.keeper else None


def _identity(prepared: list[Prepared], job: Job) -> Identity:
    """What the members have in common, and what each of them is."""
    problems = dict.fromkeys(p.system.problem.source for p in prepared)
    keys = [jax.random.key_data(p.key).tolist() for p in prepared]
    settings = tomli_w.dumps(settings_table(prepared[0].plan.settings))
    text = f"# {len(keys)} members with the keys {keys}\n{settings}"
    return Identity("\n".join(problems), text, job.seed, job.target)


def _stacked_errors(errors: list[KnownError]) -> KnownError | None:
    """None where a truth is missing, or finite at other points than another."""
    if not errors or len({e.truth.shape for e in errors}) > 1:
        return None
    return stacked(errors)
