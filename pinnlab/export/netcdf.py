"""A result as netCDF with the attributes of the CF conventions."""

from pathlib import Path

import numpy as np

from pinnlab.atomic import replacing
from pinnlab.export.extras import needed
from pinnlab.hdf5 import LARGEST_GRID, POINT
from pinnlab.result import Result


CONVENTIONS = "CF-1.11"
AXES = {"t": "T", "x": "X", "y": "Y", "z": "Z"}
"""The CF axis of the usual coordinate names."""


def write_netcdf(result: Result, path: Path, *, force: bool = False) -> None:
    """Coordinates and variables as netCDF-4, with CF names.

    Above three coordinates the file holds points (CF's discrete sampling geometry).
    No units are written, because a problem file has none.
    """
    h5netcdf = needed("h5netcdf", "export")
    cloud = len(result.axes) > LARGEST_GRID
    names = " ".join(result.axes)
    with replacing(path, force=force) as draft, h5netcdf.File(draft, "w") as file:
        file.attrs.update(_global(result, cloud))
        if cloud:
            file.dimensions = {POINT: len(next(iter(result.axes.values())))}
        else:
            file.dimensions = {n: len(v) for n, v in result.axes.items()}
        for name, values in result.axes.items():
            dims = (POINT,) if cloud else (name,)
            axis = file.create_variable(name, dims, data=values)
            axis.attrs["long_name"] = f"coordinate {name}"
            if name in AXES and not cloud:
                axis.attrs["axis"] = AXES[name]
        for name, values in result.variables.items():
            dims = (POINT,) if cloud else tuple(result.axes)
            kept = [d for d, n in zip(dims, values.shape, strict=True) if n > 1]
            data = np.squeeze(values)
            variable = file.create_variable(name, tuple(kept), data=data)
            variable.attrs["long_name"] = _long_name(result, name)
            if cloud:
                variable.attrs["coordinates"] = names


def _global(result: Result, cloud: bool) -> dict[str, str]:
    facts = result.attributes
    found = {
        "Conventions": CONVENTIONS,
        "title": str(facts.get("title", "")) or "solution of a differential equation",
        "source": f"pinnlab {facts.get('pinnlab_version', '')}".strip(),
        "history": f"{facts.get('created', '')} solved by pinnlab".strip(),
        "comment": f"verdict: {result.report.verdict}: {result.report.reason}",
    }
    return found | {"featureType": "point"} if cloud else found


def _long_name(result: Result, name: str) -> str:
    """What a variable is, in words."""
    texts = {f"residual_{e.name}": e.text for e in result.report.equations}
    if name.replace(".", "_") in texts:
        return f"residual of {texts[name]}"
    for suffix, words in (
        ("_exact", "exact solution of"),
        ("_reference", "reference solution of"),
        ("_error_estimate", "error estimate of"),
        ("_spread", "standard deviation over the seeds of"),
    ):
        if name.endswith(suffix) and name.removesuffix(suffix) in result.variables:
            return f"{words} {name.removesuffix(suffix)}"
    return name.replace("_", " ")
