"""How long it takes to refuse a hostile problem file, over reading an honest one.

    python experiments/refusals.py [--repeats 5]

Prints a Markdown table: the best of the repeats, in milliseconds and as a ratio to the
longest file of the gallery, read in the same run. A text whose refusal grows faster
than the text itself shows here first.
"""

import argparse
import time
from collections.abc import Callable

from pinnlab import load_problem, loads_problem
from pinnlab.cli.gallery import gallery
from pinnlab.errors import ProblemError


DESCRIPTION = "Time to refuse a hostile problem file, over reading an honest one."
HEAT = """
coordinates = {{ t = [0, 1], x = [-1, 1] }}
fields = ["u"]
[parameters]
k = 2
[equations]
heat = "dt(u) = k*dxx(u) + {source}"
[conditions]
initial = {{ on = "t = 0", equation = "u = 0" }}
walls = {{ on = ["x = -1", "x = 1"], equation = "u = 0" }}
"""
SOURCES = {
    "100 000 parentheses": "(" * 100_000 + "u" + ")" * 100_000,
    "2 000 000 digits": "1" * 2_000_000,
    "200 000 signs": "-" * 200_000 + "u",
    "5 000 powers": "u^" * 5_000 + "u",
    "2 000 gradients": "div(" + "grad(u) + " * 2_000 + "grad(u))",
    "500 derivatives inside each other": "dx(" * 500 + "u" + ")" * 500,
    "300 integrals inside each other": "integral(" * 300 + "u" + ", x)" * 300,
    "a power tower": "9^9^9^9^9*u",
}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    honest = max(gallery(), key=lambda e: e.path.stat().st_size).path
    unit = best(lambda: load_problem(honest), repeats)
    print(f"`{honest.name}` is read in {1e3 * unit:.1f} ms.\n")
    print("| text | ms | ratio |\n|---|---:|---:|")
    for name, source in SOURCES.items():
        text = HEAT.format(source=source)
        spent = best(lambda text=text: refuse(text), repeats)
        print(f"| {name} | {1e3 * spent:.1f} | {spent / unit:.2g} |")


def refuse(text: str) -> None:
    """Raises `AssertionError` where the text is not refused."""
    try:
        loads_problem(text, "hostile.toml")
    except ProblemError:
        return
    raise AssertionError("the text was accepted")


def best(work: Callable[[], object], repeats: int) -> float:
    """The shortest time of several, in seconds."""
    spans = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        spans.append(time.perf_counter() - began)
    return min(spans)


if __name__ == "__main__":
    main()
