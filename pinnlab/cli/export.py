"""`export`: a result in the format of another program."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pinnlab.cli.options import ResultFile
from pinnlab.cli.terminal import friendly


class Format(StrEnum):
    """What a result can be written as."""

    VTU = "vtu"
    XDMF = "xdmf"
    NETCDF = "netcdf"
    CSV = "csv"
    MAT = "mat"
    STABLEHLO = "stablehlo"


SUFFIXES = {Format.NETCDF: ".nc"}

To = Annotated[Format, typer.Option("--to", help="The format.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The file; RUN with the format's ending."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@friendly
def export(
    run: ResultFile, to: To, output: Output = None, force: Force = False
) -> None:
    """Write a result for another program.

    vtu and xdmf: ParaView (vtu one mesh, xdmf a series in time). netcdf: CF names.
    csv: a row for each point. mat: MATLAB and Octave. stablehlo: the solution itself
    as a program for JAX on CPUs and NVIDIA GPUs, which does not need pinnlab.
    """
    from pinnlab import export as formats
    from pinnlab.atomic import check_writable
    from pinnlab.hdf5 import read_result
    from pinnlab.solution import Solution

    path = output or Path(run.with_suffix(SUFFIXES.get(to, f".{to}")).name)
    check_writable(path)
    if to is Format.STABLEHLO:
        formats.write_stablehlo(Solution.load(run), path, force=force)
    else:
        write = {
            Format.VTU: formats.write_vtu,
            Format.XDMF: formats.write_xdmf,
            Format.NETCDF: formats.write_netcdf,
            Format.CSV: formats.write_csv,
            Format.MAT: formats.write_mat,
        }[to]
        write(read_result(run), path, force=force)
    typer.echo(str(path), err=True)
