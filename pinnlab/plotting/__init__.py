"""Pictures of a result: a good default figure and the panels that it is made of."""

from pinnlab.plotting.fields import arrows, planes, streamlines
from pinnlab.plotting.figure import figure, glance, save_figure
from pinnlab.plotting.maps import cloud, collocation_points, magnitude_map, signed_map
from pinnlab.plotting.motion import film, frames, save_animation, save_movie
from pinnlab.plotting.panels import curves, distribution, history, parity
from pinnlab.plotting.spectra import spectrum
from pinnlab.plotting.statistics import band, convergence, intervals
from pinnlab.plotting.surfaces import isosurfaces
from pinnlab.plotting.tree import expression_tree


__all__ = [
    "arrows",
    "band",
    "cloud",
    "collocation_points",
    "convergence",
    "curves",
    "distribution",
    "expression_tree",
    "figure",
    "film",
    "frames",
    "glance",
    "history",
    "intervals",
    "isosurfaces",
    "magnitude_map",
    "parity",
    "planes",
    "save_animation",
    "save_figure",
    "save_movie",
    "signed_map",
    "spectrum",
    "streamlines",
]
