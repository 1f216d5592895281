"""Where the energy of a residual sits: at low, middle or high frequencies."""

import numpy as np

from pinnlab.result import ResidualSpectrum, Result


LEAST = 16
"""Grid points along a coordinate that make a spectrum worth while."""


def residual_spectra(result: Result) -> tuple[ResidualSpectrum, ...]:
    """The spectrum of every equation's residual along every coordinate of the grid."""
    found: list[ResidualSpectrum] = []
    for name, values in result.variables.items():
        if not name.startswith("residual_") or values.ndim != len(result.axes):
            continue
        for axis, coordinate in enumerate(result.axes):
            if values.shape[axis] >= LEAST and np.isfinite(values).all():
                shares = band_shares(values, axis)
                equation = name.removeprefix("residual_")
                found.append(ResidualSpectrum(equation, coordinate, *shares))
    return tuple(found)


def band_shares(values: np.ndarray, axis: int) -> tuple[float, float, float]:
    """The shares of the energy in the three bands along an axis of uniform points.

    With a Hann window, since the values need not be periodic. The limits are at a
    third and two thirds of the way from 1 to the highest wavenumber, geometrically.
    """
    count = values.shape[axis]
    window = np.hanning(count)
    spectrum = np.fft.rfft(np.moveaxis(values, axis, -1) * window)
    power = np.sum(np.abs(spectrum) ** 2, axis=tuple(range(spectrum.ndim - 1)))
    total = float(np.sum(power))
    if total == 0:
        return 1.0, 0.0, 0.0
    wavenumber = np.arange(len(power))
    first, second = (len(power) - 1) ** (1 / 3), (len(power) - 1) ** (2 / 3)
    low = float(np.sum(power[wavenumber <= first])) / total
    high = float(np.sum(power[wavenumber > second])) / total
    return low, max(0.0, 1.0 - low - high), high
