"""Counts of several parts, added up."""

from __future__ import annotations

from collections.abc import Sequence

from polars_wroc.counts.binning import Binning
from polars_wroc.counts.count_table import merge, read_count_tables
from polars_wroc.plans.collect import FrameT, like_input


def merge_counts(counts: Sequence[FrameT], *, bins: int | None = None) -> FrameT:
    """Add up counts of parts of the data to the counts of the whole.

    Parameters
    ----------
    counts
        A list of results of `score_counts`, all DataFrames or all LazyFrames, with the same groups
        and models. Where some are by score and some in bins, or in different numbers of
        bins, the result has the widest bins.
    bins
        Wider bins for the result; None keeps them.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The result of `score_counts` for all rows at once, but with the models in alphabetical
        order; sums may differ in the last digits.

    Raises
    ------
    TypeError, ValueError
        For something that is not a table of counts, for different groups, and for ``bins`` below
        16.
    polars.exceptions.InvalidOperationError
        For counts that are impossible, see `from_counts`, and for counts with labels together with
        counts without. At collect, if these are LazyFrames.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> monday = pl.DataFrame({"y": [1, 0], "s": [0.9, 0.7]})
    >>> tuesday = pl.DataFrame({"y": [1, 0], "s": [0.7, 0.1]})
    >>> parts = [wroc.score_counts(day, "y", "s") for day in (monday, tuesday)]
    >>> wroc.merge_counts(parts).select("score", "n_pos", "n_neg")
    shape: (3, 3)
    ┌───────┬───────┬───────┐
    │ score ┆ n_pos ┆ n_neg │
    │ ---   ┆ ---   ┆ ---   │
    │ f64   ┆ i64   ┆ i64   │
    ╞═══════╪═══════╪═══════╡
    │ 0.9   ┆ 1     ┆ 0     │
    │ 0.7   ┆ 1     ┆ 1     │
    │ 0.1   ┆ 0     ┆ 1     │
    └───────┴───────┴───────┘
    """
    Binning(bins)
    tables = read_count_tables("counts", counts)
    return like_input(counts[0], merge(tables, bins).table())
