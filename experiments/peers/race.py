"""One race of another library, in that library's own environment.

    python race.py LIBRARY PROBLEM --seed 0 --seconds 300 --truth truth.csv -o curve.csv
    python race.py LIBRARY gradient --precision float64 -o curve.csv

LIBRARY is `deepxde` or `jinns`; the problem is the script LIBRARY_PROBLEM.py beside
this file, which is what a user writes. A race leaves a row of seconds, compilation
seconds and relative L2 error for each look at the error, and ends at a tenth of the
wanted error or when the time is over. `gradient` leaves the milliseconds of one loss
with its gradient. Looks at the error are not counted with DeepXDE, and cost less than
a percent with jinns.
"""
# pyright: reportMissingImports=false

import argparse
import contextlib
import csv
import importlib
import os
import time
from pathlib import Path

import numpy as np


ENOUGH = 1e-4
REPEATS = 30
Curve = list[tuple[float, float, float]]


def main() -> None:
    """One race, or one measurement of the gradient."""
    parser = argparse.ArgumentParser(description="One race of another library.")
    parser.add_argument("library", choices=["deepxde", "jinns"])
    parser.add_argument("problem", choices=["burgers", "poisson_2d", "gradient"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    os.environ["DDE_BACKEND"] = "pytorch"
    gradient = options.problem == "gradient"
    wide = options.library == "jinns" and not gradient
    if wide or options.precision == "float64":
        os.environ["JAX_ENABLE_X64"] = "1"
    name = "burgers" if gradient else options.problem
    script = importlib.import_module(f"{options.library}_{name}")
    if gradient:
        timed = {"deepxde": deepxde_gradient, "jinns": jinns_gradient}
        rows: Curve = [(timed[options.library](script, options.precision), 0.0, 0.0)]
    else:
        truth = np.loadtxt(options.truth, delimiter=",")
        race = {"deepxde": deepxde_race, "jinns": jinns_race}[options.library]
        rows = race(script, options.seed, options.seconds, truth)
    draft = options.output.with_suffix(".part")
    with draft.open("w", newline="") as file:
        csv.writer(file).writerows([("seconds", "compiling", "error"), *rows])
    draft.replace(options.output)


class Over(Exception):
    """The race is over."""


def deepxde_race(script, seed: int, limit: float, truth: np.ndarray) -> Curve:
    """Error against time; `truth` has rows of the library's coordinates and u."""
    import deepxde as dde

    # L-BFGS gives back control after so many iterations, so that one can look.
    dde.optimizers.set_LBFGS_options()
    dde.optimizers.config.LBFGS_options.update(iter_per_step=100, fun_per_step=125)
    rows: Curve = []

    class Watch(dde.callbacks.Callback):
        started, looking, calls = 0.0, 0.0, 0

        def on_epoch_end(self) -> None:
            self.calls += 1
            if self.model.opt_name == "adam" and self.calls % 200:
                return
            now = time.perf_counter()
            values = self.model.predict(truth[:, :2])[:, 0]
            error = relative(values, truth[:, 2])
            seconds = now - self.started - self.looking
            rows.append((seconds, 0.0, error))
            self.looking += time.perf_counter() - now
            if error < ENOUGH or seconds > limit:
                raise Over

    watch = Watch()
    found = script.model(seed)
    watch.started = time.perf_counter()
    with contextlib.suppress(Over):
        script.train(found, watch)
    return rows


def jinns_race(script, seed: int, limit: float, truth: np.ndarray) -> Curve:
    """Error against time; the clock starts when the first iteration is done."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import io_callback
    from jinns.validation import AbstractValidationModule

    rows: Curve = []
    u, *_ = found = script.model(seed)
    points, values = jnp.asarray(truth[:, :2]), jnp.asarray(truth[:, 2])
    began = time.perf_counter()
    first: list[float] = []

    def look(error: jax.Array) -> np.bool_:
        now = time.perf_counter()
        first.append(now)
        seconds = now - first[0]
        rows.append((seconds, first[0] - began, float(error)))
        return np.bool_(float(error) < ENOUGH or seconds > limit)

    class Watch(AbstractValidationModule):
        call_every: int = 10

        def __call__(self, params):
            ours = jax.vmap(lambda p: u(p, params).squeeze())(points)
            error = jnp.linalg.norm(ours - values) / jnp.linalg.norm(values)
            shape = jax.ShapeDtypeStruct((), bool)
            over = io_callback(look, shape, error)
            return self, over, error, False

    script.train(found, Watch())
    return rows


def deepxde_gradient(script, precision: str) -> float:
    """Milliseconds of the loss of Burgers' equation and its gradient."""
    import deepxde as dde
    import torch

    dde.config.set_default_float(precision)
    found = script.model(0)
    found.compile("adam", lr=1e-3)
    inputs, targets, extra = found.data.train_next_batch()

    def once() -> None:
        found.opt.zero_grad()
        losses = found.outputs_losses_train(inputs, targets, extra)[1]
        torch.sum(losses).backward()

    return milliseconds(once)


def jinns_gradient(script, precision: str) -> float:
    """The same with jinns, compiled."""
    import jax

    _, params, loss, data = script.model(0)
    batch = data.get_batch()[1]
    assert params.nn_params.layers[0].weight.dtype == precision
    both = jax.jit(jax.value_and_grad(lambda p: loss.evaluate(p, batch)[0]))
    return milliseconds(lambda: jax.block_until_ready(both(params)))


def milliseconds(once) -> float:
    """The median over some calls, after two that do not count."""
    times = []
    for _ in range(REPEATS + 2):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return float(1e3 * np.median(times[2:]))


def relative(values: np.ndarray, truth: np.ndarray) -> float:
    """The relative L2 error."""
    return float(np.linalg.norm(values - truth) / np.linalg.norm(truth))


if __name__ == "__main__":
    main()
