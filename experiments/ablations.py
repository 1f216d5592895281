"""What each choice of the nonlinear route is worth, at equal training time.

    python experiments/ablations.py [--quick] [--only points damping ...]
        [--seconds 60] [--seeds 3] [-o FILE]

Every variant differs from the first of its table in one thing. All train on the same
problems, which have exact solutions, for the same seconds; compilation is not counted.
The tables, in Markdown, have the median over seeds of the relative L2 error (the worst
field's), the held-out residual, and the steps made; each is written when it is made.
`--quick` is one problem, one seed and a few seconds each: it shows that the script
works, not which variant is better.
"""

import argparse
import datetime
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from pinnlab.assembly import least_squares, network_of
from pinnlab.correction import with_correction
from pinnlab.network import KINDS, trained_numbers
from pinnlab.optimizer import AbstractOptimizer, LevenbergMarquardt
from pinnlab.optimizer.levenberg_marquardt import singular_spectrum
from pinnlab.problem.file import loads_problem
from pinnlab.room import make_room
from pinnlab.scaling import field_scales
from pinnlab.settings import OPTIMIZERS, read_settings
from pinnlab.strategy import plan
from pinnlab.system.system import build_system
from pinnlab.train import Hooks, Limits, train
from pinnlab.verify.known import error_of
from pinnlab.weighting import WEIGHTINGS


GALLERY = Path(__file__).parent.parent / "problems"
UNTRAINED = ("auto", "least_squares", "gauss_newton")
"""Optimizers that belong to other routes."""


@dataclass(frozen=True)
class Variant:
    """Settings that differ, and an optimizer where settings cannot name it."""

    name: str
    solver: Mapping[str, object] = field(default_factory=dict)
    optimizer: AbstractOptimizer | None = None


@dataclass(frozen=True)
class Scale:
    """How much work the study is."""

    problems: tuple[str, ...]
    seeds: int
    seconds: float
    solver: Mapping[str, object]


@dataclass(frozen=True)
class Measured:
    """One training: error, held-out residual, steps, parameters."""

    error: float
    heldout: float
    steps: int
    parameters: int


FULL = Scale(("burgers", "sine_gordon", "kovasznay"), 3, 60.0, {})
QUICK = Scale(
    ("reaction_5",),
    1,
    4.0,
    {"points": 400, "condition_points": 64, "network.width": 10, "network.depth": 2},
)
LM = {"optimizer": "levenberg_marquardt"}


def studies() -> dict[str, tuple[Variant, ...]]:
    """The tables by name; the first variant of each is the default."""
    trained = [o for o in OPTIMIZERS if o not in UNTRAINED]
    return {
        "points": (
            Variant("drawn by residual"),
            Variant("drawn uniformly", {"adaptive": False}),
            Variant("fixed", {"redraw": -1}),
        ),
        "damping": (
            Variant("14 trials, ratio 0.3", LM),
            Variant("ratio 0.05", LM, LevenbergMarquardt(target=0.05)),
            Variant("ratio 0.75", LM, LevenbergMarquardt(target=0.75)),
            Variant("3 trials", LM, LevenbergMarquardt(coarse=2, fine=1, reach=3.0)),
            Variant("singular values", LM, LevenbergMarquardt(singular_spectrum)),
        ),
        "precision": (
            Variant("float64"),
            Variant("float32", {"precision": "float32"}),
        ),
        "conditions": (
            Variant("exact"),
            Variant("penalty, weight 10", {"enforce": "penalty"}),
            Variant("penalty, weight 1000", {"enforce": "penalty"} | _weight(1000.0)),
        ),
        "stages": (
            Variant("one network", {"second_stage": "off"}),
            Variant("a second one", {"second_stage": "on"}),
        ),
        "optimizers": tuple(Variant(o, {"optimizer": o}) for o in trained),
        "networks": tuple(Variant(k, {"network.kind": k}) for k in KINDS),
        "weighting": (
            Variant("none", {"enforce": "penalty"}),
            *(
                Variant(w, {"enforce": "penalty", "weighting": w} | _still(w))
                for w in WEIGHTINGS
            ),
        ),
    }


