"""Which network, points and optimizer suit a problem, and why."""

import dataclasses
from dataclasses import dataclass

from pinnlab.equation.expression import Expression
from pinnlab.equation.structure import partials
from pinnlab.optimizer import (
    LBFGS,
    AbstractOptimizer,
    Adam,
    LevenbergMarquardt,
    SSBroyden,
)
from pinnlab.programs import Stage
from pinnlab.settings import NetworkSettings, Settings
from pinnlab.system.system import System


@dataclass(frozen=True)
class Plan:
    """Complete settings, the stages to run, and one line that explains them."""

    settings: Settings
    stages: tuple[Stage, ...]
    reason: str


def plan(system: System, settings: Settings, target: float) -> Plan:
    """Fill in what the user left open."""
    dim = len(system.coordinates)
    full = _complete(settings, system, dim, target)
    full = dataclasses.replace(full, strategy="nonlinear")
    stages = []
    if full.adam:
        stages.append(Stage("adam", Adam(), full.adam, full.adam, False, 1))
    pool = full.pool if full.adaptive else 1
    look = full.redraw if full.redraw > 0 else 200
    stages.append(
        Stage(
            full.optimizer,
            _optimizer(full.optimizer),
            full.iterations,
            look,
            full.redraw > 0,
            pool,
        )
    )
    net = full.network
    kind = "linear" if system.is_linear else "nonlinear"
    reason = (
        f"{kind} problem in {dim} coordinate{'s' * (dim > 1)}: "
        f"{net.activation} network {net.depth} x {net.width}, {full.points} points, "
        f"{full.optimizer}"
    )
    return Plan(full, tuple(stages), reason)


def _optimizer(name: str) -> AbstractOptimizer:
    return {
        "ssbroyden": SSBroyden,
        "levenberg_marquardt": LevenbergMarquardt,
        "lbfgs": LBFGS,
        "adam": Adam,
    }[name]()


def _complete(settings: Settings, system: System, dim: int, target: float) -> Settings:
    optimizer = settings.optimizer
    if optimizer == "auto":
        optimizer = "levenberg_marquardt" if dim == 1 else "ssbroyden"
    by_least_squares = optimizer == "levenberg_marquardt"
    points = settings.points
    if not points:
        points = {1: 400, 2: 4000, 3: 6000}.get(dim, 8000)
        if by_least_squares:
            points = min(points, 2000)
    redraw = settings.redraw
    if not redraw:
        redraw = 20 if by_least_squares else 200
    adam = settings.adam
    if adam < 0:
        adam = 0 if by_least_squares else 300
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
    # Measured on KdV: at equal time 4 x 20 has a third of the error of 3 x 20.
    deep = 4 if highest_order(system) > 2 else 3
    depth = given.depth or (2 if dim == 1 else deep)
    width = given.width or (20 if dim == 1 or target >= 5e-5 else 30)
    activation = given.activation
    if activation == "auto":
        activation = "tanh"
    harmonics = given.harmonics or (2 if system.problem.periodic else 0)
    return dataclasses.replace(
        given, width=width, depth=depth, activation=activation, harmonics=harmonics
    )


def tries(settings: Settings, route: str) -> bool:
    """Whether a route other than training may be tried: nothing else was asked for."""
    if settings.strategy != "auto":
        return settings.strategy == route
    asked = dataclasses.replace(settings, condition_points=0, points=0)
    return asked == Settings()


def separable_settings(settings: Settings) -> Settings:
    """The settings that describe what the separable route found."""
    return dataclasses.replace(
        settings, strategy="separable", optimizer="gauss_newton", enforce="rows"
    )


def linear_settings(
    settings: Settings, features: int, pieces: int, singular: int
) -> Settings:
    """The settings that describe what the linear route found.

    **Arguments:**

    - `features`: sine features on each of the `pieces`.
    - `singular`: the number of singular functions.
    """
    network = NetworkSettings(
        width=features, depth=1, activation="sin", pieces=pieces, singular=singular
    )
    return dataclasses.replace(
        settings,
        strategy="linear",
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
