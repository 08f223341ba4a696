"""How far ties within bins may move the difference of two AUCs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE, SCORE_HIGH, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.by_keys import aggregate, join_on_keys, over

# How far bins may move the difference to the rows outside a group, or to another group.
BIN_SLACK = ("__hidden_rest", "__hidden_group")

_SEVERAL = "__several"


def with_bin_slack(sums: pl.LazyFrame, rows: Rows, partition_keys: Sequence[str]) -> pl.LazyFrame:
    """Add to the sums of groups how far bins may move the difference of two AUCs.

    `BIN_SLACK` has one column for what holds the rows outside a group and one for another group.
    """
    if not rows.binned:
        return sums
    pos, neg = class_weights(pl.col(WEIGHT).fill_null(0.0))
    several = (pl.col(SCORE) < pl.col(SCORE_HIGH)).any()
    sides = {"__pos": pos.sum(), "__neg": neg.sum()}
    bins = rows.frame.group_by(*rows.keys, SCORE).agg(several.alias(_SEVERAL), **sides)
    everybody = {f"{name}_all": pl.col(name).sum() for name in sides}
    bins = join_on_keys(
        bins, bins.group_by(*partition_keys, SCORE).agg(**everybody), [*partition_keys, SCORE]
    )
    own_pos, own_neg, all_pos, all_neg = (pl.col(name) for name in (*sides, *everybody))
    inside = pl.when(_SEVERAL).then(1.0).otherwise(0.0)
    mixed = all_pos * own_neg + own_pos * all_neg - own_pos * own_neg
    of_group = aggregate(
        bins,
        rows.keys,
        {
            "__own": (own_pos * own_neg * inside).sum(),
            "__mixed": (mixed * inside).sum(),
            **{name: pl.col(name).sum() for name in sides},
        },
    )
    pairs = all_pos * all_neg * inside
    of_all = aggregate(
        bins.unique([*partition_keys, SCORE]),
        partition_keys,
        {"__whole": pairs.sum(), **{name: pl.col(name).sum() for name in everybody}},
    )
    table = join_on_keys(of_group, of_all, partition_keys)
    own = pl.col("__own") / (own_pos * own_neg)
    whole = pl.col("__whole") / (all_pos * all_neg)
    rest = (pl.col("__whole") - pl.col("__mixed")) / ((all_pos - own_pos) * (all_neg - own_neg))
    most = own.fill_nan(None).max()
    hidden = (own + pl.max_horizontal(rest.fill_nan(None), whole), own + over(most, partition_keys))
    columns = {name: value / 2 for name, value in zip(BIN_SLACK, hidden, strict=True)}
    return join_on_keys(sums, table.select(*rows.keys, **columns), rows.keys)


def widened_by_bins(gaps: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """Widen intervals by what bins may hide, and test only where the sign of a gap is certain."""
    hidden = BIN_SLACK[kind == "group"]
    if hidden not in gaps.collect_schema():
        return gaps
    certain = pl.col("auc_gap").abs() > pl.col(hidden)
    return gaps.with_columns(
        (pl.col("auc_gap_low") - pl.col(hidden)).clip(-1.0, 1.0),
        (pl.col("auc_gap_high") + pl.col(hidden)).clip(-1.0, 1.0),
        pl.when(certain).then("auc_gap_p_value").alias("auc_gap_p_value"),
    )
