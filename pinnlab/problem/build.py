"""From the tables of a problem file, or of Python, to a checked `Problem`."""

import tomli_w

from pinnlab.errors import ProblemError, located
from pinnlab.problem.declarations import read_declarations
from pinnlab.problem.places import check_parts
from pinnlab.problem.problem import Problem
from pinnlab.problem.statements import (
    read_conditions,
    read_equations,
    read_exact,
    read_outputs,
    read_reference,
)
from pinnlab.problem.tables import Table, check_tables, string, subtable
from pinnlab.problem.usage import check_usage, has_functions


def make_problem(
    table: Table, name: str = "problem", file: str | None = None
) -> Problem:
    """The problem that tables describe; the same tables as in a problem file.

    An equation, or the `equation` of a condition, may also be a callable
    `(u, point)` that is zero: `u.name` are the fields as scalar functions of the point
    [dim], ready for `jax.grad`, `jax.hessian` and `jax.jvp`.

    Raises `ProblemError` for anything that is wrong.

    !!! example
        ```python
        problem = make_problem(
            {
                "coordinates": {"x": [0, 1]},
                "fields": ["u"],
                "equations": {"e": lambda u, x: jax.hessian(u)(x)[0, 0] + 1},
                "conditions": {"ends": {"on": "boundary", "equation": "u = 0"}},
            }
        )
        ```
    """
    with located(file=file):
        check_tables(table)
        declared = read_declarations(table)
        check_parts(declared)
        problem = Problem(
            axes=declared.axes,
            fields=declared.fields,
            equations=read_equations(subtable(table, "equations"), declared),
            conditions=read_conditions(subtable(table, "conditions"), declared),
            parameters=declared.parameters,
            periodic=declared.periodic,
            shape=declared.shape,
            exact=read_exact(subtable(table, "exact"), declared),
            outputs=read_outputs(subtable(table, "outputs"), declared),
            solver=dict(subtable(table, "solver")),
            reference=read_reference(subtable(table, "reference")),
            title=string(table, "title"),
            name=name,
            file=file,
            source="" if has_functions(table) else _source(table),
        )
        check_usage(table)
        return problem


def _source(table: Table) -> str:
    try:
        return tomli_w.dumps(dict(table))
    except TypeError as error:
        raise ProblemError(f"a value that a TOML file cannot hold: {error}") from None
