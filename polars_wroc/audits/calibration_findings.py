"""Findings on calibration: what a score promises in a segment, against what came true."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_wroc.audits.calibration_tests import EXPECTED, LEAST_EXPECTED, slope_in_points
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.tables import AuditTables
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.curves.in_the_large import IN_THE_LARGE
from polars_wroc.inputs.names import OVERALL

# What calibration is compared with.
_OBSERVED = "observed"
# How large a gap is, in the unit of the margin.
SIZE = "__size"


def calibration_findings(audit: AuditTables) -> list[pl.DataFrame]:
    """Lay out the findings: a row for each segment and metric; none without probabilities."""
    if audit.calibration is None:
        return []
    keys = segment_keys(audit.calibration)
    counts = audit.segments.select(*keys, "n_pos", "n_neg")
    names = (IN_THE_LARGE, EXPECTED, SLOPE)
    enough = [audit.enough_rows.where([name]).rename({"enough": _enough(name)}) for name in names]
    table = audit.calibration.filter(pl.col("attribute") != OVERALL)
    for other in (counts, *enough):
        table = table.join(other, on=keys, how="left", nulls_equal=True, maintain_order="left")
    large = {
        "value": pl.col("mean_score"),
        "reference_value": pl.col("observed_rate"),
        "n_behind": pl.col("n"),
        SIZE: pl.col(IN_THE_LARGE).abs(),
    }
    slope = {
        "value": pl.col(SLOPE),
        "reference_value": pl.when(pl.col(SLOPE).is_not_null()).then(1.0),
        "n_behind": pl.min_horizontal("n_pos", "n_neg"),
        SIZE: slope_in_points(pl.col(SLOPE)),
    }
    found = [_rows(audit, table, IN_THE_LARGE, large, pl.lit(0.0))]
    # Of rows in ranges there are none.
    if table[SLOPE].count():
        found.append(_rows(audit, table, SLOPE, slope, pl.lit(1.0)))
    return found


def _enough(name: str) -> str:
    return f"__enough_{name}"


def _rows(
    audit: AuditTables,
    table: pl.DataFrame,
    metric: str,
    columns: Mapping[str, pl.Expr],
    right: pl.Expr,
) -> pl.DataFrame:
    """Lay out a metric, which is ``right`` where the score is calibrated."""
    settings, unknown = audit.parameters, pl.lit(None, pl.Float64)
    verdict = pl.col(f"{metric}_verdict").fill_null("not compared")
    little, p_value = verdict == "too little data", pl.col(f"{metric}_p_value")
    reason = (
        pl.when(verdict == "not compared")
        .then(pl.lit("undefined"))
        .when(little & ~pl.col(_enough(metric)))
        .then(pl.lit(f"fewer than {settings.min_rows} rows"))
        .when(little & pl.lit(metric == IN_THE_LARGE) & ~pl.col(_enough(EXPECTED)))
        .then(pl.lit(f"fewer than {LEAST_EXPECTED} expected rows of a class"))
        .when(little & p_value.is_null())
        .then(pl.lit("no variance"))
    )
    return table.select(
        *segment_keys(table),
        pl.lit(metric).alias("metric"),
        columns["value"].alias("value"),
        pl.lit(_OBSERVED).alias("reference"),
        columns["reference_value"].alias("reference_value"),
        (pl.col(metric) - right).alias("gap"),
        (pl.col(f"{metric}_low") - right).alias("gap_low"),
        (pl.col(f"{metric}_high") - right).alias("gap_high"),
        ratio=unknown,
        ratio_low=unknown,
        ratio_high=unknown,
        p_value=p_value,
        p_adjusted=pl.col(f"{metric}_p_adjusted"),
        n_behind=columns["n_behind"],
        n_reference=pl.lit(None, pl.Int64),
        material=columns[SIZE] >= settings.margin,
        side=pl.lit("either"),
        verdict=verdict,
        reason=reason,
        mirror=pl.lit(value=False),
        **{SIZE: columns[SIZE]},
    )
