"""The comparison table of an audit: values of each segment, with what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_wroc.audits.measure import Measured
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    METRICS,
    NO_REFERENCE,
    ONE_CLASS,
    PLACE,
    REPEATS,
    THE_REFERENCE,
    UNDEFINED,
)
from polars_wroc.inputs.columns import MODEL
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.metrics.summary import AUC_BOUNDS

# Metrics of which there are values only.
_VALUES = (CURVE_METRICS["average_precision"].column, "accuracy")
_ENDS = ("low", "high")
_COUNTS: dict[SampleSize, pl.Expr] = {
    "positives": pl.col("n_pos"),
    "negatives": pl.col("n_neg"),
    "rows": pl.col("n"),
    "selected": pl.col("n_selected"),
    "rejected": pl.col("n") - pl.col("n_selected"),
}
# Of a precision: where one class lacks, it is 0 or 1 whatever the decisions.
_OF_BOTH_CLASSES = ("ppv", "npv")
_COMPARED = (
    *("reference_value", "gap", "gap_low", "gap_high", "ratio", "ratio_low", "ratio_high"),
    *("p_value", "p_adjusted", "detectable", "verdict"),
)


def comparisons(measured: Measured, settings: AuditSettings) -> pl.DataFrame:
    """Lay out what was measured: overall first, then attributes and segments."""
    segments = with_model(measured.segments, settings)
    gaps = _gaps(with_model(measured.gaps, settings))
    values = [_values(segments, gaps, name) for name in (*GAP_METRICS, *_VALUES)]
    parts = [part for part in values if part is not None]
    known = (measured.impact, measured.calibration, measured.fairness)
    parts += [with_model(table, settings) for table in known if table is not None]
    table = pl.concat([part.select(_with_all(part, COMPARISON_SCHEMA)) for part in parts])
    # The other one of two segments that are each the other's rest may be the one to be told.
    repeats = pl.col("reason").str.starts_with(REPEATS)
    reason = pl.when(~repeats.fill_null(value=False)).then("reason")
    return _in_order(table.with_columns(reason.alias("reason")), segments)


def _gaps(gaps: pl.DataFrame) -> pl.DataFrame:
    """Leave out comparisons of precisions that no decision could change."""
    smaller = pl.min_horizontal("n", "n_reference").filter(metric=ROC_AUC.column)
    one_class = (smaller.first().over(ALL_KEYS) == 0) & pl.col("metric").is_in(_OF_BOTH_CLASSES)
    told = pl.col("reason").is_in([THE_REFERENCE, NO_REFERENCE]).fill_null(value=False)
    return gaps.with_columns(
        pl.when(~one_class).then(pl.col(_COMPARED)),
        pl.when(one_class & ~told).then(pl.lit(ONE_CLASS)).otherwise("reason").alias("reason"),
    )


def _values(segments: pl.DataFrame, gaps: pl.DataFrame, name: str) -> pl.DataFrame | None:
    """Lay out the values of a metric, and the comparisons where there are any."""
    if name not in segments.columns:
        return None
    known = f"{name}_low" in segments.columns
    values = segments.select(
        *ALL_KEYS,
        metric=pl.lit(name),
        n=pl.min_horizontal(_COUNTS[size] for size in METRICS[name].sample_sizes),
        value=pl.col(name),
        **{f"value_{end}": pl.col(f"{name}_{end}") for end in _ENDS if known},
    )
    compared = gaps.filter(metric=name).select(
        *ALL_KEYS, *_COMPARED, "reason", "reference", "n_reference", __value="value", __n="n"
    )
    joined = values.join(compared, on=ALL_KEYS, how="left", nulls_equal=True, maintain_order="left")
    undefined = pl.when(pl.col("value").is_null(), pl.col("reference").is_null())
    return joined.with_columns(
        # Where they were summed in another order, they agree with their gaps.
        value=pl.coalesce("__value", "value"),
        n=pl.coalesce("__n", "n"),
        reason=pl.coalesce("reason", undefined.then(pl.lit(UNDEFINED))),
    )


def _with_all(part: pl.DataFrame, columns: Mapping[str, type[pl.DataType]]) -> list[pl.Expr]:
    """Select these columns, null where there is none."""
    return [
        (pl.col(name) if name in part.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in columns.items()
    ]


def _in_order(table: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Sort rows as the segments are, and by metric."""
    place = segments.select(*ALL_KEYS).with_row_index(PLACE)
    metric = pl.col("metric").cast(pl.Enum(list(METRICS)))
    attribute = pl.col(PLACE).min().over("attribute")
    placed = table.join(place, on=ALL_KEYS, how="left", nulls_equal=True, maintain_order="left")
    # Unknown combinations, of which there are impact ratios, are no segment.
    return placed.sort(attribute, PLACE, metric, nulls_last=True).drop(PLACE)


# Of a segment; null without decisions where they are of these.
SEGMENT_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(ALL_KEYS, pl.String),
    **dict.fromkeys(("n", "n_pos", "n_neg", "n_missing", "n_selected"), pl.Int64),
    **dict.fromkeys(("w_pos", "w_neg", "threshold", "tp", "fp", "fn", "tn"), pl.Float64),
}


def counts_of(segments: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Count the rows of each segment, by class and decision: `SEGMENT_COLUMNS`."""
    named = with_model(segments, settings)
    return named.select(_with_all(named, SEGMENT_COLUMNS))


def curves_of(curves: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each curve, after its segment."""
    return with_model(curves, settings).select(*ALL_KEYS, pl.exclude(ALL_KEYS))


def auc_error(segments: pl.DataFrame) -> float | None:
    """Return how far the AUCs of scores that were counted in bins may be off."""
    if not set(AUC_BOUNDS) <= set(segments.columns):
        return None
    away = ((pl.col("auc") - pl.col(bound)).abs().max() for bound in AUC_BOUNDS)
    return float(segments.select(pl.max_horizontal(away).fill_null(0.0)).item())


def with_model(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each row, also if there is one alone."""
    if MODEL in table.columns:
        return table
    return table.with_columns(pl.lit(settings.score[0]).alias(MODEL))
