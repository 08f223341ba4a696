"""Write the blocks of a document for the output of a cell of a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from polars_wroc.documents.blocks import Block
from polars_wroc.documents.html_writer import write_html


def write_for_notebook(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML for `_repr_html_`, in the notebook's light or dark colours."""
    return f'<div class="wroc"><style>{_style()}</style>{write_html(blocks)}</div>'


@cache
def _style() -> str:
    return Path(__file__).with_name("notebook.css").read_text(encoding="utf-8")
