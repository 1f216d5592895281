"""Burgers' equation as DeepXDE's documentation solves it: Adam, then L-BFGS."""
# pyright: reportMissingImports=false

import deepxde as dde
import numpy as np


def model(seed):
    dde.config.set_random_seed(seed)
    space = dde.geometry.Interval(-1, 1)
    domain = dde.geometry.GeometryXTime(space, dde.geometry.TimeDomain(0, 1))

    def equation(x, u):
        u_x = dde.grad.jacobian(u, x, i=0, j=0)
        u_t = dde.grad.jacobian(u, x, i=0, j=1)
        u_xx = dde.grad.hessian(u, x, i=0, j=0)
        return u_t + u * u_x - 0.01 / np.pi * u_xx

    walls = dde.icbc.DirichletBC(domain, lambda x: 0, lambda _, on: on)
    initial = dde.icbc.IC(
        domain, lambda x: -np.sin(np.pi * x[:, 0:1]), lambda _, on: on
    )
    data = dde.data.TimePDE(
        domain,
        equation,
        [walls, initial],
        num_domain=2540,
        num_boundary=80,
        num_initial=160,
    )
    network = dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal")
    return dde.Model(data, network)


def train(found, watch):
    found.compile("adam", lr=1e-3)
    found.train(iterations=15000, callbacks=[watch])
    found.compile("L-BFGS")
    found.train(callbacks=[watch])
