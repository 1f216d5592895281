"""From what was seen to ONE change: the first rule of the table that applies.

| sign | change |
|---|---|
| a part of an equation was not finite | keep its argument in the domain |
| a check of the run failed | report it: a defect of pinnlab |
| held-out residual over 10 times that in training | more points |
| a broken condition with under 5 % of the gradient | more weight for conditions |
| a term against all others (cosine below -0.9), first-order training | Gauss-Newton |
| most residual energy at high frequencies | Fourier features (Tancik et al., 2020) |
| a term against all others | a wider network |
| anything else that did not reach the target | more time, or a wider network |
"""

from collections.abc import Callable
from dataclasses import dataclass

from pinnlab.result import Report, ResidualSpectrum, RunCheck, TermGradient
from pinnlab.settings import Settings


OVERFIT, SMALL_SHARE, AGAINST, MOSTLY = 10.0, 0.05, -0.9, 0.5


@dataclass(frozen=True)
class Signs:
    """Everything that the rules look at."""

    report: Report
    settings: Settings
    failures: tuple[str, ...]
    checks: tuple[RunCheck, ...]
    gradients: tuple[TermGradient, ...]
    spectra: tuple[ResidualSpectrum, ...]


def advise(signs: Signs) -> str:
    """The suggestion of the first rule that applies; "" where all is well."""
    return next((text for rule in RULES if (text := rule(signs))), "")


def _not_finite(signs: Signs) -> str:
    for failure in signs.failures:
        part, found, _ = failure.partition(" has no finite")
        if found:
            return f"keep the argument of {part} in its domain, as in max(..., 1e-6)"
    return ""


def _defect(signs: Signs) -> str:
    failed = [c.name for c in signs.checks if not c.passed]
    return f"report a defect of pinnlab: {failed[0]} does not hold" if failed else ""


def _reached(signs: Signs) -> bool:
    return signs.report.verdict.startswith("pass")


def _overfit(signs: Signs) -> str:
    worst = max((e.ratio for e in signs.report.equations), default=0.0)
    return f"raise solver.points to {2 * signs.settings.points}" * (worst > OVERFIT)


def _light(signs: Signs) -> str:
    shares = {g.term: g.share for g in signs.gradients}
    broken = [
        c.name
        for c in signs.report.conditions
        if c.relative > 10 * signs.report.target
        and shares.get(c.name, 1.0) < SMALL_SHARE
    ]
    if not broken:
        return ""
    weight = 10 * signs.settings.condition_weight
    return f"raise solver.condition_weight to {weight:g}: '{broken[0]}' has little pull"


def _conflict(signs: Signs) -> bool:
    return len(signs.gradients) > 1 and min(g.cosine for g in signs.gradients) < AGAINST


def _first_order(signs: Signs) -> str:
    slow = signs.settings.optimizer in ("adam", "lbfgs")
    return 'set solver.optimizer = "ssbroyden"' * (slow and _conflict(signs))


def _rough(signs: Signs) -> str:
    high = max(signs.spectra, key=lambda s: s.high, default=None)
    if high is None or high.high < MOSTLY or signs.settings.strategy == "linear":
        return ""
    count = max(16, 2 * signs.settings.network.fourier)
    return f"set solver.network.fourier = {count}: the residual is rough along " + (
        high.coordinate
    )


def _narrow(signs: Signs) -> str:
    width = signs.settings.network.width
    return f"raise solver.network.width to {width * 3 // 2}" * _conflict(signs)


def _otherwise(signs: Signs) -> str:
    return signs.report.suggestion


def _unless_reached(rule: Callable[[Signs], str]) -> Callable[[Signs], str]:
    return lambda signs: "" if _reached(signs) else rule(signs)


RULES: tuple[Callable[[Signs], str], ...] = (
    _not_finite,
    _defect,
    *map(
        _unless_reached,
        (_overfit, _light, _first_order, _rough, _narrow, _otherwise),
    ),
)
