"""Tables in the shape that they had, made from those of today; only to compare numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    own = pl.when(pl.col("value").is_not_null()).then(pl.col("segment").fill_null("(missing)"))
    other = pl.when(~is_area).then("reference")
    ratio_or_gap = {
        f"joint{end}": pl.when(is_ratio).then(f"ratio{end}").otherwise(f"gap{end}")
        for end in ("_low", "_high")
    }
    return table.with_columns(
        value=pl.when(is_area).then("value").when(is_ratio).then("ratio").otherwise("gap"),
        group_max=pl.when(is_ratio).then(other).otherwise(own),
        group_min=pl.when(is_ratio).then(own).otherwise(other),
        **ratio_or_gap,
    )


_CALIBRATION = ("calibration_in_the_large", "calibration_slope")
_VALUES = (*METRICS, "average_precision", "accuracy")
_KEYS = ["attribute", "segment", "model"]


def audit(result: Any, *, rejected: bool = False) -> dict[str, pl.DataFrame]:
    """The tables that an audit had."""
    table, is_overall = result.table, pl.col("attribute") == "overall"
    of_gaps = table.filter(~is_overall, pl.col("metric").is_in(METRICS))
    rates = of_gaps["metric"].n_unique() > 1
    tables = {"segments": _segments(result), "curves": result.curves}
    tables["gaps"] = pl.concat(
        gaps(
            of_gaps.filter(attribute=one).drop("attribute"), ["segment"], rates=rates
        ).with_columns(attribute=pl.lit(one))
        for one in of_gaps["attribute"].unique(maintain_order=True)
    )
    calibration = table.filter(pl.col("metric").is_in(_CALIBRATION))
    if calibration.height:
        tables["calibration"] = _calibration(calibration)
    fair = table.filter(pl.col("metric").str.contains("_(difference|ratio)$"))
    ratios, fair = (
        fair.filter(metric="impact_ratio"),
        fair.filter(pl.col("metric") != "impact_ratio"),
    )
    if fair.height:
        tables["fairness"] = fairness(fair)
    if ratios.height:
        tables["impact"] = impact(ratios, rejected=rejected)
    told = table.filter(pl.col("sentence").is_not_null(), ~pl.col("metric").is_in(fair["metric"]))
    tables["findings"] = told.rename({"n": "n_behind", "direction": "side"}).with_columns(
        pl.col("side").fill_null("either"), pl.col("verdict").fill_null("not compared")
    )
    return tables


def in_one_order(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Sort tables of audits whose order was another one; leave out what is not compared now."""
    if name == "fairness":
        # Segments that are named in no row of the table come in the order of the metrics.
        table = table.drop_nulls("value")
        keys = ["attribute", "model", "metric"]
    elif name in ("impact", "findings"):
        keys = ["attribute", "segment", "model", "metric"]
        if name == "findings":
            table = table.with_columns(
                pl.when(pl.col("reference").is_not_null()).then("n_reference")
            )
    elif name == "gaps" and "n_pos" in table.columns:
        # Of one class alone a precision is 0 or 1, whatever the decisions.
        both = (pl.col("n_pos") > 0) & (pl.col("n_neg") > 0)
        compared = pl.col("^(ppv|npv)_(reference|gap|ratio).*$")
        return table.with_columns(pl.when(both).then(compared))
    else:
        return table
    known = [pl.col(key).cast(pl.String) for key in keys if key in table.columns]
    return table.sort(known, maintain_order=True)


def _segments(result: Any) -> pl.DataFrame:
    wide: pl.DataFrame = result.segments
    for metric in _VALUES:
        limits = "ci" if metric == "auc" else metric
        rows = result.table.filter(metric=metric).select(
            *_KEYS,
            pl.col("value").alias(metric),
            *(pl.col(f"value_{end}").alias(f"{limits}_{end}") for end in ("low", "high")),
        )
        if rows.height:
            wide = wide.join(rows, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return wide


def _calibration(table: pl.DataFrame) -> pl.DataFrame:
    wide = table.select(_KEYS).unique(maintain_order=True)
    for metric in _CALIBRATION:
        names = {
            "reference_value": "_reference",
            **{f"value{end}": end for end in ("", "_low", "_high")},
            **{f"gap{end}": f"_gap{end}" for end in ("", "_low", "_high")},
            **{name: f"_gap_{name}" for name in ("p_value", "p_adjusted", "verdict")},
        }
        rows = table.filter(metric=metric).select(
            *_KEYS, *(pl.col(c).alias(f"{metric}{end}") for c, end in names.items())
        )
        wide = wide.join(rows, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return wide
