"""A strong Wolfe line search: bracketing, then zoom by cubic interpolation.

It seeks a > 0 with phi(a) = f(x + a p) and phi' = p . grad f such that

    phi(a) <= phi(0) + c1 a phi'(0)   and   |phi'(a)| <= c2 |phi'(0)|

(Wolfe 1969; Nocedal and Wright 2006, algorithms 3.5 and 3.6). Where the decrease drowns
in rounding, phi(a) <= phi(0) + few eps |phi(0)| with phi'(a) <= (2 c1 - 1) phi'(0)
replaces the first condition (Hager and Zhang 2005). A trial whose value or gradient is
not finite counts as infinitely high. Cost: one value and gradient a trial, usually one
trial; the gradient at the accepted point is returned, so nothing is evaluated twice.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


SUFFICIENT = 1e-4
CURVATURE = 0.9
EXPANSION = 4.0
MAX_EVALUATIONS = 25

ValueAndGrad = Callable[
    [Float[Array, " P"]], tuple[Float[Array, ""], Float[Array, " P"]]
]


class Found(eqx.Module):
    """Where a search ended: step 0 and the start's value and gradient if it failed."""

    step: Float[Array, ""]
    value: Float[Array, ""]
    gradient: Float[Array, " P"]
    evaluations: Int[Array, ""]
    success: Bool[Array, ""]


class _End(eqx.Module):
    """An end of the bracket: position, value and slope."""

    at: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]


class _Search(eqx.Module):
    """`low` is the best admissible point, with its gradient; `high` the other end.

    `width` and `before` are the last two bracket widths.
    """

    low: _End
    gradient: Float[Array, " P"]
    high: _End
    bracketed: Bool[Array, ""]
    trial: Float[Array, ""]
    width: Float[Array, ""]
    before: Float[Array, ""]
    evaluations: Int[Array, ""]
    done: Bool[Array, ""]


def line_search(
    value_and_grad: ValueAndGrad,
    x: Float[Array, " P"],
    direction: Float[Array, " P"],
    value: Float[Array, ""],
    gradient: Float[Array, " P"],
    *,
    first_step: Float[Array, ""],
    enabled: Bool[Array, ""],
) -> Found:
    """Search along `direction` from `x`.

    **Arguments:**

    - `value`, `gradient`: of the function at `x`.
    - `first_step`: the first trial.
    - `enabled`: where false, the search fails at once and evaluates nothing.

    **Returns:** the accepted point; failing the second condition within
    `MAX_EVALUATIONS` trials, the best point that meets the first.
    """
    start = _End(jnp.zeros_like(value), value, direction @ gradient)
    possible = enabled & (start.slope < 0) & jnp.isfinite(start.slope + value)

    def more(search: _Search) -> Array:
        return possible & ~search.done & (search.evaluations < MAX_EVALUATIONS)

    def body(search: _Search) -> _Search:
        x_trial = x + search.trial * direction
        f, g = value_and_grad(x_trial)
        slope = direction @ g
        # The sum is finite only if every entry is.
        finite = jnp.isfinite(f) & jnp.isfinite(slope) & jnp.isfinite(jnp.sum(g))
        g = jnp.where(finite, g, 0)
        trial = _End(
            search.trial, jnp.where(finite, f, jnp.inf), jnp.where(finite, slope, 0)
        )
        return _advance(search, start, trial, g)

    no, far = jnp.asarray(False), jnp.full_like(value, jnp.inf)
    first = _Search(
        low=start,
        gradient=gradient,
        high=start,
        bracketed=no,
        trial=first_step,
        width=far,
        before=far,
        evaluations=jnp.asarray(0, jnp.int32),
        done=no,
    )
    end = jax.lax.while_loop(more, body, first)
    return Found(
        end.low.at, end.low.value, end.gradient, end.evaluations, end.low.at > 0
    )


def _advance(
    search: _Search, start: _End, trial: _End, gradient: Float[Array, " P"]
) -> _Search:
    """The search after one more trial."""
    low = search.low
    admissible = _admissible(start, trial)
    done = admissible & (jnp.abs(trial.slope) <= -CURVATURE * start.slope)
    noise = _noise(start)
    better = done | (admissible & (trial.value <= low.value + noise))
    # The minimum lies between the new and the old best point if the slope at the new
    # one points back; before there is a bracket, `forward` is the only way to look.
    forward = jnp.where(search.bracketed, jnp.sign(search.high.at - low.at), 1.0)
    back = better & (trial.slope * forward >= 0)
    high = _pick(better, _pick(back, low, search.high), trial)
    new_low = _pick(better, trial, low)
    bracketed = search.bracketed | ~better | back
    width = jnp.abs(high.at - new_low.at)
    slow = width > 0.66 * search.before
    inside = _interpolated(new_low, high, slow)
    gap = trial.at - low.at
    outside = jnp.clip(
        _cubic_minimum(low, new_low), trial.at + gap, trial.at + EXPANSION * gap
    )
    outside = jnp.where(jnp.isfinite(outside), outside, trial.at + EXPANSION * gap)
    return _Search(
        low=new_low,
        gradient=jnp.where(better, gradient, search.gradient),
        high=high,
        bracketed=bracketed,
        trial=jnp.where(bracketed, inside, outside),
        width=jnp.where(bracketed, width, jnp.inf),
        before=search.width,
        evaluations=search.evaluations + 1,
        done=done,
    )


def _noise(start: _End) -> Float[Array, ""]:
    return 10 * jnp.finfo(start.value.dtype).eps * jnp.abs(start.value)


def _admissible(start: _End, trial: _End) -> Bool[Array, ""]:
    """Sufficient decrease, up to rounding."""
    clear = trial.value <= start.value + SUFFICIENT * trial.at * start.slope
    flat = (trial.value <= start.value + _noise(start)) & (
        trial.slope <= (2 * SUFFICIENT - 1) * start.slope
    )
    # Both tests are blind below the noise; a slope that still falls is information.
    drowned = -SUFFICIENT * trial.at * start.slope < _noise(start)
    return clear | (flat & drowned)


def _pick(which: Bool[Array, ""], a: _End, b: _End) -> _End:
    return jax.tree.map(lambda u, v: jnp.where(which, u, v), a, b)


def _cubic_minimum(a: _End, b: _End) -> Float[Array, ""]:
    """The minimizer of the cubic through both ends' values and slopes."""
    gap = b.at - a.at
    d1 = a.slope + b.slope - 3 * (b.value - a.value) / gap
    d2 = jnp.sign(gap) * jnp.sqrt(jnp.maximum(d1**2 - a.slope * b.slope, 0))
    return b.at - gap * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)


def _interpolated(low: _End, high: _End, slow: Bool[Array, ""]) -> Float[Array, ""]:
    """The next trial in a bracket: cubic, kept off the ends; else a safe division."""
    gap = high.at - low.at
    fraction = jnp.clip((_cubic_minimum(low, high) - low.at) / gap, 0.1, 0.9)
    fraction = jnp.where(slow | ~jnp.isfinite(fraction), 0.5, fraction)
    # An infinite end says nothing about how far away the trouble begins.
    return low.at + gap * jnp.where(jnp.isfinite(high.value), fraction, 0.2)
