"""Comparison tables with a row for each segment and columns for each metric, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_wroc as wroc

# In the order of tables.
FAIRNESS = [
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "predictive_equality_difference",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "predictive_parity_difference",
    "auc_difference",
]
_IS_FAIRNESS = pl.col("metric").str.contains("_(difference|ratio)$") & (
    ~pl.col("metric").is_in(["impact_ratio", "standardized_mean_difference"])
)
# Columns that the table of gaps of an audit does not have.
VALUE_LIMITS = r"^(auc|selection_rate|tpr|fpr|ppv|npv)_(low|high)$"
METRICS = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")
_COLUMNS = {
    "": "value",
    "_low": "value_low",
    "_high": "value_high",
    "_reference": "reference_value",
    "_gap": "gap",
    "_gap_low": "gap_low",
    "_gap_high": "gap_high",
    "_gap_p_value": "p_value",
    "_gap_p_adjusted": "p_adjusted",
    "_ratio": "ratio",
    "_ratio_low": "ratio_low",
    "_ratio_high": "ratio_high",
    "_gap_detectable": "detectable",
    "_gap_verdict": "verdict",
    "_gap_crude": "gap_crude",
    "_gap_explained": "gap_explained",
}


def by_attributes(function: Any) -> Any:
    """Return a function whose argument ``attributes`` is called ``by``."""

    def call(*args: Any, by: Any, **options: Any) -> Any:
        return function(*args, attributes=by, **options)

    return call


def wide_gaps(frame: Any, label: Any, score: Any, *, by: Any, **options: Any) -> Any:
    """`group_gaps` of the values of ``by``, several crossed, a row for each group, few rows too."""
    several = isinstance(by, list) and len(by) > 1
    if several:
        options["intersections"] = "only"
    reference = options.get("reference")
    if isinstance(reference, tuple) and reference:
        named = ", ".join(map(str, reference)) if several else reference[0]
        options["reference"] = named if several else {by: named}
    options = {"min_rows": 0} | options
    table = wroc.group_gaps(frame, label, score, attributes=by, **options)
    decided = any(options.get(name) is not None for name in ("threshold", "selected"))
    metrics = METRICS if decided else METRICS[:1]
    return gaps_by_group(table, frame, by, metrics, several=isinstance(score, list))


def gaps_by_group(
    table: Any, frame: Any, by: Any, metrics: Sequence[str] = METRICS, *, several: bool = False
) -> Any:
    """Lay out a table of gaps of one attribute, under the name and in the type of its column."""
    schema = frame.lazy().select(by).collect_schema()
    models = ["model"] if several else []
    known = table.collect_schema().names()
    ends = {end: name for end, name in _COLUMNS.items() if name in known}
    columns = {
        f"{metric}{end}": pl.col(name).filter(pl.col("metric") == metric).first()
        for metric in metrics
        for end, name in ends.items()
        if metric != "auc" or "ratio" not in end
    }
    if "share_within" in known:
        columns["within_weight_share"] = pl.col("share_within").first()
    wide = table.group_by("segment", *models, maintain_order=True).agg(**columns)
    keys = [pl.col("segment").alias(next(iter(schema)))]
    if len(schema) > 1:
        parts = pl.col("segment").str.split(", ")
        keys = [
            parts.list.get(i).replace("(missing)", None).alias(name)
            for i, name in enumerate(schema)
        ]
    as_given = [
        key == "true" if dtype == pl.Boolean else key.cast(dtype)
        for key, dtype in zip(keys, schema.dtypes(), strict=True)
    ]
    return wide.select(*as_given, *models, *columns)


def segments_of(audit: Any) -> pl.DataFrame:
    """The segments of an audit, with columns for each metric."""
    keys = ["attribute", "segment", "model"]
    rows = audit.table.filter(~_IS_FAIRNESS)
    ends = {name: end for end, name in _COLUMNS.items() if name in rows.columns}
    ends = {name: end for name, end in ends.items() if name != "detectable"}
    ends["reason"] = "_gap_reason"
    names = {
        f"{name}_{metric}": f"{metric}{end}"
        for name, end in ends.items()
        for metric in rows["metric"].unique()
    }
    wide = rows.pivot("metric", index=keys, values=[*ends]).rename(names)
    few = pl.coalesce(pl.min_horizontal("n_pos", "n_neg"), "n") < audit.settings.min_rows
    segments = audit.segments.with_columns(small=few.fill_null(value=True))
    joined = segments.join(wide, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return _without_model(joined, audit)


def gaps_of(audit: Any) -> pl.DataFrame:
    """The segments that are compared."""
    return segments_of(audit).filter(pl.col("attribute") != "overall")


def calibration_of(audit: Any) -> pl.DataFrame:
    """The segments; none where no score is calibrated."""
    table = segments_of(audit)
    return table if "calibration_slope" in table.columns else table.clear()


def impact_of(audit: Any) -> pl.DataFrame:
    """The rows of impact ratios."""
    return _without_model(audit.table.filter(metric="impact_ratio"), audit)


def _without_model(table: pl.DataFrame, audit: Any) -> pl.DataFrame:
    """Drop the name of the only score."""
    return table if audit.settings.several else table.drop("model", strict=False)


def wide_ratios(*args: Any, **options: Any) -> pl.DataFrame:
    """One row for each category: its impact ratio, with the rate of the category as value."""
    return ratios_with_rates(wroc.impact_ratios(*args, **options))


def ratios_with_rates(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of impact ratios with the values of the rows of rates."""
    rates = table.filter(pl.col("metric") != "impact_ratio")
    columns = ["value", "value_low", "value_high", "reference_value"]
    return table.filter(metric="impact_ratio").with_columns(rates.select(columns))


def fairness_of(audit: Any) -> pl.DataFrame:
    """The rows of fairness metrics, with both segments by name."""
    rows = audit.table.filter(_IS_FAIRNESS)
    return fairness_rows(
        rows, ["attribute", *(["model"] if audit.settings.several else []), "metric"]
    )


def fairness_rows(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Lay out rows of fairness metrics by their number, whichever column has it."""
    is_ratio = pl.col("metric").str.ends_with("_ratio")
    own = pl.col("segment").fill_null("(missing)")
    ends = {
        f"joint{end}": pl.when(is_ratio).then(f"ratio{end}").otherwise(f"gap{end}")
        for end in ("_low", "_high")
    }
    table = rows.with_columns(
        value=pl.when(is_ratio).then("ratio").otherwise("gap"),
        group_max=pl.when(is_ratio).then("reference").otherwise(own),
        group_min=pl.when(is_ratio).then(own).otherwise("reference"),
        **ends,
    )
    return table.select(*keys, "value", "group_max", "group_min", *ends, "p_value")
