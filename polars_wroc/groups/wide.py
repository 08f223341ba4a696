"""Tables with a column for each metric, as charts and a command still read them.

Made from rows of comparisons until these read them as they are; then this file goes.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import FAIRNESS, IMPACT
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.plans.queries import FrameT
from polars_wroc.stats.proportions import TOLERANCE

_ENDINGS = {
    "": "value",
    "_reference": "reference_value",
    "_gap": "gap",
    "_gap_low": "gap_low",
    "_gap_high": "gap_high",
    "_gap_p_value": "p_value",
    "_gap_p_adjusted": "p_adjusted",
    "_ratio": "ratio",
    "_ratio_low": "ratio_low",
    "_ratio_high": "ratio_high",
}
_VERDICTS = {"_gap_detectable": "detectable", "_gap_verdict": "verdict"}
_WITHIN = {"_gap_crude": "gap_crude", "_gap_explained": "gap_explained"}


def gaps_wide(table: FrameT) -> FrameT:
    """Lay out the table of `group_gaps` with a row for each segment."""
    keys = _keys(table)
    metrics = table.lazy().select("metric").unique().collect()["metric"].to_list() or [*GAP_METRICS]
    within = "gap_crude" in table.collect_schema()
    columns = {f"n_{side}": pl.col("n").first() * n for side, n in (("pos", 1), ("neg", 0))}
    ends = _ENDINGS | _VERDICTS | (_WITHIN if within else {})
    for metric in (name for name in GAP_METRICS if name in metrics):
        columns |= _of_metric(metric, ends)
    if within:
        columns["within_weight_share"] = pl.col("share_within").first()
    return table.group_by(keys, maintain_order=True).agg(**columns)


def _of_metric(metric: str, ends: dict[str, str]) -> dict[str, pl.Expr]:
    return {
        f"{metric}{end}": pl.col(column).filter(pl.col("metric") == metric).first()
        for end, column in ends.items()
        if metric != "auc" or "ratio" not in end
    }


def as_wide(table: Any, metric: str | None = None) -> Any:
    """Lay out a comparison table as charts read it; return other tables as they are.

    ``metric`` chooses what is drawn, if the table has several.
    """
    columns = set(table.collect_schema().names())
    if not {"metric", "reference_value"} <= columns:
        return table
    table = table.lazy().collect()
    if "sentence" in columns:
        drawn = [*GAP_METRICS] if metric in GAP_METRICS else [IMPACT.name]
        table = table.filter(pl.col("metric").is_in(drawn), pl.col("attribute") != OVERALL)
    if metric in GAP_METRICS and metric in table["metric"]:
        table = table.filter(metric=metric)
    metrics, attributes = set(table["metric"]), table["attribute"].unique()
    if IMPACT.name in metrics:
        return impact_wide(table)
    is_fairness = bool(metrics & set(FAIRNESS))
    wide = fairness_wide(table) if is_fairness else gaps_wide(table)
    if len(attributes) > 1:
        return wide
    # One attribute alone is the column of groups, as charts know it.
    alone = wide.drop("attribute")
    return alone if is_fairness or wide.is_empty() else alone.rename({"segment": attributes[0]})


def _keys(table: pl.DataFrame | pl.LazyFrame) -> list[str]:
    """List the keys; the score only where there are several."""
    several = table.lazy().select(pl.col(MODEL).n_unique() > 1).collect().item()
    return [*AUDIT_KEYS, *([MODEL] if several else [])]


BELOW = "below_four_fifths"
SURELY, LIKELY, LIKELY_NOT, SURELY_NOT = "surely", "likely", "likely not", "surely not"


def is_below(ratio: pl.Expr, low: pl.Expr, high: pl.Expr, limit: float = FOUR_FIFTHS) -> pl.Expr:
    """Say whether a ratio is below a limit: surely if its interval is, likely if only it is."""
    return (
        pl.when((high < limit).fill_null(value=False))
        .then(pl.lit(SURELY))
        .when(ratio < limit - TOLERANCE)
        .then(pl.lit(LIKELY))
        .when((low >= limit).fill_null(value=False))
        .then(pl.lit(SURELY_NOT))
        .when(ratio.is_not_null())
        .then(pl.lit(LIKELY_NOT))
    )


def judgement(ratio: pl.Expr, below: pl.Expr) -> pl.Expr:
    """Say of each category how its ratio was judged, or why it was not."""
    reference = pl.when(ratio.is_not_null()).then(pl.lit("reference"))
    return pl.coalesce("excluded", below, reference)


def impact_wide(table: FrameT, *, rejected: bool = False) -> FrameT:
    """Lay out the table of `impact_ratios` as charts and the command line read it."""
    ratio, low, high, reason = (pl.col(c) for c in ("ratio", "ratio_low", "ratio_high", "reason"))
    unknown, small = reason == "an unknown category", reason.str.starts_with("share below")
    excluded = pl.when(unknown).then(pl.lit("unknown")).when(small).then(pl.lit("small share"))

    def rate(name: str) -> pl.Expr:
        return 1 - pl.col(name) if rejected else pl.col(name)

    ends = ("high", "low") if rejected else ("low", "high")
    below = is_below(ratio, low, high)
    return table.select(
        *_keys(table),
        "n",
        rate("value").alias("selection_rate"),
        *(
            rate(f"value_{end}").alias(f"selection_rate_{name}")
            for name, end in zip(("low", "high"), ends, strict=True)
        ),
        "reference",
        rate("reference_value").alias("reference_rate"),
        ratio.alias("impact_ratio"),
        low.alias("impact_ratio_joint_low"),
        high.alias("impact_ratio_joint_high"),
        *("p_value", "p_adjusted"),
        pl.when(pl.col("verdict").is_not_null()).then(below).alias(BELOW),
        excluded.alias("excluded"),
    )


def fairness_wide(table: FrameT) -> FrameT:
    """Lay out the table of `fairness` as charts read it."""
    keys = [key for key in _keys(table) if key != "segment"]
    metric = pl.col("metric")
    is_ratio, is_area = metric.str.ends_with("_ratio"), metric == "max_abroca"
    own = pl.when(pl.col("value").is_not_null()).then(pl.col("segment").fill_null(MISSING))
    other = pl.when(~is_area).then("reference")

    def of_kind(end: str) -> pl.Expr:
        return pl.when(is_ratio).then(f"ratio{end}").otherwise(f"gap{end}")

    return table.select(
        *keys,
        "metric",
        value=pl.when(is_area).then("value").otherwise(of_kind("")),
        group_max=pl.when(is_ratio).then(other).otherwise(own),
        group_min=pl.when(is_ratio).then(own).otherwise(other),
        joint_low=of_kind("_low"),
        joint_high=of_kind("_high"),
        p_value="p_value",
    )
