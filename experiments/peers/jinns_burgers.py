"""Burgers' equation with jinns: natural gradient in 64-bit arithmetic."""
# pyright: reportMissingImports=false

import equinox as eqx
import jax
import jax.numpy as jnp
import jinns


def model(seed):
    points, weights = jax.random.split(jax.random.key(seed))
    data = jinns.data.CubicMeshPDENonStatio(
        key=points, n=2540, nb=80, ni=160, dim=1, min_pts=(-1,), max_pts=(1,),
        tmin=0, tmax=1, method="uniform",
    )  # fmt: skip
    layers = ((eqx.nn.Linear, 2, 20), (jax.nn.tanh,))
    layers += ((eqx.nn.Linear, 20, 20), (jax.nn.tanh,)) * 2
    u, start = jinns.nn.PINN_MLP.create(
        key=weights, eqx_list=(*layers, (eqx.nn.Linear, 20, 1)), eq_type="PDENonStatio"
    )
    params = jinns.parameters.Params(
        nn_params=start, eq_params={"nu": jnp.array(0.01 / jnp.pi)}
    )
    loss = jinns.loss.LossPDENonStatio(
        u=u,
        dynamic_loss=jinns.loss.BurgersEquation(),
        initial_condition_fun=lambda x: -jnp.sin(jnp.pi * x),
        boundary_condition=jinns.loss.Dirichlet(),
        loss_weights=jinns.loss.LossWeightsPDENonStatio(
            dyn_loss=1.0, initial_condition=1.0, boundary_loss=1.0
        ),
        params=params,
    )
    return u, params, loss, data


def train(found, watch):
    _, params, loss, data = found
    jinns.solve(
        n_iter=5000,
        init_params=params,
        data=data,
        loss=loss,
        optimizer=jinns.optimizers.vanilla_ngd(),
        validation=watch,
    )
