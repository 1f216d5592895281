"""Problem files to start from: the text of each kind, with comments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


TIME = "t"


@dataclass(frozen=True)
class Names:
    """The names a user chose: coordinates in order, and fields."""

    coordinates: tuple[str, ...]
    fields: tuple[str, ...]

    @property
    def space(self) -> tuple[str, ...]:
        """The coordinates that are not time."""
        return tuple(c for c in self.coordinates if c != TIME)

    def product(self, form: str) -> str:
        """`sin(pi*x)*sin(pi*y)` from the form `sin(pi*{x})`."""
        return "*".join(form.format(x=c) for c in self.space)


@dataclass(frozen=True)
class Model:
    """The mathematics of a starter; `{u}` in a text stands for the field.

    - `parameters`: name to value and comment.
    - `conditions`: name to place and equations.
    """

    equation: str
    parameters: dict[str, tuple[float, str]]
    conditions: dict[str, tuple[str, tuple[str, ...]]]
    exact: str = ""
    periodic: bool = False


@dataclass(frozen=True)
class Kind:
    """A kind of problem: what it is, its usual coordinates, and its model."""

    about: str
    coordinates: tuple[str, ...]
    timed: bool
    model: Callable[[Names], Model]


def starter(kind: str, names: Names, file: str = "FILE") -> str:
    """The text of a problem file of a kind of `KINDS`, with comments."""
    chosen = KINDS[kind]
    model = chosen.model(names)
    lines = [
        f"# {chosen.about}",
        f"#   pinnlab check {file}    what is wrong, before any training",
        f"#   pinnlab solve {file}    the solution, and how wrong it is",
        f'title = "{chosen.about}"',
        "",
        "# The range of each coordinate" + (f"; {TIME} is time." * chosen.timed or "."),
        f"coordinates = {{ {', '.join(f'{c} = [0, 1]' for c in names.coordinates)} }}",
        f"fields = [{_quoted(names.fields)}]",
    ]
    if model.periodic:
        lines += [
            "# The solution repeats itself in these: no conditions there.",
            f"periodic = [{_quoted(names.space)}]",
        ]
    lines += ["", "[parameters]"]
    lines += [f"{n} = {v}  # {words}" for n, (v, words) in model.parameters.items()]
    lines += [
        "",
        "# dx(u) is a derivative, dxx(u) the second; lap, grad, div, integral, ...",
        "[equations]",
    ]
    lines += _each(names.fields, "balance", model.equation)
    lines += ["", "# u = g, dn(u) = g (outward normal), dt(u) = g, ... at a place.",
              "[conditions]"]  # fmt: skip
    for name, (place, equations) in model.conditions.items():
        texts = [e.format(u=f) for e in equations for f in names.fields]
        written = _quoted(texts) if len(texts) == 1 else f"[{_quoted(texts)}]"
        lines.append(f'{name} = {{ on = "{place}", equation = {written} }}')
    if model.exact:
        lines += [
            "",
            "# Only if you know it: the error is measured against it. Delete this part",
            "# when you change the problem.",
            "[exact]",
            *(f'{f} = "{model.exact}"' for f in names.fields),
        ]
    return "\n".join(lines) + "\n"


def derivative(field: str, *coordinates: str) -> str:
    """`dxx(u)`, or `d(u, r1, r1)` where a name has several letters."""
    short = "d" + "".join(coordinates)
    if all(len(c) == 1 for c in coordinates) and short not in ("dn", "div"):
        return f"{short}({field})"
    return f"d({field}, {', '.join(coordinates)})"


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(f'"{t}"' for t in texts)


def _each(fields: tuple[str, ...], name: str, text: str) -> list[str]:
    """A line for each field; with several, its name is part of the key."""
    single = len(fields) == 1
    return [
        f'{name if single else f"{name}_{f}"} = "{text.format(u=f)}"' for f in fields
    ]


# ---------------------------------------------------------------------- the kinds


def _ode(names: Names) -> Model:
    (t,) = names.coordinates
    return Model(
        f"{derivative('{u}', t)} = -rate*{{u}}",
        {"rate": (2.0, "how fast it decays")},
        {"start": (f"{t} = 0", ("{u} = 1",))},
        f"exp(-rate*{t})",
    )


def _oscillator(names: Names) -> Model:
    (t,) = names.coordinates
    return Model(
        f"{derivative('{u}', t, t)} + omega^2*{{u}} = 0",
        {"omega": (6.0, "angular frequency")},
        {"start": (f"{t} = 0", ("{u} = 1", f"{derivative('{u}', t)} = 0"))},
        f"cos(omega*{t})",
    )


def _heat(names: Names) -> Model:
    shape = names.product("sin(pi*{x})")
    return Model(
        "dt({u}) = k*lap({u})",
        {"k": (0.1, "diffusivity")},
        {
            "initial": ("t = 0", (f"{{u}} = {shape}",)),
            "walls": ("boundary", ("{u} = 0",)),
        },
        f"exp(-{len(names.space)}*pi^2*k*t)*{shape}",
    )


def _wave(names: Names) -> Model:
    shape = names.product("sin(pi*{x})")
    return Model(
        "dtt({u}) = c^2*lap({u})",
        {"c": (1.0, "speed of the waves")},
        {
            "initial": ("t = 0", (f"{{u}} = {shape}", "dt({u}) = 0")),
            "ends": ("boundary", ("{u} = 0",)),
        },
        f"cos(sqrt({len(names.space)})*pi*c*t)*{shape}",
    )


def _advection(names: Names) -> Model:
    slopes = " + ".join(f"c*{derivative('{u}', x)}" for x in names.space)
    return Model(
        f"dt({{u}}) + {slopes} = 0",
        {"c": (1.0, "speed of the transport")},
        {"initial": ("t = 0", (f"{{u}} = {names.product('sin(2*pi*{x})')}",))},
        names.product("sin(2*pi*({x} - c*t))"),
        periodic=True,
    )


def _reaction(names: Names) -> Model:
    shape = names.product("cos(pi*{x})")
    return Model(
        "dt({u}) = k*lap({u}) + rate*{u}*(1 - {u})",
        {"k": (0.05, "diffusivity"), "rate": (3.0, "how fast it grows")},
        {
            "initial": (
                "t = 0",
                (f"{{u}} = 0.4 + 0.3*{shape}",),
            ),
            "walls": ("boundary", ("dn({u}) = 0",)),
        },
    )


def _poisson(names: Names) -> Model:
    shape = names.product("sin(pi*{x})")
    return Model(
        f"-lap({{u}}) = source*{shape}",
        {"source": (10.0, "strength of the source")},
        {"boundary": ("boundary", ("{u} = 0",))},
        f"source*{shape}/({len(names.space)}*pi^2)",
    )


KINDS = {
    "ode": Kind("Exponential decay", ("t",), True, _ode),
    "oscillator": Kind("Harmonic oscillator", ("t",), True, _oscillator),
    "heat": Kind("Heat conduction between cold walls", ("t", "x"), True, _heat),
    "wave": Kind("Waves between fixed ends", ("t", "x"), True, _wave),
    "advection": Kind("Transport around a periodic domain", ("t", "x"), True,
                      _advection),
    "reaction": Kind("Reaction and diffusion between closed walls", ("t", "x"), True,
                     _reaction),
    "poisson": Kind("Poisson's equation with zero on the boundary", ("x", "y"), False,
                    _poisson),
}  # fmt: skip
