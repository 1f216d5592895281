"""Poisson's equation on the unit square with jinns: natural gradient, 64 bits."""
# pyright: reportMissingImports=false

import equinox as eqx
import jax
import jax.numpy as jnp
import jinns


class Poisson(jinns.loss.PDEStatio):
    def equation(self, x, u, params):
        laplacian = jinns.loss.laplacian_rev(x, u, params, eq_type="PDEStatio")
        wave = jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])
        return jnp.atleast_1d(-laplacian - 2 * jnp.pi**2 * wave)


def model(seed):
    points, weights = jax.random.split(jax.random.key(seed))
    data = jinns.data.CubicMeshPDEStatio(
        key=points, n=1200, nb=120, dim=2, min_pts=(0, 0), max_pts=(1, 1),
        method="uniform",
    )  # fmt: skip
    layers = ((eqx.nn.Linear, 2, 20), (jax.nn.tanh,))
    layers += ((eqx.nn.Linear, 20, 20), (jax.nn.tanh,)) * 2
    u, start = jinns.nn.PINN_MLP.create(
        key=weights, eqx_list=(*layers, (eqx.nn.Linear, 20, 1)), eq_type="PDEStatio"
    )
    params = jinns.parameters.Params(nn_params=start, eq_params={})
    loss = jinns.loss.LossPDEStatio(
        u=u,
        dynamic_loss=Poisson(),
        boundary_condition=jinns.loss.Dirichlet(),
        loss_weights=jinns.loss.LossWeightsPDEStatio(dyn_loss=1.0, boundary_loss=1.0),
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
