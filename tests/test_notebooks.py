"""The notebooks of the documentation run from top to bottom; their cells assert."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient


FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 600_000
"""Bytes of a notebook with its outputs; they are kept in the repository."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_outputs_are_kept_small_and_free_of_errors(path: Path):
    assert path.stat().st_size < LARGEST
    notebook = nbformat.read(path, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(c.execution_count for c in cells)
    kinds = {o.output_type for c in cells for o in c.outputs}
    assert kinds and "error" not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent.parent))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # The kernel's own shows inline.
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, resources=resources).execute()
    assert len(notebook.cells) > 5
