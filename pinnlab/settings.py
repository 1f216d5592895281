"""How a problem is solved: the `[solver]` table, checked, with defaults filled in."""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pinnlab.errors import ProblemError
from pinnlab.network import KINDS
from pinnlab.sampling import METHODS
from pinnlab.weighting import WEIGHTINGS


OPTIMIZERS = (
    "auto",
    "ssbroyden",
    "levenberg_marquardt",
    "sketched_gauss_newton",
    "engd_w",
    "spring",
    "lbfgs",
    "muon",
    "adam",
    "least_squares",
    "gauss_newton",
)
ACTIVATIONS = ("tanh", "sin", "gelu", "swish")


@dataclass(frozen=True)
class NetworkSettings:
    """`[solver.network]`: `width` units in each of `depth` hidden layers.

    0 means: chosen by the strategy. `fourier` is the number of random Fourier
    features, `harmonics` of exactly periodic ones in each periodic coordinate;
    `factorized` turns random weight factorization on, `separate` gives every field
    its own network. For one `kind` alone: `frequency` is the highest of the first
    layer ("siren"), `degree` that of the polynomials ("kan"), `windows` how many there
    are along each coordinate ("fbpinn"). `pieces` of the domain with features of their
    own and the numbers of `singular` functions and of those `around` holes and corners
    of a shape are filled in by the strategies that have them, whether the line is
    `mirrored` (half a period) by the separable one, and whether the network is
    `corrected` by a second one by training.
    """

    kind: str = "mlp"
    width: int = 0
    depth: int = 0
    activation: str = "auto"
    fourier: int = 0
    fourier_scale: float = 1.0
    harmonics: int = 0
    factorized: bool = False
    separate: bool = False
    frequency: float = 0.0
    degree: int = 0
    windows: tuple[int, ...] = ()
    pieces: int = 1
    singular: int = 0
    around: int = 0
    mirrored: bool = False
    corrected: bool = False


@dataclass(frozen=True)
class Settings:
    """`[solver]`: how to train. 0 and "auto" are filled in by the strategy.

    - `strategy`: "linear" (random features, one least-squares solve), "separable"
        (products of functions of one coordinate, Gauss-Newton), "newton" (random
        features, a least-squares solve for each Newton step) or "nonlinear"
        (training).
    - `iterations`: of the main optimizer; 0 means as many as the budget allows.
    - `adam`: iterations of the Adam pilot.
    - `points`, `condition_points`: collocation points inside, and for each condition.
    - `redraw`: iterations between redraws of the points (-1: never).
    - `adaptive`: draw by residual (RAD) from a pool of `pool` times as many points.
    - `enforce`: "penalty" turns exact conditions off.
    - `condition_weight`: weight of penalty conditions against the equations.
    - `weighting`: how weights follow training: of terms ("gradient_norm", "ntk") or of
        the equations' points ("causal", "attention").
    - `precision`: "float64" or "float32".
    - `second_stage`: "on" trains a second network on what the first has left after
        half the budget, "auto" where the first can do no more.
    - `viscosity`: of what jumps in the initial values of conservation laws ask for,
        the part that training adds (0: none).
    """

    strategy: str = "auto"
    optimizer: str = "auto"
    iterations: int = 0
    adam: int = -1
    points: int = 0
    condition_points: int = 0
    sampler: str = "sobol"
    redraw: int = 0
    adaptive: bool = True
    pool: int = 10
    enforce: str = "auto"
    condition_weight: float = 10.0
    weighting: str = "none"
    precision: str = "float64"
    viscosity: float = 1.0
    second_stage: str = "auto"
    network: NetworkSettings = field(default_factory=NetworkSettings)


FEATURES = ("linear", "newton")
"""The strategies whose networks are one layer of features."""
FILLED_IN = {
    "pieces": ("linear",),
    "singular": ("linear", "newton", "separable"),
    "around": ("linear", "newton"),
    "mirrored": ("separable",),
    "corrected": ("nonlinear",),
}
"""Settings of networks that strategies write into results."""
CHOICES = {
    "solver.strategy": ("auto", "linear", "separable", "newton", "nonlinear"),
    "solver.optimizer": OPTIMIZERS,
    "solver.sampler": METHODS,
    "solver.enforce": ("auto", "penalty", "rows"),
    "solver.weighting": ("none", *WEIGHTINGS),
    "solver.precision": ("float64", "float32"),
    "solver.second_stage": ("auto", "on", "off"),
    "solver.network.kind": KINDS,
    "solver.network.activation": ("auto", *ACTIVATIONS),
}
LEAST = {
    "solver.redraw": -1,
    "solver.adam": -1,
    "solver.pool": 1,
    "solver.condition_weight": 1e-12,
    "solver.network.fourier_scale": 1e-12,
    "solver.network.pieces": 1,
}


def read_settings(table: Mapping[str, object], file: str | None = None) -> Settings:
    """The settings of a `[solver]` table.

    Raises `ProblemError` for an unknown key, a wrong type or a value out of range.
    """
    settings = _read(Settings, table, "solver", file)
    for key, strategies in FILLED_IN.items():
        default, found = getattr(NetworkSettings, key), getattr(settings.network, key)
        if found != default and settings.strategy not in strategies:
            owners = " or ".join(strategies)
            message = f"only the {owners} strategy has these, and it fills them in"
            where = f"solver.network.{key}"
            raise ProblemError(message, file=file, key=where)
    return settings


def _read(kind: type, table: Mapping[str, object], path: str, file: str | None):
    names = {f.name: f for f in dataclasses.fields(kind)}
    values: dict[str, object] = {}
    for key, value in table.items():
        where = f"{path}.{key}"
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean '{near[0]}'?" if near else ""
            message = f"unknown setting '{key}' (known: {', '.join(names)})"
            raise ProblemError(message, file=file, key=where, hint=hint)
        if key == "network":
            if not isinstance(value, Mapping):
                raise ProblemError("expected a table", file=file, key=where)
            values[key] = _read(NetworkSettings, value, where, file)
        else:
            values[key] = _checked(where, value, type(names[key].default), file)
    return kind(**values)


def _checked(where: str, value: object, kind: type, file: str | None) -> object:
    if kind is tuple:
        return _counts(where, value, file)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        message = f"expected {_WORDS[kind]}, found {value!r}"
        raise ProblemError(message, file=file, key=where)
    if where in CHOICES and value not in CHOICES[where]:
        message = f"unknown value {value!r} (one of: {', '.join(CHOICES[where])})"
        raise ProblemError(message, file=file, key=where)
    least = LEAST.get(where, 0)
    if isinstance(value, int | float) and not least <= value < 1e12:
        message = f"expected at least {least}, found {value!r}"
        raise ProblemError(message, file=file, key=where)
    return value


def _counts(where: str, value: object, file: str | None) -> tuple[int, ...]:
    whole = isinstance(value, list | tuple)
    if whole and all(type(n) is int and 1 <= n < 1e4 for n in value):
        return tuple(int(n) for n in value)
    message = f"expected a list of integers from 1, found {value!r}"
    raise ProblemError(message, file=file, key=where)


_WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "a text"}


def settings_table(settings: Settings) -> dict[str, object]:
    """The settings as a TOML table, complete."""
    return dataclasses.asdict(settings)
