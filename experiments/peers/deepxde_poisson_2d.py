"""Poisson's equation on the unit square with DeepXDE: Adam, then L-BFGS."""
# pyright: reportMissingImports=false

import deepxde as dde
import numpy as np
import torch


def model(seed):
    dde.config.set_random_seed(seed)
    square = dde.geometry.Rectangle([0, 0], [1, 1])

    def equation(x, u):
        u_xx = dde.grad.hessian(u, x, i=0, j=0)
        u_yy = dde.grad.hessian(u, x, i=1, j=1)
        wave = torch.sin(np.pi * x[:, 0:1]) * torch.sin(np.pi * x[:, 1:2])
        return -u_xx - u_yy - 2 * np.pi**2 * wave

    walls = dde.icbc.DirichletBC(square, lambda x: 0, lambda _, on: on)
    data = dde.data.PDE(square, equation, walls, num_domain=1200, num_boundary=120)
    network = dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal")
    return dde.Model(data, network)


def train(found, watch):
    found.compile("adam", lr=1e-3)
    found.train(iterations=15000, callbacks=[watch])
    found.compile("L-BFGS")
    found.train(callbacks=[watch])
