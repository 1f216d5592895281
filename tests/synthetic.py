"""Results that were never trained, for tests of files and pictures."""

import numpy as np

from pinnlab.result import (
    ConditionCheck,
    Cost,
    EquationCheck,
    FieldError,
    Report,
    Result,
)


PROBLEM = """\
title = "A made-up problem"
coordinates = { t = [0, 1], x = [-1, 1] }
fields = ["u"]
"""


def make_report(verdict: str = "pass", fields: tuple[str, ...] = ("u",)) -> Report:
    """A report with one of everything."""
    return Report(
        verdict=verdict,
        reason="the error against the exact solution is below the target",
        suggestion="" if verdict == "pass" else "raise --budget",
        target=1e-3,
        strategy="ssbroyden, 4 x 24 tanh",
        equations=(
            EquationCheck("momentum", "dt(u) + u*dx(u) = nu*dxx(u)", 3.1e-5, 2.9e-5),
        ),
        conditions=(
            ConditionCheck(
                "initial", "t = 0", "u = -sin(pi*x)", "exact", 2048, 0.0, 0.0
            ),
            ConditionCheck(
                "walls", "x = 1", "u = 0", "penalty (a kink)", 2048, 1e-7, 1e-7
            ),
        ),
        fields=tuple(FieldError(f, 1 / 3e5, 7.7e-6, "exact") for f in fields),
        cost=Cost(2.5, 41.25, 3.0, 5210, 1849, 512.0),
        warnings=("the data have a kink at x = 0",),
    )


def make_result(
    axes: dict[str, np.ndarray],
    fields: tuple[str, ...] = ("u",),
    *,
    truth: bool = True,
    verdict: str = "pass",
) -> Result:
    """Waves on a grid (a cloud of points above three coordinates) with small errors."""
    random = np.random.default_rng(0)
    if len(axes) > 3:
        mesh = list(axes.values())
    else:
        mesh = np.meshgrid(*axes.values(), indexing="ij")
    phase = np.pi * sum((2 + i) * m / 2 for i, m in enumerate(mesh))
    ripple = np.sin(3.7 * phase) * np.cos(7 * mesh[-1])
    variables: dict[str, np.ndarray] = {}
    for i, name in enumerate(fields):
        variables[name] = np.sin(phase + i) + 1e-5 * ripple
    for i, name in enumerate(fields):
        variables[f"residual_{name}_balance"] = 1e-4 * ripple * np.cos(phase * (i + 2))
    if truth:
        for i, name in enumerate(fields):
            variables[f"{name}_exact"] = np.sin(phase + i)
    step = np.concatenate([np.arange(0, 500, 25), np.arange(500, 5000, 50)])
    loss = np.exp(-step / 400) + 1e-9 * random.lognormal(size=len(step))
    return Result(
        problem=PROBLEM,
        solver="[network]\nwidth = 24\n",
        axes=axes,
        variables=variables,
        model={
            "network/layers/0/weight": random.normal(size=(3, 2)).astype(np.float32),
            "network/layers/0/bias": np.zeros(0),
            "scales": np.array([np.pi, 5e-324, -0.0, np.inf, np.nan]),
        },
        history={
            "step": step,
            "time": step / 100,
            "loss": loss,
            "heldout": 3 * np.sqrt(loss) + 1e-5,
            "error": 0.3 * np.sqrt(loss) + 1e-6
            if truth
            else np.full(len(step), np.nan),
        },
        history_stage=tuple("adam" if s < 500 else "ssbroyden" for s in step),
        report=make_report(verdict, fields if truth else ()),
        attributes={
            "created": "2026-01-01T00:00:00+00:00",
            "seed": 3,
            "title": "A made-up problem",
            "device": "cpu",
        },
    )
