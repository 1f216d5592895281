"""Which network, points and optimizer suit a problem, and why."""

import dataclasses
from dataclasses import dataclass
from typing import NoReturn

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.errors import ProblemError
from pinnlab.optimizer import (
    ENGDW,
    LBFGS,
    SPRING,
    AbstractOptimizer,
    Adam,
    LevenbergMarquardt,
    Muon,
    SketchedGaussNewton,
    SSBroyden,
)
from pinnlab.programs import Stage
from pinnlab.settings import NetworkSettings, Settings
from pinnlab.system.system import System
from pinnlab.viscosity import viscosities
from pinnlab.weighting import WEIGHTINGS


MOST_POINTS = {"levenberg_marquardt": 2000, "engd_w": 1000, "spring": 1000}
"""What a step can afford whose cost grows with the rows."""
BY_JACOBIAN = (*MOST_POINTS, "sketched_gauss_newton")
"""Steps so dear, and so good, that they need no pilot and new points often."""


SHAPES = {"piratenet": (20, 2), "kan": (8, 2), "fbpinn": (12, 2)}
"""Width and depth where they are not those of a plain network."""
SIREN_FREQUENCY = 10.0


@dataclass(frozen=True)
class Plan:
    """Complete settings, the stages to run, and one line that explains them.

    - `viscosity`: added to the equations in training, by coordinate.
    """

    settings: Settings
    stages: tuple[Stage, ...]
    reason: str
    viscosity: tuple[float, ...]


def plan(system: System, settings: Settings, target: float) -> Plan:
    """Fill in what the user left open."""
    dim = len(system.coordinates)
    full = _complete(settings, system, dim, target)
    full = dataclasses.replace(full, strategy="nonlinear")
    stages = []
    if full.adam:
        stages.append(Stage("adam", Adam(), full.adam, full.adam, False, 1))
    pool = full.pool if full.adaptive else 1
    look = full.redraw if full.redraw > 0 else _look_every(full.optimizer)
    stages.append(
        Stage(
            full.optimizer,
            _optimizer(full.optimizer),
            full.iterations,
            look,
            full.redraw > 0,
            pool,
            WEIGHTINGS.get(full.weighting),
        )
    )
    net = full.network
    kind = "linear" if system.is_linear else "nonlinear"
    reason = (
        f"{kind} problem in {dim} coordinate{'s' * (dim > 1)}: "
        f"{_described(net)} {net.depth} x {net.width}, {full.points} points, "
        f"{full.optimizer}"
    )
    eps = viscosities(system, full.viscosity)
    if any(eps):
        size = " and ".join(f"{e:.2g}" for e in eps if e)
        reason += f"; shocks spread by a viscosity of {size}"
    return Plan(full, tuple(stages), reason, eps)


def _described(net: NetworkSettings) -> str:
    return f"{net.activation} network" if net.kind == "mlp" else net.kind


def _optimizer(name: str) -> AbstractOptimizer:
    return {
        "ssbroyden": SSBroyden,
        "levenberg_marquardt": LevenbergMarquardt,
        "sketched_gauss_newton": SketchedGaussNewton,
        "engd_w": ENGDW,
        "spring": SPRING,
        "lbfgs": LBFGS,
        "muon": Muon,
        "adam": Adam,
    }[name]()


def _look_every(optimizer: str) -> int:
    return 20 if optimizer in BY_JACOBIAN else 200


def _check_weighting(settings: Settings, system: System) -> None:
    """Raise `ProblemError` for a weighting that means nothing here."""
    message = ""
    if settings.weighting == "causal" and "t" not in system.coordinates:
        message = "causal weights need the coordinate t"
    if settings.weighting == "attention" and settings.redraw > 0:
        message = "attention is a memory of points that stay: remove solver.redraw"
    if message:
        file = system.problem.file
        raise ProblemError(message, file=file, key="solver.weighting")


