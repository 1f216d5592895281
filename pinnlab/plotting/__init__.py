"""Pictures of a result: a good default figure and the panels that it is made of."""

from pinnlab.plotting.figure import figure, glance, save_figure
from pinnlab.plotting.maps import cloud, magnitude_map, signed_map
from pinnlab.plotting.panels import curves, distribution, history, parity


__all__ = [
    "cloud",
    "curves",
    "distribution",
    "figure",
    "glance",
    "history",
    "magnitude_map",
    "parity",
    "save_figure",
    "signed_map",
]
