"""Notebooks run, and are committed with pictures that show without running them."""

from __future__ import annotations

import runpy
from pathlib import Path

import nbformat
import polars as pl
import pytest
from nbclient import NotebookClient
from polars.testing import assert_frame_equal

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_runs_to_the_end(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_with_pictures(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    kinds = [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert "image/png" in kinds
    assert all(cell.get("outputs") for cell in notebook.cells[-1:])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "loans"])
def test_scripts_make_the_committed_data(name: str) -> None:
    made = runpy.run_path(str(FOLDER / f"make_{name}.py"))[name]()
    # Other versions of scikit-learn may move scores a little.
    assert_frame_equal(made, pl.read_parquet(FOLDER / "data" / f"{name}.parquet"), abs_tol=0.002)
