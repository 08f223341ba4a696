"""Tables of counts by score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import polars as pl

from polars_wroc.counts.binning import Binning
from polars_wroc.counts.count_table import STATE_COLUMNS, count
from polars_wroc.counts.other_engines import read_native_rows
from polars_wroc.inputs.arguments import shown
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.collect import FrameT, collect


@overload
def score_counts(
    frame: FrameT,
    label: IntoColumn | None,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int | None = None,
) -> FrameT: ...


@overload
def score_counts(
    frame: Any,
    label: str | None,
    score: str | Sequence[str],
    *,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: object = None,
    bins: int | None = None,
) -> pl.DataFrame: ...


def score_counts(
    frame: Any,
    label: IntoColumn | None,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """Count rows and add up their weights by score, in a table that can be merged with others.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; or a frame of another engine that
        `Narwhals <https://narwhals-dev.github.io/narwhals>`_ supports: a relation of DuckDB, a
        table of Ibis (and so of BigQuery or Snowflake), a DataFrame of Spark, SQLFrame or pandas, a
        table of PyArrow. That engine groups and adds up its rows itself, in one query for each
        score column, and only the groups are transferred.
    label, score, weight, by, pos_label
        As for `summary`; only names of columns if the frame is not a Polars frame. Without a
        ``label``, if it is None, all rows count as negative.
    bins
        Count bins of scores instead of distinct scores: about this many for probabilities, at
        least 16, and more for scores that span more powers of two. Bin edges do not depend on the
        data: each range between two powers of two is cut into equal parts, and from 0.5 to 1
        ``1 - score`` is cut instead.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        Of the same kind as the frame; a DataFrame if that is not a Polars frame.
        One row per group (and model) and distinct score or bin that has a row, sorted by the
        ``by`` columns, then by descending score; the missing rows of a group come last, with a
        null score. After the ``by`` columns (and ``model``) comes ``score``, in the type of the
        score, or with ``bins`` the number of bins used, at least the number given
        (``bins``, Int64), and the lowest and highest score in the bin
        (``score_low, score_high``). Then come ``n_pos, n_neg, n_missing`` (Int64 numbers of rows)
        and ``w_pos, w_neg, w2_pos, w2_neg, w3_pos, w3_neg`` (Float64 sums of the weights of each
        class, of their squares and of their cubes). Without a label there is, last, ``labelled``
        (Boolean), which is False.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``bins`` below 16, and for ``pos_label`` without a label.

    Notes
    -----
    `merge_counts` adds up tables of counts, in any order and number; `from_counts` computes results
    from them. From counts by score they are exact; from bins an AUC has bounds. Counts without a
    label have the impact ratios of a threshold.

    Other engines group by score even with ``bins``: the bins are made by Polars, so that their
    edges are the same for all engines. In the older types of pandas NaN is null: both are missing.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.7, 0.7, 0.1]})
    >>> wroc.score_counts(df, "y", "s").select("score", "n_pos", "n_neg", "w_pos")
    shape: (3, 4)
    ┌───────┬───────┬───────┬───────┐
    │ score ┆ n_pos ┆ n_neg ┆ w_pos │
    │ ---   ┆ ---   ┆ ---   ┆ ---   │
    │ f64   ┆ i64   ┆ i64   ┆ f64   │
    ╞═══════╪═══════╪═══════╪═══════╡
    │ 0.9   ┆ 1     ┆ 0     ┆ 1.0   │
    │ 0.7   ┆ 1     ┆ 1     ┆ 1.0   │
    │ 0.1   ┆ 0     ┆ 1     ┆ 0.0   │
    └───────┴───────┴───────┴───────┘
    """
    binning = Binning(bins)
    if label is None and pos_label is not None:
        msg = f"`pos_label` must be None without a label; found {shown(pos_label)}"
        raise ValueError(msg)
    read = read_rows if isinstance(frame, pl.DataFrame | pl.LazyFrame) else read_native_rows
    rows = read(frame, label, score, weight, by, pos_label)
    # A table of counts is read by the names of its columns, of either kind.
    rows.check_names([*STATE_COLUMNS, MODEL])
    table = count(rows, binning, labelled=label is not None).table()
    return table if isinstance(frame, pl.LazyFrame) else collect(table)