def _complete(settings: Settings, system: System, dim: int, target: float) -> Settings:
    optimizer = settings.optimizer
    if optimizer == "auto":
        optimizer = "levenberg_marquardt" if dim == 1 else "ssbroyden"
    by_jacobian = optimizer in BY_JACOBIAN
    points = settings.points
    if not points:
        points = {1: 400, 2: 4000, 3: 6000}.get(dim, 8000)
        points = min(points, MOST_POINTS.get(optimizer, points))
    redraw = settings.redraw
    _check_weighting(settings, system)
    if not redraw:
        redraw = _look_every(optimizer)
    if settings.weighting == "attention":
        redraw = -1
    adam = settings.adam
    if adam < 0:
        adam = 0 if by_jacobian else 300
    return dataclasses.replace(
        settings,
        optimizer=optimizer,
        points=points,
        condition_points=settings.condition_points or max(64, points // 10),
        redraw=redraw,
        adam=adam,
        network=_network(settings.network, system, dim, target),
    )


def _network(
    given: NetworkSettings, system: System, dim: int, target: float
) -> NetworkSettings:
    _check_network(given, system)
    # Measured on KdV: at equal time 4 x 20 has a third of the error of 3 x 20.
    deep = 4 if highest_order(system) > 2 else 3
    depth = given.depth or SHAPES.get(given.kind, (0, 2 if dim == 1 else deep))[1]
    wide = 20 if dim == 1 or target >= 5e-5 else 30
    width = given.width or SHAPES.get(given.kind, (0, 0))[0] or wide
    activation = given.activation
    if activation == "auto":
        activation = "sin" if given.kind == "siren" else "tanh"
    return dataclasses.replace(
        given,
        corrected=False,
        width=width,
        depth=depth,
        activation=activation,
        harmonics=given.harmonics or (2 if system.problem.periodic else 0),
        # The features are what a PirateNet combines at first.
        fourier=given.fourier or (width if given.kind == "piratenet" else 0),
        frequency=given.frequency or (SIREN_FREQUENCY if given.kind == "siren" else 0),
        degree=given.degree or (4 if given.kind == "kan" else 0),
        windows=given.windows or _windows(given, system),
    )


def _windows(given: NetworkSettings, system: System) -> tuple[int, ...]:
    """Two along every coordinate that is not periodic, four where there is but one."""
    if given.kind != "fbpinn":
        return ()
    names = system.coordinates
    count = 4 if len(names) == 1 else 2
    return tuple(1 if n in system.problem.periodic else count for n in names)


def _check_network(given: NetworkSettings, system: System) -> None:
    """Raise `ProblemError` for settings that do not fit each other."""

    def refuse(key: str, message: str) -> NoReturn:
        file = system.problem.file
        raise ProblemError(message, file=file, key=f"solver.network.{key}")

    own = {"siren": "sin", "kan": "auto"}.get(given.kind, given.activation)
    if given.activation not in ("auto", own):
        refuse("activation", f"a {given.kind} has no choice of activation: remove it")
    if given.factorized and given.kind in ("siren", "kan"):
        refuse("factorized", f"a {given.kind} has no factorized weights: remove it")
    for name, kind in (
        ("frequency", "siren"),
        ("degree", "kan"),
        ("windows", "fbpinn"),
    ):
        if getattr(given, name) and given.kind != kind:
            refuse(name, f"is for kind = {kind!r} alone, found {given.kind!r}")
    if not given.windows:
        return
    names = system.coordinates
    if len(given.windows) != len(names):
        refuse(
            "windows",
            f"expected a number for each coordinate ({', '.join(names)}), found "
            f"{list(given.windows)}",
        )
    for name, count in zip(names, given.windows, strict=True):
        if count > 1 and name in system.problem.periodic:
            refuse("windows", f"the periodic coordinate {name} takes 1, found {count}")


def tries(settings: Settings, route: str) -> bool:
    """Whether a route other than training may be tried: nothing else was asked for."""
    if settings.strategy != "auto":
        return settings.strategy == route
    asked = dataclasses.replace(settings, condition_points=0, points=0)
    return asked == Settings()


def separable_settings(
    settings: Settings, is_mirrored: bool, singular: int = 0
) -> Settings:
    """The settings that describe what the separable route found."""
    return dataclasses.replace(
        settings,
        strategy="separable",
        optimizer="gauss_newton",
        enforce="rows",
        network=dataclasses.replace(
            settings.network, mirrored=is_mirrored, singular=singular
        ),
    )


def feature_settings(
    settings: Settings,
    strategy: str,
    features: int,
    pieces: int = 1,
    singular: int = 0,
    around: int = 0,
) -> Settings:
    """The settings that describe features that a route found.

    **Arguments:**

    - `strategy`: "linear" or "newton".
    - `features`: sine features on each of the `pieces`.
    - `singular`: the number of singular functions; `around`: of those around holes and
        corners of a shape.
    """
    network = NetworkSettings(
        width=features,
        depth=1,
        activation="sin",
        pieces=pieces,
        singular=singular,
        around=around,
    )
    return dataclasses.replace(
        settings,
        strategy=strategy,
        optimizer="least_squares",
        enforce="rows",
        network=network,
    )


def highest_order(system: System) -> int:
    """The highest order of a derivative in one coordinate in the equations."""
    return max(
        (
            max(p.orders)
            for t in system.equations
            if isinstance(t.residual, Expression)
            for p in partials(t.residual)
        ),
        default=0,
    )
