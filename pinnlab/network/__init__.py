"""Networks: Equinox modules that can be called and can carry jets."""

from pinnlab.network.base import AbstractNetwork
from pinnlab.network.corners import HeatCorners, LaplaceCorners
from pinnlab.network.make import make_network
from pinnlab.network.mlp import MLP, Layer, Parallel
from pinnlab.network.pieces import Piecewise, Sum, blank_pieces
from pinnlab.network.separable import Separable, blank_separable


__all__ = [
    "MLP",
    "AbstractNetwork",
    "HeatCorners",
    "LaplaceCorners",
    "Layer",
    "Parallel",
    "Piecewise",
    "Separable",
    "Sum",
    "blank_pieces",
    "blank_separable",
    "make_network",
]
