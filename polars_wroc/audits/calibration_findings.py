"""Findings on calibration: of all rows against a target, of segments against their reference."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.audits.calibration_tests import (
    EXPECTED,
    LEAST_EXPECTED,
    TARGETS,
    TEST_COLUMNS,
    slope_in_points,
)
from polars_wroc.audits.tables import AuditTables, segment_keys
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.curves.calibration_slope import SLOPE
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.inputs.metric import Metric, SampleSize

# What all rows are compared with.
TARGET = "target"
# How large a gap is, in the unit of the margin.
SIZE = "__size"
# Of a segment, for its sentence.
PREDICTED, OBSERVED = "mean_score", "observed_rate"


@dataclass(frozen=True, kw_only=True)
class CalibrationMetric(Metric):
    """A metric of calibration, and the kinds of rows that it is based on."""

    of: tuple[SampleSize, ...]

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return self.of


CALIBRATION = {
    metric.name: metric
    for metric in (
        CalibrationMetric(
            name=IN_THE_LARGE,
            label="calibration in the large",
            definition="Mean score less the proportion of positives.",
            of=("rows",),
        ),
        CalibrationMetric(
            name=SLOPE,
            label="calibration slope",
            definition="Slope of a logistic regression of the label on the logit of the score.",
            of=("positives", "negatives"),
        ),
    )
}


def calibration_metrics(audit: AuditTables) -> dict[str, CalibrationMetric]:
    """Name the metrics that were measured: no slopes of rows in ranges."""
    table = audit.calibration
    if table is None:
        return {}
    return {name: one for name, one in CALIBRATION.items() if name != SLOPE or table[name].count()}


def with_calibration(audit: AuditTables, segments: pl.DataFrame) -> pl.DataFrame:
    """Add the calibration to segments; those of scores that are no probabilities are left out."""
    assert audit.calibration is not None
    keys = segment_keys(segments)
    known = audit.calibration.select(*keys, *TARGETS, *TEST_COLUMNS)
    return segments.join(known, on=keys, how="inner", nulls_equal=True, maintain_order="left")


def of_calibration(rows: pl.DataFrame, audit: AuditTables, metric: str) -> pl.DataFrame:
    """Complete the findings on a metric, with what their sentences say of the segment itself."""
    assert audit.calibration is not None
    keys = segment_keys(rows)
    enough = audit.enough_rows.where([EXPECTED])
    for other in (audit.calibration.select(*keys, PREDICTED, OBSERVED), enough):
        rows = rows.join(other, on=keys, how="left", nulls_equal=True, maintain_order="left")
    size = pl.col("gap").abs()
    if metric == SLOPE:
        size = slope_in_points(pl.col("value"), pl.col("reference_value"))
    untested = (pl.col("verdict") == "too little data") & pl.col("p_value").is_null()
    few = pl.lit(metric == IN_THE_LARGE) & ~pl.col("enough")
    why = (
        pl.when(untested & few)
        .then(pl.lit(f"fewer than {LEAST_EXPECTED} expected rows of a class"))
        .when(untested)
        .then(pl.lit("no variance"))
    )
    return rows.with_columns(
        pl.coalesce("reason", why).alias("reason"),
        (size >= audit.parameters.margin).alias("material"),
        size.alias(SIZE),
    ).drop("enough")


def of_all_rows(audit: AuditTables, name: str, metric: Metric) -> pl.DataFrame:
    """Lay out the finding on all rows of each score."""
    assert audit.calibration is not None
    settings, unknown = audit.parameters, pl.lit(None, pl.Float64)
    keys = segment_keys(audit.calibration)
    enough = audit.enough_rows.where([f"{name}_gap"])
    counts = audit.segments.select(*keys, positives="n_pos", negatives="n_neg")
    table = audit.calibration.filter(attribute=OVERALL).with_columns(rows="n")
    for other in (counts, enough):
        table = table.join(other, on=keys, how="left", nulls_equal=True, maintain_order="left")
    verdict = pl.col(f"{name}_gap_verdict").fill_null("not compared")
    few = (verdict == "too little data") & ~pl.col("enough")
    return table.select(
        *keys,
        pl.lit(name).alias("metric"),
        pl.col(name).alias("value"),
        pl.lit(TARGET).alias("reference"),
        *(
            pl.col(f"{name}_{part}").alias(alias)
            for part, alias in (
                ("reference", "reference_value"),
                ("gap", "gap"),
                ("gap_low", "gap_low"),
                ("gap_high", "gap_high"),
            )
        ),
        ratio=unknown,
        ratio_low=unknown,
        ratio_high=unknown,
        p_value=pl.col(f"{name}_gap_p_value"),
        p_adjusted=pl.col(f"{name}_gap_p_adjusted"),
        n_behind=pl.min_horizontal(metric.sample_sizes),
        n_reference=pl.lit(None, pl.Int64),
        material=pl.lit(None, pl.Boolean),
        side=pl.lit("either"),
        verdict=verdict,
        reason=pl.when(verdict == "not compared")
        .then(pl.lit("undefined"))
        .when(few)
        .then(pl.lit(f"fewer than {settings.min_rows} rows")),
        mirror=pl.lit(value=False),
        **{SIZE: unknown},
    )
