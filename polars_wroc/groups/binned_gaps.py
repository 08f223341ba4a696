"""Bounds on the change of an AUC gap by ties within score bins."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE, SCORE_HIGH, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.by_keys import aggregate, join_on_keys

# Columns of the largest change of the AUC of a group, of its complement and of all rows.
OWN_SLACK, REST_SLACK, OVERALL_SLACK = "__slack_own", "__slack_rest", "__slack_overall"

_HAS_SEVERAL_SCORES = "__has_several_scores"


def with_bin_slack(sums: pl.LazyFrame, rows: Rows, partition_keys: Sequence[str]) -> pl.LazyFrame:
    """Add the largest changes of AUCs that ties within score bins can make; 0 without bins."""
    if not rows.binned:
        none = dict.fromkeys((OWN_SLACK, REST_SLACK, OVERALL_SLACK), pl.lit(0.0))
        return sums.with_columns(**none)
    pos, neg = class_weights(pl.col(WEIGHT).fill_null(0.0))
    several = (pl.col(SCORE) < pl.col(SCORE_HIGH)).any()
    sides = {"__pos": pos.sum(), "__neg": neg.sum()}
    bins = rows.frame.group_by(*rows.keys, SCORE).agg(several.alias(_HAS_SEVERAL_SCORES), **sides)
    overall = {f"{name}_all": pl.col(name).sum() for name in sides}
    bins = join_on_keys(
        bins, bins.group_by(*partition_keys, SCORE).agg(**overall), [*partition_keys, SCORE]
    )
    own_pos, own_neg, all_pos, all_neg = (pl.col(name) for name in (*sides, *overall))
    tied = pl.when(_HAS_SEVERAL_SCORES).then(1.0).otherwise(0.0)
    mixed = all_pos * own_neg + own_pos * all_neg - own_pos * own_neg
    of_group = aggregate(
        bins,
        rows.keys,
        {
            "__own": (own_pos * own_neg * tied).sum(),
            "__mixed": (mixed * tied).sum(),
            **{name: pl.col(name).sum() for name in sides},
        },
    )
    pairs = all_pos * all_neg * tied
    of_all = aggregate(
        bins.unique([*partition_keys, SCORE]),
        partition_keys,
        {"__whole": pairs.sum(), **{name: pl.col(name).sum() for name in overall}},
    )
    table = join_on_keys(of_group, of_all, partition_keys)
    own = pl.col("__own") / (own_pos * own_neg)
    whole = pl.col("__whole") / (all_pos * all_neg)
    rest = (pl.col("__whole") - pl.col("__mixed")) / ((all_pos - own_pos) * (all_neg - own_neg))
    changes = {OWN_SLACK: own, REST_SLACK: rest, OVERALL_SLACK: whole}
    columns = {name: (change / 2).fill_nan(None) for name, change in changes.items()}
    return join_on_keys(sums, table.select(*rows.keys, **columns), rows.keys)


def widened_by_bins(gaps: pl.LazyFrame, slack: str) -> pl.LazyFrame:
    """Widen intervals by the slack, and test only gaps larger than it, whose sign is certain."""
    certain = (pl.col(slack) == 0) | (pl.col("auc_gap").abs() > pl.col(slack))
    return gaps.with_columns(
        (pl.col("auc_gap_low") - pl.col(slack)).clip(-1.0, 1.0),
        (pl.col("auc_gap_high") + pl.col(slack)).clip(-1.0, 1.0),
        pl.when(certain).then("auc_gap_p_value").alias("auc_gap_p_value"),
    )
