"""Networks: Equinox modules that can be called and can carry jets."""

from pinnlab.network.arrays import Derivative, in_arrays, slabs_of
from pinnlab.network.base import AbstractNetwork
from pinnlab.network.corners import HeatCorners, LaplaceCorners, blank_corners
from pinnlab.network.corrected import Corrected
from pinnlab.network.fbpinn import FBPINN
from pinnlab.network.kan import ChebyshevKAN
from pinnlab.network.layer import Layer
from pinnlab.network.make import KINDS, make_network
from pinnlab.network.mlp import MLP, Parallel
from pinnlab.network.modified_mlp import ModifiedMLP
from pinnlab.network.pieces import Piecewise, Sum, blank_pieces
from pinnlab.network.piratenet import PirateNet
from pinnlab.network.plane import PlaneFunctions
from pinnlab.network.scaled import Scaled, trainable, trained_numbers
from pinnlab.network.separable import Separable, blank_separable
from pinnlab.network.spinn import SPINN


__all__ = [
    "FBPINN",
    "KINDS",
    "MLP",
    "SPINN",
    "AbstractNetwork",
    "ChebyshevKAN",
    "Corrected",
    "Derivative",
    "HeatCorners",
    "LaplaceCorners",
    "Layer",
    "ModifiedMLP",
    "Parallel",
    "Piecewise",
    "PirateNet",
    "PlaneFunctions",
    "Scaled",
    "Separable",
    "Sum",
    "blank_corners",
    "blank_pieces",
    "blank_separable",
    "in_arrays",
    "make_network",
    "slabs_of",
    "trainable",
    "trained_numbers",
]
