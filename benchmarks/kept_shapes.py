"""Tables in the shape that they had, made from those of today; only to compare numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

METRICS = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")
# Columns of the comparison table, and what followed the metric's name in the old one.
_OF_GAP = {
    "value": "",
    "reference_value": "_reference",
    **{name: f"_{name}" for name in ("gap", "gap_low", "gap_high", "gap_crude", "gap_explained")},
    **{name: f"_gap_{name}" for name in ("p_value", "p_adjusted", "detectable", "verdict")},
    **{name: f"_{name}" for name in ("ratio", "ratio_low", "ratio_high")},
}
_VERDICTS = {"surely": "different", "surely not": "alike"}


def gaps(table: pl.DataFrame, keys: Sequence[str], *, rates: bool = True) -> pl.DataFrame:
    """A row for each segment, with columns for each metric; ``keys`` are the columns of groups."""
    several = table["model"].n_unique() > 1
    own = ["segment", *(["model"] if several else [])]
    wide = table.select(own).unique(maintain_order=True)
    for metric in METRICS if rates else METRICS[:1]:
        names = {c: f"{metric}{end}" for c, end in _OF_GAP.items() if c in table.columns}
        rows = table.filter(metric=metric)
        size = {"tpr": "n_pos", "fpr": "n_neg"}.get(metric)
        more = [pl.col("n").alias(size)] if size else []
        if metric == "auc" and "share_within" in table.columns:
            more.append(pl.col("share_within").alias("within_weight_share"))
        columns = rows.select(*own, *(pl.col(c).alias(name) for c, name in names.items()), *more)
        wide = wide.join(columns, on=own, how="left", nulls_equal=True, maintain_order="left")
    if len(keys) == 1:
        return wide.rename({"segment": keys[0]})
    parts = pl.col("segment").str.split(", ")
    return wide.with_columns(parts.list.get(i).alias(key) for i, key in enumerate(keys))


def impact(table: pl.DataFrame, *, rejected: bool = False) -> pl.DataFrame:
    """The table of impact ratios with rates of selection."""

    def rate(name: str) -> pl.Expr:
        return 1 - pl.col(name) if rejected else pl.col(name)

    ends = ("high", "low") if rejected else ("low", "high")
    reason = pl.col("reason")
    return table.with_columns(
        rate("value").alias("selection_rate"),
        rate("reference_value").alias("reference_rate"),
        *(
            rate(f"value_{end}").alias(f"selection_rate_{name}")
            for name, end in zip(("low", "high"), ends, strict=True)
        ),
        impact_ratio="ratio",
        impact_ratio_joint_low="ratio_low",
        impact_ratio_joint_high="ratio_high",
        excluded=pl.when(reason == "an unknown category")
        .then(pl.lit("unknown"))
        .when(reason.str.starts_with("share below"))
        .then(pl.lit("small share")),
    )


def fairness(table: pl.DataFrame) -> pl.DataFrame:
    """The table of fairness metrics with the groups that have the highest and lowest value."""
    is_ratio = pl.col("metric").str.ends_with("_ratio")
    is_area = pl.col("metric") == "max_abroca"
    other = pl.when(~is_area).then("reference")
    ratio_or_gap = {
        f"joint{end}": pl.when(is_ratio).then(f"ratio{end}").otherwise(f"gap{end}")
        for end in ("_low", "_high")
    }
    return table.with_columns(
        value=pl.when(is_area).then("value").when(is_ratio).then("ratio").otherwise("gap"),
        group_max=pl.when(is_ratio).then(other).otherwise("segment"),
        group_min=pl.when(is_ratio).then("segment").otherwise(other),
        **ratio_or_gap,
    )
