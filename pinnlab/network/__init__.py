"""Networks: Equinox modules that can be called and can carry jets."""

from pinnlab.network.base import AbstractNetwork
from pinnlab.network.make import make_network
from pinnlab.network.mlp import MLP, Layer, Parallel
from pinnlab.network.scaled import Scaled, trained
from pinnlab.network.separable import Separable, blank_separable


__all__ = [
    "MLP",
    "AbstractNetwork",
    "Layer",
    "Parallel",
    "Scaled",
    "Separable",
    "blank_separable",
    "make_network",
    "trained",
]
