"""Imports go downwards only, and the command line starts without JAX."""

import ast
import subprocess
import sys
from pathlib import Path


PACKAGE = Path(__file__).parent.parent / "pinnlab"

# A module may import from its own layer and from layers above it in this list.
LAYERS = [
    {"cache", "clock", "errors", "signals", "result", "record"},
    {"metrics", "team", "room"},
    {"memory", "pieces"},
    {"data", "devices"},
    {"equation"},
    {"problem"},
    {"sampling"},
    {"system"},
    {"grids", "provenance"},
    {"network", "optimizer"},
    {"fields", "numbering"},
    {"rows"},
    {"residual"},
    {
        "scaling",
        "points",
        "nonfinite",
        "weighting",
        "settings",
        "evaluation",
        "viscosity",
    },
    {"programs", "snapshot", "assembly", "probe"},
    {"best", "singular"},
    {"train"},
    {"linear", "newton", "strategy", "reference"},
    {"correction"},
    {"verify", "atomic", "report_tables", "report_diagnosis", "report"},
    {"hdf5", "claim", "function"},
    {"checkpoint"},
    {"keeper"},
    {"solution"},
    {"sources", "compare", "diagnosis"},
    {"outcome"},
    {"training"},
    {"routes"},
    {"solved"},
    {"verification"},
    {"solver", "classical", "plotting", "export"},
    {"ensemble"},
    {"sweep"},
    {"notebook"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: i for i, layer in enumerate(LAYERS) for name in layer}


def imported(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


def test_every_module_has_a_layer_and_imports_downwards():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own == "__init__":
            continue
        assert own in LEVEL, f"{path} has no layer"
        for module in imported(path):
            parts = module.split(".")
            if parts[0] != "pinnlab" or len(parts) < 2:
                continue
            assert parts[1] in LEVEL, f"{module} has no layer"
            if LEVEL[parts[1]] > LEVEL[own]:
                wrong.append(f"{own} imports {module}")
    assert not wrong


def test_nothing_is_executed_from_text():
    forbidden = {"eval", "exec", "compile", "parse_expr"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, path
        assert "pickle" not in set(imported(path)), path


def test_help_does_not_import_jax():
    code = (
        "import sys, pinnlab.cli.main\n"
        "assert not {'jax', 'numpy', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
