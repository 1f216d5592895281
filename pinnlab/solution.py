"""A solved problem: callable, with its report, saved to and loaded from HDF5."""

import dataclasses
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path
from jaxtyping import Array, ArrayLike, PyTree

from pinnlab.assembly import network_of
from pinnlab.equation.expression import Expression
from pinnlab.errors import ProblemError
from pinnlab.evaluation import Evaluator, field_expressions, with_summands
from pinnlab.fields import Model
from pinnlab.function import PointFunction, point_function
from pinnlab.grids import ResultGrid
from pinnlab.hdf5 import read_result, write_result
from pinnlab.probe import Probe
from pinnlab.problem.file import loads_problem
from pinnlab.problem.problem import Problem
from pinnlab.result import Report, Result
from pinnlab.scaling import parameters_of
from pinnlab.settings import Settings, read_settings
from pinnlab.system.system import System, build_system
from pinnlab.system.terms import outputs


@dataclass(frozen=True, eq=False)
class Solution:
    """The trained model of a problem with everything known about it.

    Call it with coordinates by name, numbers or arrays that broadcast:

    !!! example
        ```python
        u = Solution.load("burgers.h5")
        u(t=0.5, x=0.0)
        ```
    """

    system: System
    settings: Settings
    seed: int
    scales: tuple[float, ...]
    model: Model
    result: Result

    @property
    def problem(self) -> Problem:
        """The problem that was solved."""
        return self.system.problem

    @property
    def report(self) -> Report:
        """The truth report."""
        return self.result.report

    def values(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The fields and outputs at [n, dim] points, by name, [n] each.

        A complex field is one complex array. Outside of the problem's shape they are
        NaN.
        """
        points = np.asarray(points, float)
        if points.ndim != 2 or points.shape[1] != len(self.system.coordinates):
            names = ", ".join(self.system.coordinates)
            raise ValueError(
                f"points must be [n, {len(self.system.coordinates)}] ({names}), "
                f"found {list(points.shape)}"
            )
        self._check_inside(points)
        found = self._evaluator(self.model, points)
        if self.problem.shape is not None:
            found[~self.problem.shape.contains(points)] = np.nan
        real = dict(zip(self._names, found.T, strict=True))
        return joined(self.problem, real)

    def _check_inside(self, points: np.ndarray) -> None:
        """Outside the domain a network says nothing that was ever checked."""
        for axis, column in zip(self.problem.axes, points.T, strict=True):
            slack = 1e-9 * (axis.upper - axis.lower)
            bad = ~((column >= axis.lower - slack) & (column <= axis.upper + slack))
            if bad.any():
                raise ValueError(
                    f"{axis.name} = {column[bad][0]:g} is outside the domain "
                    f"[{axis.lower:g}, {axis.upper:g}]"
                )

    def __call__(
        self, *args: np.ndarray | float, **coordinates: np.ndarray | float
    ) -> np.ndarray | dict[str, np.ndarray]:
        """The field at coordinates given by name (or in order); a dict if several.

        Raises `TypeError` for missing or unknown coordinates.
        """
        names = self.system.coordinates
        given = dict(zip(names, args, strict=False)) | coordinates
        if len(args) > len(names) or set(given) != set(names):
            raise TypeError(
                f"expected the coordinates {', '.join(names)}; found "
                f"{', '.join(given) or 'none'}"
            )
        arrays = np.broadcast_arrays(*(np.asarray(given[n], float) for n in names))
        points = np.stack([a.ravel() for a in arrays], axis=1)
        values = self.values(points)
        shaped = {
            f.name: values[f.name].reshape(arrays[0].shape) for f in self.problem.fields
        }
        return next(iter(shaped.values())) if len(shaped) == 1 else shaped

    @property
    def function(self) -> Callable[[ArrayLike], PyTree[Array]]:
        """The field at one point, for other JAX code: `grad`, `vmap` and `jit` work.

        A dict of the fields by name where there are several; a complex field is one
        complex number. Nothing is checked: outside the domain the values mean nothing.

        !!! example
            ```python
            u = solution.function
            jax.vmap(jax.grad(u))(points)  # [n, dim]
            ```
        """
        expressions = field_expressions(self.system)
        wanted = dict(zip(self.system.fields, expressions, strict=True))
        every = point_function(self.system, self.model, wanted)

        def fields(point: ArrayLike) -> PyTree[Array]:
            found = joined(self.problem, every(point))
            return next(iter(found.values())) if len(found) == 1 else found

        return fields

    @property
    def all_values(self) -> PointFunction:
        """Fields and outputs at one point as real numbers by name, for JAX code."""
        wanted = dict(zip(self._names, self._wanted, strict=True))
        return point_function(self.system, self.model, wanted)

    def __repr__(self) -> str:
        fields = ", ".join(f.name for f in self.problem.fields)
        where = ", ".join(self.system.coordinates)
        title = self.problem.title or self.problem.name or "a problem"
        return f"Solution({title}: {fields} over {where}; {self.report.verdict})"

    def _repr_html_(self) -> str:
        # Views belong to a layer above; they are looked up when a notebook asks.
        return import_module("pinnlab.notebook").solution_html(self)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the result file; an existing file is moved aside unless `force`."""
        return write_result(Path(path), self.complete_result(), force=force)

    def complete_result(self) -> Result:
        """The result with the model's arrays in it."""
        model = model_arrays(self.model)
        model["scales"] = np.array(self.scales)
        attributes = {**self.result.attributes, "seed": self.seed}
        attributes["problem_name"] = self.problem.name
        return dataclasses.replace(self.result, model=model, attributes=attributes)

    @classmethod
    def load(cls, path: str | Path) -> "Solution":
        """Read a result file back.

        Raises `ProblemError` where the file is not one, or its problem had equations
        given as Python functions.
        """
        result = read_result(Path(path))
        if not result.problem:
            raise ProblemError(
                f"{path}: the problem was built from Python functions, which a file "
                "cannot hold; only the arrays can be read (pinnlab.hdf5.read_result)"
            )
        try:
            return cls._rebuilt(result, path)
        except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
            raise ProblemError(f"{path}: damaged: {error}") from error

    @classmethod
    def _rebuilt(cls, result: Result, path: str | Path) -> "Solution":
        name = str(result.attributes.get("problem_name", "problem"))
        problem = loads_problem(result.problem, name)
        settings = read_settings(tomllib.loads(result.solver), str(path))
        scales = tuple(float(s) for s in result.model["scales"])
        seed = int(result.attributes["seed"])
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            system = build_system(problem, settings.enforce)
            model = _restored(system, settings, seed, scales, result.model)
        return cls(system, settings, seed, scales, model, result)

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.system.fields, *outputs(self.problem))

    @property
    def _wanted(self) -> tuple[Expression, ...]:
        return (*field_expressions(self.system), *outputs(self.problem).values())

    @property
    def _evaluator(self) -> Evaluator:
        found = self.__dict__.get("_cached_evaluator")
        if found is None:
            found = Evaluator(self.system, self._wanted)
            self.__dict__["_cached_evaluator"] = found
        return found


