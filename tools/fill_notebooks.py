"""Run notebooks and store what they print and draw.

Read the changes before you commit them: the sentences between the cells interpret these results.
"""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from pictures import smaller


def read(path: Path) -> nbformat.NotebookNode:
    """Read a notebook as it is stored."""
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def executed(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in its folder, with pictures that are compressed.

    The metadata of a cell with a picture describe it, as ``alt``, for readers who cannot see it.
    """
    notebook = read(path)
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, kernel_name="python3", resources=folder, record_timing=False).execute()
    for cell in notebook.cells:
        cell.metadata = {name: cell.metadata[name] for name in cell.metadata if name == "alt"}
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                picture = smaller(base64.b64decode(output.data["image/png"]))
                output.data["image/png"] = base64.b64encode(picture).decode()
                output.metadata["image/png"]["alt"] = cell.metadata["alt"]
    # Which Python it was does not matter.
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "name": "python3"}}
    return notebook


def renew(path: Path) -> None:
    """Run a notebook and store its output."""
    nbformat.write(executed(path), path)
