"""Tables with a column for each metric, as audits and charts still read them.

Made from rows of comparisons until audits and charts read these; then this file goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.groups.auc_sums import GAP_METRICS, compared_metrics
from polars_wroc.groups.comparisons import FAIRNESS, IMPACT, PLACE
from polars_wroc.groups.references import REPEATED
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.plans.queries import FrameT, as_struct, over
from polars_wroc.stats.difference_tests import Adjust, adjusted_together, number_of_tests
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.thresholds.registry import GAP_RATES

# A struct of booleans: for each metric, whether the group has enough rows for it and, with the
# suffix ``_gap``, for its test.
ENOUGH_ROWS = "__enough_rows"
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
GAP_COLUMNS = ("n_pos", "n_neg", *(f"auc{end}" for end in _ENDINGS if "ratio" not in end))
# The columns of each rate.
RATE_GAPS = {rate: tuple(f"{rate}{end}" for end in _ENDINGS) for rate in GAP_RATES}
RATE_GAP_COLUMNS = tuple(name for names in RATE_GAPS.values() for name in names)


def verdict_columns(*, rates: bool) -> list[str]:
    """Name the columns of the AUC and, with a threshold, of the rates."""
    return [f"{metric}{end}" for metric in compared_metrics(rates=rates) for end in _VERDICTS]


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


def gaps_of_rows(rows: pl.LazyFrame, keys: Sequence[str], *, rates: bool) -> pl.LazyFrame:
    """Lay out rows of gaps with a row for each segment, and `ENOUGH_ROWS`."""
    columns: dict[str, pl.Expr] = {REPEATED: pl.col(REPEATED).first()}
    enough: dict[str, pl.Expr] = {}
    for metric in compared_metrics(rates=rates):
        columns |= _of_metric(metric, _ENDINGS | _VERDICTS)
        enough |= _of_metric(metric, {"": "enough", "_gap": "enough_for_test"})
    columns[ENOUGH_ROWS] = as_struct(enough)
    return rows.group_by(keys, maintain_order=True).agg(**columns)


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


def adjusted_once(
    gaps: pl.LazyFrame,
    keys: Sequence[str],
    partition_keys: Sequence[str],
    metrics: Sequence[str],
    adjust: Adjust,
) -> tuple[pl.LazyFrame, pl.Expr]:
    """Adjust p-values for all tests of the table; also return how many share the error.

    Two groups that share a test count once.
    """
    p_values = [f"{metric}_gap_p_value" for metric in metrics]
    repeated, number = pl.col(REPEATED), pl.lit(1)
    table = adjusted_together(gaps, keys, adjust, p_values, ~repeated)
    together = pl.col(*(f"{metric}_gap_p_adjusted" for metric in metrics))
    of_both = over(together.max(), partition_keys)
    table = table.with_columns(pl.when(repeated).then(of_both).otherwise(together))
    if adjust != "none":
        number = number_of_tests(p_values, ~repeated)
    return table, number


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


# Columns of the table of impact ratios that audits have besides those of the comparison table.
_OF_ROWS = ("n_missing", "weight", "share", "n_selected", "threshold")
_RATE = "selection_rate"
IMPACT_COLUMNS = (
    *("n", _RATE, f"{_RATE}_low", f"{_RATE}_high", "reference", "reference_rate"),
    *("impact_ratio", "impact_ratio_joint_low", "impact_ratio_joint_high"),
    *("p_value", "p_adjusted", BELOW, "excluded"),
)


def impact_of_rows(rows: pl.LazyFrame, keys: Sequence[str], favorable: Favorable) -> pl.LazyFrame:
    """Lay out rows of impact ratios as audits read them."""
    models = [pl.col(key).cast(pl.String) for key in keys if key not in AUDIT_KEYS]
    ordered = rows.sort(PLACE).with_columns(*models)
    return impact_wide(ordered, keys, rejected=favorable == "rejected")


def impact_wide(
    table: FrameT, keys: Sequence[str] | None = None, *, rejected: bool = False
) -> FrameT:
    """Lay out the table of `impact_ratios` as audits and charts read it."""
    keys = _keys(table) if keys is None else keys
    ratio, low, high, reason = (pl.col(c) for c in ("ratio", "ratio_low", "ratio_high", "reason"))
    unknown, small = reason == "an unknown category", reason.str.starts_with("share below")
    excluded = pl.when(unknown).then(pl.lit("unknown")).when(small).then(pl.lit("small share"))
    kept = [name for name in _OF_ROWS if name in table.collect_schema()]

    def rate(name: str) -> pl.Expr:
        return 1 - pl.col(name) if rejected else pl.col(name)

    ends = ("high", "low") if rejected else ("low", "high")
    below = is_below(ratio, low, high)
    return table.select(
        *keys,
        "n",
        *kept,
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


JOINT_COLUMNS = ("joint_low", "joint_high", "p_value")
FAIRNESS_COLUMNS = ("metric", "value", "group_max", "group_min", *JOINT_COLUMNS)


def fairness_wide(table: FrameT, keys: Sequence[str] | None = None) -> FrameT:
    """Lay out the table of `fairness` as audits and charts read it."""
    if keys is None:
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