def _restored(
    system: System,
    settings: Settings,
    seed: int,
    scales: tuple[float, ...],
    arrays: dict[str, np.ndarray],
) -> Model:
    _, net_key, _ = jax.random.split(jax.random.key(seed), 3)
    network = network_of(system, settings, scales, net_key)
    empty = Model(network, parameters_of(system))
    leaves, structure = tree_flatten_with_path(empty)
    found = [
        jnp.asarray(arrays[path_name(path)]) if eqx.is_array(leaf) else leaf
        for path, leaf in leaves
    ]
    return jax.tree.unflatten(structure, found)


def path_name(path: tuple) -> str:
    """A tree path as a group path of the result file."""
    return keystr(path, simple=True, separator="/")


def model_arrays(model: Model) -> dict[str, np.ndarray]:
    """The model's arrays by tree path."""
    leaves, _ = tree_flatten_with_path(model)
    return {path_name(p): np.asarray(v) for p, v in leaves if eqx.is_array(v)}


_Values = TypeVar("_Values", np.ndarray, Array)


def joined(problem: Problem, real: dict[str, _Values]) -> dict[str, _Values]:
    """Real and imaginary parts put together again for complex fields."""
    found = dict(real)
    for field in problem.fields:
        if field.complex:
            parts = (found.pop(f"{field.name}_{part}") for part in ("real", "imag"))
            found[field.name] = next(parts) + 1j * next(parts)
    return found


def variables_on(probe: Probe, model: Model, grid: ResultGrid) -> dict[str, np.ndarray]:
    """Fields, outputs and residuals on the grid."""
    system, points = probe.system, grid.points
    found = dict(zip(system.fields, probe.fields(model, points).T, strict=True))
    extra = outputs(system.problem)
    residuals = {f"residual_{t.name}": with_summands(t)[0] for t in system.equations}
    wanted = extra | residuals
    values = probe.values(model, tuple(wanted.values()), points)
    found.update(zip(wanted, values.T, strict=True))
    return {n.replace(".", "_"): grid.spread(v) for n, v in found.items()}
