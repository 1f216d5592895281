"""Pictures of a result: a good default figure and the panels that it is made of."""

from pinnlab.plotting.fields import arrows, planes, streamlines
from pinnlab.plotting.figure import figure, glance, save_figure
from pinnlab.plotting.maps import cloud, magnitude_map, signed_map
from pinnlab.plotting.motion import frames, save_animation
from pinnlab.plotting.panels import curves, distribution, history, parity
from pinnlab.plotting.spectra import spectrum
from pinnlab.plotting.surfaces import isosurfaces
from pinnlab.plotting.tree import expression_tree


__all__ = [
    "arrows",
    "cloud",
    "curves",
    "distribution",
    "expression_tree",
    "figure",
    "frames",
    "glance",
    "history",
    "isosurfaces",
    "magnitude_map",
    "parity",
    "planes",
    "save_animation",
    "save_figure",
    "signed_map",
    "spectrum",
    "streamlines",
]
