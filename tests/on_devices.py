"""Compares runs on four devices with runs on one; prints what it finds as JSON.

Run by `test_devices`, with four devices made of one CPU.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from test_train import DECAY, HEAT, setup

from pinnlab.devices import disagreement, make_mesh, replicated, single
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
from pinnlab.points import look
from pinnlab.programs import Stage, compiled
from pinnlab.train import Hooks, Limits, train


OPTIMIZERS = {
    "SSBroyden": SSBroyden(),
    "LevenbergMarquardt": LevenbergMarquardt(),
    "Adam": Adam(),
    "LBFGS": LBFGS(),
    "Muon": Muon(),
    "ENGDW": ENGDW(),
    "ENGDW by directions": ENGDW(most=20, rank=12),
    "SPRING": SPRING(),
    "SketchedGaussNewton": SketchedGaussNewton(),
    "SketchedGaussNewton of few rows": SketchedGaussNewton(least=4, oversampling=2),
}
EVEN, UNEVEN = 64, 37
SPLIT = PartitionSpec("points")


def relative(found: jax.Array, expected: jax.Array) -> float:
    a, b = np.asarray(found), np.asarray(expected)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def on_both(points: int, text: str = HEAT):
    """The same objective on one device and on four, and the parameters."""
    alone, theta = setup(points=points, width=4, text=text, depth=1)
    mesh = make_mesh()
    # Copies, since training reuses the memory of the parameters that it is given.
    return (alone, theta), (alone.on(mesh), replicated(jnp.array(theta), mesh))


def values() -> dict[str, float]:
    """Errors of what four devices compute at one parameter vector."""
    (alone, theta), (many, there) = on_both(UNEVEN, HEAT)
    run = eqx.filter_jit(
        lambda o, t: (
            o.loss(t),
            o.value_and_grad(t),
            jax.grad(o.loss)(t),
            o.jacobian(t),
            o.residuals(t),
            look(o, t, jax.random.key(3), 4),
        )
    )
    loss, (value, gradient), by_loss, jacobian, rows, (drawn, heldout) = run(
        many, there
    )
    expected = run(alone, theta)
    back = drawn.on(single())
    return {
        "loss": relative(loss, expected[0]),
        "value": relative(value, expected[1][0]),
        "gradient": relative(gradient, expected[1][1]),
        "gradient of the loss": relative(by_loss, expected[1][1]),
        "J'J": relative(jacobian.T @ jacobian, expected[3].T @ expected[3]),
        "J'r": relative(rows @ jacobian, expected[1][1]),
        "held-out": relative(heldout, expected[5][1]),
        "drawn points": max(
            relative(a.points, b.points)
            for a, b in zip(back.blocks, expected[5][0].blocks, strict=True)
        ),
    }


Carry = tuple[jax.Array, Any]
Taken = tuple[Carry, jax.Array, jax.Array]


def taking(optimizer: AbstractOptimizer) -> Callable[..., Taken]:
    """A function that takes steps: parameters and state, the loss, and that before."""

    def run(objective, theta, count):
        def body(_, carry):
            return optimizer.step(objective, *carry)[:2]

        start = theta, optimizer.init(objective, theta)
        carry = jax.lax.fori_loop(0, count, body, start)
        return carry, objective.loss(carry[0]), objective.loss(theta)

    return run


def apart(found: Taken, expected: Taken) -> tuple[float, float]:
    """The error of the parameters, and of the loss relative to that before."""
    change = abs(float(found[1]) - float(expected[1])) / float(expected[2])
    return relative(found[0][0], expected[0][0]), change


def steps(optimizer: AbstractOptimizer) -> dict[str, object]:
    """After one and ten steps: errors, and which copies differ."""
    here, there = on_both(UNEVEN, HEAT)
    mesh = there[0].mesh
    run = taking(optimizer)
    program = compiled(run, *there, replicated(jnp.asarray(1), mesh))
    alone = eqx.filter_jit(run)
    result: dict[str, object] = {"moved": moved(program)}
    for name, count in (("one", 1), ("ten", 10)):
        found = program(*there, replicated(jnp.asarray(count), mesh))
        expected = alone(*here, jnp.asarray(count))
        result[name] = (*apart(found, expected), disagreement(found[0], "carry"))
    return result


def amplified() -> list[tuple[float, float]]:
    """Ten steps of Levenberg-Marquardt that nearly forget to be damped: errors of four
    devices, and of one that begins up to one unit in the last place apart."""
    (objective, theta), there = on_both(UNEVEN, DECAY)
    run, ten = taking(LevenbergMarquardt()), jnp.asarray(10)
    alone = eqx.filter_jit(run)
    expected = alone(objective, theta, ten)
    nudged = jnp.where(jnp.arange(theta.size) % 2, jnp.nextafter(theta, jnp.inf), theta)
    found = eqx.filter_jit(run)(*there, replicated(ten, there[0].mesh))
    return [apart(found, expected), apart(alone(objective, nudged, ten), expected)]


def moved(program: Any) -> dict[str, float | bool]:
    """What a program sends: whether it sums, and its largest gathering's share of J."""
    text = program.compiled.as_text()
    gathered = [
        np.prod([int(n) for n in shape.split(",")])
        for shape in re.findall(r"= f64\[([\d,]+)\]\S* all-gather", text)
    ]
    _, (many, theta) = on_both(UNEVEN, HEAT)
    whole = many.blocks[0].points.shape[0] * theta.size
    return {
        "sums": "all-reduce" in text,
        "gathered": max(gathered, default=0) / whole,
    }


