"""The diagnosis of a finished run, put into its report."""

import dataclasses

import jax

from pinnlab.diagnosis.advice import Signs, advise
from pinnlab.diagnosis.gradients import term_gradients
from pinnlab.diagnosis.spectrum import residual_spectra
from pinnlab.diagnosis.watch import MEGABYTE, Watch
from pinnlab.result import Diagnosis
from pinnlab.solution import Solution


def diagnosed(solution: Solution, watch: Watch) -> Solution:
    """The solution with a diagnosis in its report."""
    report = solution.report
    failures = tuple(
        w.split(": ", 1)[1].split("; went back")[0]
        for w in report.warnings
        if "went back" in w
    )
    gradients = ()
    if watch.objective is not None and watch.theta is not None:
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            gradients = term_gradients(watch.objective, watch.theta)
    spectra = residual_spectra(solution.result)
    checks = watch.checks() if watch.objective is not None else ()
    signs = Signs(report, solution.settings, failures, checks, gradients, spectra)
    found = Diagnosis(
        advise(signs),
        watch.step_memory / MEGABYTE,
        failures,
        checks,
        gradients,
        spectra,
    )
    told = dataclasses.replace(report, diagnosis=found)
    result = dataclasses.replace(solution.result, report=told)
    return dataclasses.replace(solution, result=result)