def _weight(weight: float) -> dict[str, object]:
    return {"condition_weight": weight}


def _still(weighting: str) -> dict[str, object]:
    """Attention belongs to points that stay."""
    return {"redraw": -1} if weighting == "attention" else {}


def measure(problem_name: str, variant: Variant, scale: Scale, seed: int) -> Measured:
    """Train once."""
    make_room()
    text = (GALLERY / f"{problem_name}.toml").read_text()
    chosen = dict(scale.solver) | dict(variant.solver) | {"strategy": "nonlinear"}
    overrides = {f"solver.{k}": v for k, v in chosen.items()}
    problem = loads_problem(text, problem_name, overrides=overrides)
    settings = read_settings(problem.solver)
    system = build_system(problem, settings.enforce)
    found = plan(system, settings, 1e-4)
    stages = found.stages
    if variant.optimizer is not None:
        stages = (*stages[:-1], replace(stages[-1], optimizer=variant.optimizer))
    _, net_key, train_key = jax.random.split(jax.random.key(seed), 3)
    make = lambda s, k: network_of(system, found.settings, s, k)
    scales = field_scales(system, make, net_key)
    network = make(scales, net_key)
    objective, theta = least_squares(system, found.settings, network, seed)
    stages = with_correction(system, replace(found, stages=stages), scales, seed)
    trained = train(
        objective,
        theta,
        stages,
        Limits(scale.seconds, 0.0, 0.0),
        key=train_key,
        hooks=Hooks(lambda row: None),
    )
    error = error_of(system)
    assert error is not None, f"{problem_name} has no exact solution"
    model = trained.objective.model(jnp.asarray(trained.theta))
    return Measured(
        float(error(model)),
        float(np.sqrt(np.mean(trained.heldout**2))),
        trained.record.iterations,
        trained_numbers(model.network),
    )


def table(name: str, variants: tuple[Variant, ...], scale: Scale) -> str:
    """One table, a row for each variant and problem."""
    lines = [
        f"### {name.capitalize()}",
        "",
        "| problem | variant | error | held-out residual | steps | parameters |",
        "|---|---|---|---|---|---|",
    ]
    for problem in scale.problems:
        for variant in variants:
            runs = [measure(problem, variant, scale, s) for s in range(scale.seeds)]
            error, heldout, steps, parameters = (
                np.median([getattr(r, part) for r in runs])
                for part in ("error", "heldout", "steps", "parameters")
            )
            line = (
                f"| {problem} | {variant.name} | {error:.1e} | {heldout:.1e} | "
                f"{steps:.0f} | {parameters:.0f} |"
            )
            lines.append(line)
            print(line, flush=True)
    return "\n".join(lines)


def main() -> None:
    """Run the studies that are asked for and write the tables."""
    every = studies()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(every), default=list(every))
    default = Path(tempfile.gettempdir()) / "ablations.md"
    parser.add_argument("-o", "--output", type=Path, default=default)
    parser.add_argument("--seconds", type=float, help="of each training")
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    scale = replace(
        scale,
        seconds=arguments.seconds or scale.seconds,
        seeds=arguments.seeds or scale.seeds,
    )
    head = (
        f"Made on {datetime.date.today()} by `python experiments/ablations.py` with "
        f"{scale.seconds:g} s of training each on {len(os.sched_getaffinity(0))} cores "
        f"({jax.devices()[0].device_kind}); medians of {scale.seeds} seed"
        f"{'s' * (scale.seeds > 1)}."
    )
    found = [head]
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        for name in arguments.only:
            found.append(table(name, every[name], scale))
            arguments.output.write_text("\n\n".join(found) + "\n")
    print(arguments.output)


if __name__ == "__main__":
    main()
