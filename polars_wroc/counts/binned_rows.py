"""Pool the rows of a class that share a score bin into one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_wroc.counts.binning import Binning
from polars_wroc.counts.score_sums import (
    BIN,
    LOW,
    add_up,
    add_up_in_bins,
    check_labels,
    row_sums,
    rows_from_counts,
    with_common_score,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, SCORE, SCORE_HIGH, SELECTED
from polars_wroc.inputs.missing import MISSING_MARKS
from polars_wroc.inputs.rows import Rows
from polars_wroc.inputs.survey_design import refuse_design
from polars_wroc.plans.by_keys import aggregate, join_on_keys

# The proportion of pairs that may stay within bins, and that of each bin.
_ALLOWED, _PAIRS, _ALL = "__allowed", "__pairs", "_all"


def pool_in_bins(
    rows: Rows, binning: Binning, groupings: Sequence[Sequence[str]] | None = None
) -> Rows:
    """Pool the rows of a class that share a score bin, if there is a binning.

    A tolerance holds for the groups of the keys, or for those of each of the ``groupings``.
    """
    if not binning:
        return rows
    bins_by = arguments.named(arguments.given(bins=binning.bins, tolerance=binning.tolerance))
    if rows.design is not None:
        refuse_design(rows.design.given, f"with {bins_by}, which keeps no single rows")
    if CLUSTER in rows.frame.collect_schema():
        refuse_design(["cluster"], f"with {bins_by}, which keeps no single rows")
    # Rows that miss different values, or on which the decision was recorded, are still to be
    # counted apart.
    apart = (MISSING_MARKS, SELECTED)
    marks = [name for name in apart if name in rows.frame.collect_schema()]
    marked = rows.regrouped([*rows.group_keys, *marks])
    if binning.tolerance is None:
        counts = _binned(marked, binning, binning.parts)
    else:
        ways = [rows.group_keys] if groupings is None else groupings
        counts = _divide(marked, binning, ways)
    pooled = rows_from_counts(check_labels(counts, marked.keys), marked.keys, rows.model_keys)
    return replace(pooled, keys=rows.keys, names=rows.names)


def _binned(rows: Rows, binning: Binning, parts: int) -> pl.LazyFrame:
    """Add up rows in bins that are the same in all groups."""
    counts = add_up_in_bins(rows, binning, parts)
    return with_common_score(counts, rows.model_keys, binning.number(pl.col(LOW), parts))


def _divide(rows: Rows, binning: Binning, groupings: Sequence[Sequence[str]]) -> pl.LazyFrame:
    """Add up rows in bins, which are divided where the bounds of a group's AUC would be too wide.

    The bins with the most pairs are divided into finer ones, and the finer ones with the most
    pairs into single scores, until the pairs left within bins are at most the tolerance times
    all pairs. A bin is divided in all groups or in none, so that groups can be added up.
    """
    on = [*rows.model_keys, BIN]
    ways = [[*grouping, *rows.model_keys] for grouping in groupings]
    kept: list[pl.LazyFrame] = []
    allowed: list[pl.LazyFrame] = []
    for parts in (binning.parts, binning.finer_parts):
        # Computed once: sums that differ in the last digits could divide a bin in one place only.
        number = binning.number(pl.col(LOW), parts).alias(BIN)
        counts = _binned(rows, binning, parts).with_columns(number).cache()
        if not allowed:
            allowed = [_allowed(counts, way, binning) for way in ways]
        divided = pl.concat(
            _too_many_pairs(counts, way, most).select(on)
            for way, most in zip(ways, allowed, strict=True)
        )
        divided = divided.unique().cache()
        kept.append(counts.join(divided, on=on, how="anti").drop(BIN))
        numbered = rows.frame.with_columns(binning.number(pl.col(SCORE), parts).alias(BIN))
        left = numbered.join(divided, on=on, how="semi").drop(BIN)
        rows = replace(rows, frame=left)
    scores = with_common_score(
        add_up(row_sums(rows), rows.keys, pl.col(LOW)), rows.model_keys, pl.col(LOW)
    )
    return pl.concat([*kept, scores])


def _allowed(counts: pl.LazyFrame, keys: Sequence[str], binning: Binning) -> pl.LazyFrame:
    """Add up the weight of both classes, with the proportion of pairs allowed within bins."""
    assert binning.tolerance is not None
    totals = {f"{name}{_ALL}": pl.col(name).sum() for name in ("w_pos", "w_neg")}
    allowed = pl.lit(binning.tolerance / 2).alias(_ALLOWED)
    return aggregate(counts, keys, totals).with_columns(allowed)


def _too_many_pairs(
    counts: pl.LazyFrame, keys: Sequence[str], allowed: pl.LazyFrame
) -> pl.LazyFrame:
    """Keep the bins with the most pairs, so that the others have at most the allowed pairs."""
    several = pl.col(SCORE) < pl.col(SCORE_HIGH)
    sums = counts.filter(several).group_by(*keys, BIN).agg(pl.col("w_pos", "w_neg").sum())
    # Proportions, since products of weights may overflow or underflow.
    shares = [pl.col(name) / pl.col(f"{name}{_ALL}") for name in ("w_pos", "w_neg")]
    pairs = pl.col(_PAIRS)
    within = pairs.cum_sum().over(keys or pl.lit(1), order_by=pairs)
    both = join_on_keys(sums, allowed, keys).filter(shares[0].is_finite() & shares[1].is_finite())
    paired = both.with_columns((shares[0] * shares[1]).alias(_PAIRS))
    return paired.filter(within > pl.col(_ALLOWED))