def trained() -> float:
    """The error after a stage with two looks and a redraw."""
    found = [
        train(
            objective,
            theta,
            (Stage("s", SSBroyden(), 10, 5, True, 4),),
            Limits(1e9, 0.0, 0.0),
            key=jax.random.key(1),
            hooks=Hooks(lambda row: None),
        )
        for objective, theta in on_both(EVEN, DECAY)
    ]
    assert found[1].objective.mesh.size == 4
    ours, theirs = (jnp.asarray(f.theta) for f in found)
    return relative(theirs, ours)


def layout() -> dict[str, bool]:
    """Whether what is large is split, and what is not is on each device."""
    (_, theta), (many, there) = on_both(UNEVEN)
    jacobian = eqx.filter_jit(many.jacobian)(there)
    drawn, _ = eqx.filter_jit(look)(many, there, jax.random.key(0), 4)
    rows = sum(b.points.shape[0] * b.scale.size for b in many.blocks)

    def is_split(array: jax.Array) -> bool:
        per_device = {s.data.shape[0] for s in array.addressable_shards}
        return per_device == {array.shape[0] // 4} and len(array.devices()) == 4

    every = [a for o in (many, drawn) for b in o.blocks for a in (b.points, b.known)]
    every = [a for a in every if a.size]
    rest = [many.parameters, [(b.scale, b.weight, b.lower) for b in many.blocks], there]
    return {
        "points": all(map(is_split, every)),
        "rows": is_split(eqx.filter_jit(many.residuals)(there)) and rows % 4 == 0,
        "jacobian": is_split(jacobian) and jacobian.shape == (rows, theta.size),
        "parameters": all(
            a.sharding.is_fully_replicated for a in jax.tree.leaves(rest)
        ),
    }


def replicas() -> list[str | None]:
    """What the check says of copies that agree, and of one that does not."""
    mesh = make_mesh()
    sharding = NamedSharding(mesh, PartitionSpec())
    parts = [
        jax.device_put(jnp.full(3, float(i == 2)), d)
        for i, d in enumerate(mesh.devices)
    ]
    wrong = jax.make_array_from_single_device_arrays((3,), sharding, parts)
    split = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, SPLIT))
    good = {"a": replicated(jnp.arange(3.0), mesh), "b": split}
    return [disagreement(good, "state"), disagreement(good | {"c": wrong}, "state")]


def refusals() -> list[str]:
    found = []
    for count in (0, 5):
        try:
            make_mesh(count)
        except ProblemError as error:
            found.append(str(error))
    return found


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    assert jax.device_count() == 4
    with jax.default_matmul_precision("highest"):
        found: dict[str, object] = {
            "values": values(),
            "trained": trained(),
            "amplified": amplified(),
            "layout": layout(),
            "replicas": replicas(),
            "refusals": refusals(),
        }
        for name, optimizer in OPTIMIZERS.items():
            found[name] = steps(optimizer)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
