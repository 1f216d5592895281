"""Optimizers of a least-squares loss over a flat parameter vector, one a file."""

from pinnlab.optimizer.engd import ENGDW
from pinnlab.optimizer.first_order import LBFGS, Adam
from pinnlab.optimizer.levenberg_marquardt import LevenbergMarquardt
from pinnlab.optimizer.muon import Muon
from pinnlab.optimizer.objective import (
    AbstractObjective,
    AbstractOptimizer,
    Info,
    Numbering,
)
from pinnlab.optimizer.sketched_gauss_newton import SketchedGaussNewton
from pinnlab.optimizer.spring import SPRING
from pinnlab.optimizer.ssbroyden import SSBroyden


__all__ = [
    "ENGDW",
    "LBFGS",
    "SPRING",
    "AbstractObjective",
    "AbstractOptimizer",
    "Adam",
    "Info",
    "LevenbergMarquardt",
    "Muon",
    "Numbering",
    "SSBroyden",
    "SketchedGaussNewton",
]
