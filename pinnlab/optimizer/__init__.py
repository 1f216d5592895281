"""Optimizers of a least-squares loss over a flat parameter vector, one a file."""

from pinnlab.optimizer.first_order import LBFGS, Adam
from pinnlab.optimizer.levenberg_marquardt import LevenbergMarquardt
from pinnlab.optimizer.objective import AbstractObjective, AbstractOptimizer, Info
from pinnlab.optimizer.ssbroyden import SSBroyden


__all__ = [
    "LBFGS",
    "AbstractObjective",
    "AbstractOptimizer",
    "Adam",
    "Info",
    "LevenbergMarquardt",
    "SSBroyden",
]
