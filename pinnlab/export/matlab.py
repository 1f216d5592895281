"""A result for MATLAB and Octave: one array for each coordinate and variable."""

from pathlib import Path

import scipy.io

from pinnlab.atomic import replacing
from pinnlab.result import Result


LONGEST = 63
"""Characters of a name that MATLAB takes."""


def write_mat(result: Result, path: Path, *, force: bool = False) -> None:
    """The arrays of a result as a MATLAB 5 file, dimensions in coordinate order.

    Coordinates are columns; a variable has size 1 along a coordinate that it does not
    depend on, so that MATLAB's operators expand it.
    """
    arrays = {n: v.ravel() for n, v in result.axes.items()} | result.variables
    words = {"coordinates": ",".join(result.axes), "verdict": result.report.verdict}
    content = {name[:LONGEST]: values for name, values in arrays.items()} | words
    with replacing(path, force=force) as draft, draft.open("wb") as file:
        scipy.io.savemat(file, content, oned_as="column", do_compression=True)
