"""Results in the formats of other programs."""

from pinnlab.export.matlab import write_mat
from pinnlab.export.netcdf import write_netcdf
from pinnlab.export.paraview import write_vtu, write_xdmf
from pinnlab.export.stablehlo import write_stablehlo
from pinnlab.export.table import write_csv


__all__ = [
    "write_csv",
    "write_mat",
    "write_netcdf",
    "write_stablehlo",
    "write_vtu",
    "write_xdmf",
]
