"""`show`: a table for readers, in a terminal and in a notebook."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.bounds import PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.documents.blocks import Table
from polars_wroc.documents.notebook import write_for_notebook
from polars_wroc.documents.table_layout import lay_out
from polars_wroc.documents.text_writer import Terminal, write_text
from polars_wroc.inputs.rows import polars_frame
from polars_wroc.queries import collect

# The width of a terminal of unknown width.
_WIDTH = 100
_ROWS = 40


@dataclass(frozen=True, repr=False)
class TableView:
    """A table that displays itself in a terminal and in a notebook."""

    table: Table

    def __repr__(self) -> str:
        """Return the table as text that fits the terminal."""
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        return write_text([self.table], Terminal(width))

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return write_for_notebook([self.table])


@check_call
def show(table: Any, *, rows: PositiveInt | None = _ROWS) -> TableView:
    """Show a table in readable form: estimates with their intervals, and what differs.

    Use it at the end of a notebook cell or at the prompt. In a script, ``print(wroc.show(table))``.

    - Attributes are headings, and each estimate has its confidence limits in brackets.
    - Shares are written in percent, their differences in percentage points.
    - Columns that are empty, the same in all rows (``model``, ``metric``) or, in this package's
      tables, technical (standard errors, for example) are left out. The frame keeps all numbers.
    - As many columns are shown as fit the terminal; a notebook shows all of them. Reasons that do
      not fit are below the rows.

    Parameters
    ----------
    table
        A table of this package, or any other DataFrame or LazyFrame, which is collected.
    rows
        The most rows that are shown; None for all.

    Returns
    -------
    TableView
        An object that a terminal and a notebook display.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> summary = wroc.summary(wroc.data.loans(), "approved", "score", by="race")
    >>> wroc.show(summary)
                                                                     average
    race          n  positives  negatives                     AUC  precision     KS
    black       197        133         64  0.703 (0.616 to 0.777)      0.814  0.346
    hispanic    111         85         26  0.824 (0.697 to 0.903)      0.916  0.552
    white     1,681      1,527        154  0.738 (0.693 to 0.779)      0.960  0.344
    3 rows; 11 columns in the frame
    """
    frame = polars_frame(table, "table")
    collected = collect(frame) if isinstance(frame, pl.LazyFrame) else frame
    return TableView(lay_out(collected, rows=rows, note=_count(collected, rows)))


def _count(frame: pl.DataFrame, rows: int | None) -> str:
    """Return the numbers of rows and columns of a frame, as text."""
    first = f", the first {rows:,} shown" if rows is not None and frame.height > rows else ""
    n_rows = f"{frame.height:,} row{'' if frame.height == 1 else 's'}"
    n_columns = f"{frame.width:,} column{'' if frame.width == 1 else 's'}"
    return f"{n_rows}{first}; {n_columns} in the frame"
